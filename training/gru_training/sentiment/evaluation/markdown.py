"""The parts of a report as Markdown."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gru_training.data.problems import counted
from gru_training.runs.report_page import markdown_table, note_lines
from gru_training.sentiment.evaluation.pictures import wilson_interval
from gru_training.sentiment.run import model_name
from gru_training.warm_start import start_lines


def opening(
    metrics: Mapping[str, Any],
    title: str,
    headline: str,
    sizes: str,
    table: Sequence[str],
    remark: str,
) -> list[str]:
    """Write the beginning of a report, up to what to try next.

    Args:
        metrics: Content of `metrics.json`.
        title: Kind of the report, in front of the name of the data.
        headline: Main results.
        sizes: Number of classes, with a semicolon and a blank after it; may be empty.
        table: Table of measures.
        remark: Sentences below the table.
    """
    rows, weights = metrics["data"]["rows"], metrics["model"]["parameters"]
    return [
        f"# {title}: {metrics['data']['name']}",
        "",
        headline,
        "",
        f"{rows['train']:,} training, {rows['validation']:,} validation and {rows['test']:,} test "
        f"rows that share no text; {sizes}{weights:,} weights.",
        "",
        *table,
        "",
        remark,
        *further_lines(metrics),
    ]


def measure_table(metrics: Mapping[str, Any], shown: Mapping[str, tuple[str, str]]) -> list[str]:
    """Write the model's measures on the test rows above those of the simple models.

    Args:
        metrics: Content of `metrics.json`.
        shown: Heading and format of each measure, by its name.
    """
    models = {"**model**": metrics["model"]["test"]}
    for name, of in metrics["baselines"].items():
        models[name] = {key: of[f"test_{key}"] for key in shown}
    rows = [
        (name, *(f"{of[key]:{style}}" for key, (_, style) in shown.items()))
        for name, of in models.items()
    ]
    return markdown_table([("test rows", *(heading for heading, _ in shown.values())), *rows])


def of_100_texts(share: float, rows: int, verb: str) -> str:
    """State a share of new texts with its 95 % interval (Wilson).

    Args:
        share: Share of the test rows.
        rows: Number of test rows.
        verb: Predicate of the sentence, such as `are labelled rightly`.
    """
    low, high = wilson_interval(share, rows)
    return f"Of 100 new texts about {100 * share:.0f} {verb} ({100 * low:.0f} to {100 * high:.0f})"


def epoch_sentence(metrics: Mapping[str, Any]) -> str:
    """Describe the best epoch, for labels and numbers."""
    return (
        f"Epoch {metrics['best_epoch']} of {metrics['epochs']} was the best by "
        f"{metrics['metric']} on the validation rows. {_stages(metrics)}"
    )


def _stages(metrics: Mapping[str, Any]) -> str:
    """State what the time was spent on, such as `Network 2 min, simple models 9 s`."""
    stages = [f"{name} {_duration(seconds)}" for name, seconds in metrics["stages"].items()]
    return f"{', '.join(stages).capitalize()}."


def _duration(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds < 100 else f"{seconds / 60:,.0f} min"


def write_markdown(
    metrics: Mapping[str, Any],
    classes: Sequence[str],
    mistakes: Sequence[Mapping[str, Any]],
    doubtful: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Write the report as Markdown.

    Args:
        metrics: Content of `metrics.json`.
        classes: Class names.
        mistakes: Test rows got wrong, the most confident first: `text`, `label`, `predicted`
            and `probability` of the prediction.
        doubtful: Training rows whose label is probably wrong, of `doubtful_table`.
    """
    data, model = metrics["data"], metrics["model"]
    models = {f"**{model_name(metrics)}**": model}
    if "gru_alone" in metrics:
        models["GRU alone"] = metrics["gru_alone"]
    parts = ("validation", "test")
    table = [(name, *(of[part]["accuracy"] for part in parts)) for name, of in models.items()]
    for name, result in metrics["baselines"].items():
        table.append((name, *(result[f"{part}_accuracy"] for part in parts)))
    shown = [(name, *(f"{share:.2%}" for share in shares)) for name, *shares in table]
    low, high = wilson_interval(model["test"]["accuracy"], data["rows"]["test"])
    lines = opening(
        metrics,
        "Sentiment",
        _in_short(metrics),
        f"{len(classes)} classes; ",
        markdown_table([("accuracy", *parts), *shown]),
        f"The model's test accuracy has the 95 % interval {low:.2%} to {high:.2%} (Wilson). The "
        f"best of {counted(metrics['epochs'], 'epoch')} is number {metrics['best_epoch']}, chosen "
        "on the validation rows; so are the baselines' penalties. The test rows were used once, at "
        f"the end.\n\n{_stages(metrics)}",
    )
    lines += ["", "![loss and accuracy](curves.png)"]
    lines += ["", "![confusion](confusion_matrix.png)", ""]
    lines += class_table(metrics["per_class"], data["balance"])
    for kind in ("macro", "weighted"):
        means = (f"{model['test'][f'{kind}_{key}']:.2%}" for key in ("precision", "recall", "f1"))
        lines.append(f"| *{kind} average* | {' | '.join(means)} | | | |")
    lines += ["", f"The answer is {metrics['decision']}.", ""]
    lines += ["![precision and recall](precision_recall.png)"]
    lines += why_lines(metrics["deciding_words"])
    lines += ["", "## Calibration", "", *_calibration(metrics["calibration"])]
    if mistakes:
        wrong = [
            (cell(row["label"]), cell(row["predicted"]), f"{row['probability']:.2%}",
             cell(row["text"]))
            for row in mistakes
        ]  # fmt: skip
        head = ("label", "predicted", "probability", "text")
        lines += ["", "## The most confident mistakes", ""]
        lines += markdown_table([head, *wrong], 2, text_last=True)
    if doubtful:
        lines += ["", "## Doubtful labels", "", *_doubtful(doubtful, metrics)]
    versions = ", ".join(f"{name} {number}" for name, number in metrics["versions"].items())
    lines += ["", "## Made with", "", f"Seed {metrics['seed']}; settings in `config.json`; "]
    lines[-1] += f"{versions}."
    return "\n".join(lines) + "\n"


def _in_short(metrics: Mapping[str, Any]) -> str:
    """State the main results."""
    model, rows = metrics["model"]["test"], metrics["data"]["rows"]["test"]
    text = f"**{of_100_texts(model['accuracy'], rows, 'are labelled rightly')}**"
    text += f"; {beside_simple_models(metrics, 'accuracy', _of_100)}"
    tested = {name: of for name, of in metrics["per_class"].items() if of["rows"]}
    worst = min(tested, key=lambda name: tested[name]["recall"])
    recall = tested[worst]
    if recall["recall"] < model["accuracy"] - 0.1:
        text += (
            f". Of the texts of class {cell(worst)} it finds {recall['recall']:.0%} "
            f"({recall['rows']:,} test rows)"
        )
    return f"{text}. {what_the_network_adds(metrics, 'accuracy', points)}".rstrip()


def _of_100(share: float) -> str:
    return f"{100 * share:.0f}"


def points(share: float) -> str:
    """Write a difference of shares in points, such as `1.5 points`."""
    return f"{100 * share:.1f} points"


def beside_simple_models(
    metrics: Mapping[str, Any], key: str, shown: Callable[[float], str], sign: int = 1
) -> str:
    """Name the simple model that validation chooses, and the one best on the test rows.

    Args:
        metrics: Content of `metrics.json`.
        key: Name of a measure.
        shown: Function that writes a value of it.
        sign: 1 where more is better, else -1.
    """
    floors = metrics["baselines"]
    name, better = (
        max(floors, key=lambda name: sign * floors[name][f"{part}_{key}"])
        for part in ("validation", "test")
    )
    values = {each: floors[each][f"test_{key}"] for each in (name, better)}
    text = f"{name}, the best simple model by the validation rows, gets {shown(values[name])}"
    if sign * values[better] > sign * values[name]:
        text += f", and {better}, better on the test rows, {shown(values[better])}"
    return text


def what_the_network_adds(
    metrics: Mapping[str, Any], key: str, shown: Callable[[float], str], sign: int = 1
) -> str:
    """State what the network adds to the regression on n-grams, in a sentence; "" without one.

    Args:
        metrics: Content of `metrics.json`.
        key: Name of a measure.
        shown: Function that writes a difference of two values of it.
        sign: 1 where more is better, else -1.
    """
    if "shares" not in metrics:
        return ""
    alone = metrics["baselines"][metrics["regression"]][f"test_{key}"]
    gain = sign * (metrics["model"]["test"][key] - alone)
    if metrics["shares"]["gru"] == 0:
        return (
            "The network did not help the regression on n-grams on the validation rows and has no "
            "share in the answers: for these texts the simple model does."
        )
    if gain > 0:
        return f"The network adds {shown(gain)} on the test rows to the regression on n-grams."
    return (
        "On the test rows the network adds nothing to the regression on n-grams"
        + (f", and costs {shown(-gain)}" if gain < 0 else "")
        + ": for these texts the simple model may do."
    )


def further_lines(metrics: Mapping[str, Any]) -> list[str]:
    """List an interruption of the training, problems of the data, and what to try next."""
    lines = []
    if metrics["interrupted"]:
        lines += ["", "**Training was interrupted**; the best epoch until then was kept."]
    lines += note_lines(metrics["data"]["notes"])
    lines += start_lines(metrics)
    lines += soft_lines(metrics)
    if metrics.get("advice"):
        lines += ["", "## What to try next", "", *(f"- {each}" for each in metrics["advice"])]
    return lines


def class_table(
    per_class: Mapping[str, Mapping[str, Any]], balance: Mapping[str, Mapping[str, int]]
) -> list[str]:
    """Write a row for each class or label.

    Args:
        per_class: Measures on the test rows.
        balance: Rows in each part.
    """
    keys = ("precision", "recall", "f1", "average_precision")
    rows = [
        (
            cell(name),
            *("–" if of[key] is None else f"{of[key]:.2%}" for key in keys),
            f"{of['rows']:,}",
            f"{balance[name]['train']:,}",
        )
        for name, of in per_class.items()
    ]
    head = ("test rows", "precision", "recall", "F1", "average precision", "rows", "training rows")
    return markdown_table([head, *rows])


def why_lines(words: Mapping[str, Sequence[str]], what: str = "class") -> list[str]:
    """List the words that decide, and the place of the texts with their words marked.

    Args:
        words: Words that speak for each class or label.
        what: Kind of the answers, such as `class`.
    """
    lines = ["", "## Why these answers", ""]
    rows = [(cell(name), cell(", ".join(of))) for name, of in words.items() if of]
    if rows:
        head = "words that speak for it most, in the test rows to which it was answered"
        lines += [*markdown_table([(what, head), *rows], 2), ""]
    return [
        *lines,
        "By integrated gradients (Sundararajan et al. 2017) and the weights of the n-grams. In the "
        "marked texts, words on blue speak for the answer and words on orange against it; the "
        "surest mistakes come first.",
        "",
        "[The most confident answers, their words marked](report.html)",
    ]


def _calibration(calibration: Mapping[str, Any]) -> list[str]:
    remark, picture = calibration["remark"], "![confidence against accuracy](calibration.png)"
    if remark is None and f"{calibration['temperature']:.3f}" == "1.000":
        return [
            "The probabilities are used as trained: the validation rows ask for no correction.",
            "",
            picture,
        ]
    test = calibration["test"]
    names = {"before": "as trained", "after": "after division"}
    likelihood, error = "negative_log_likelihood", "expected_calibration_error"
    head = (f"test rows, {counted(test['before']['bins'], 'bin')}", "negative log-likelihood")
    rows = [
        (name, f"{test[when][likelihood]:.4f}", f"{test[when][error]:.2%}")
        for when, name in names.items()
    ]
    why = f": {remark}." if remark else (
        " (Guo et al., 2017), which maximises the likelihood of the validation rows."
    )  # fmt: skip
    lines = [
        f"The model's logits are divided by the temperature {calibration['temperature']:.3f}{why}",
        "This changes no answer, only its confidence. All probabilities of this run and of its "
        "exports are computed after the division.",
        "",
        *markdown_table([(*head, "expected calibration error"), *rows]),
    ]
    before, after = (row[1] for row in rows)
    if float(after) > float(before):
        lines += [
            "",
            f"On the test rows the division made the likelihood worse ({after} against {before}): "
            "the validation rows are few, or differ from the test rows.",
        ]
    return [*lines, "", picture]


def _doubtful(rows: Sequence[Mapping[str, Any]], metrics: Mapping[str, Any]) -> list[str]:
    table = [
        (
            row["place"],
            f"{cell(row['label'])} {row['probability_of_label']:.0%}",
            f"{cell(row['suggested'])} {row['probability_of_suggested']:.0%}",
            cell(row["text"]),
        )
        for row in rows
    ]
    return [
        f"{metrics['doubtful_labels']:,} training rows have a label that a bag of words, trained "
        "on the other rows, finds improbable (confident learning; Northcutt et al. 2021). All of "
        "them, the most doubtful first, are in `doubtful_labels.csv`. Some are wrong, others just "
        "unusual.",
        "",
        *markdown_table([("row", "label", "suggested", "text"), *table], 4),
    ]


def cell(text: str, longest: int = 300) -> str:
    """Write a text as a cell of `markdown_table`, cut short."""
    text = " ".join(text.split())
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return text.replace("<", "&lt;")


def soft_lines(metrics: Mapping[str, Any]) -> list[str]:
    """State how many rows with probabilities were learned; nothing without any."""
    if "soft" not in metrics:
        return []
    rows, read = metrics["soft"]["rows"], metrics["soft"]["read"]
    some = "" if read == rows else f", of which each epoch read {read:,}"
    return [
        "",
        f"Beside the labelled rows it learned {rows:,} texts with probabilities in place of a "
        f"label{some}.",
    ]
