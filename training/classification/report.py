"""A classification run as Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

from training.classification.accuracy_by_length import wilson_interval

_GATES = (
    "The most confident answers to short test rows, right and wrong, by class. Each column of a "
    "map is "
    "a token, each row a unit, sorted by its mean update gate. An update gate near 1 keeps the "
    "state; near 0 it writes the token into the state. With a reset gate near 0, the candidate "
    "ignores what was read before. Below the maps is the answer to the text up to that token.",
    "",
    "![gates](gates.png)",
)


def write_markdown(
    metrics: Mapping[str, Any],
    classes: Sequence[str],
    mistakes: Sequence[Mapping[str, Any]],
    gates: bool,
) -> str:
    """The run as Markdown.

    Args:
        metrics: What `metrics.json` holds.
        classes: Class names.
        mistakes: Test rows got wrong, the most confident first: `text`, `label`, `predicted`
        and
            `probability` of the prediction.
        gates: Whether there is a picture of gates.
    """
    data, model = metrics["data"], metrics["model"]
    rows = data["rows"]
    lines = [
        f"# Sentiment: {data['name']}",
        "",
        f"{rows['train']:,} training, {rows['validation']:,} validation and {rows['test']:,} test "
        f"rows that share no text; {len(classes)} classes; {model['parameters']:,} weights.",
        "",
        "| accuracy | validation | test |",
        "|---|---:|---:|",
        _accuracy_row("**GRU and n-grams**" if "gru_alone" in metrics else "**GRU**", model),
    ]
    if "gru_alone" in metrics:
        lines.append(_accuracy_row("GRU alone", metrics["gru_alone"]))
    for name, result in metrics["baselines"].items():
        lines.append(
            f"| {name} | {result['validation_accuracy']:.2%} | {result['test_accuracy']:.2%} |"
        )
    low, high = wilson_interval(model["test"]["accuracy"], rows["test"])
    lines += [
        "",
        f"The model's test accuracy has the 95 % interval {low:.2%} to {high:.2%} (Wilson). The "
        f"best of {metrics['epochs']} epochs is number {metrics['best_epoch']}, chosen on the "
        "validation rows; so are the baselines' penalties. The test rows were used once, at the "
        "end.",
        "",
        f"Training and testing took {metrics['seconds']:,.0f} s; an epoch "
        f"{metrics['speed']['seconds_per_epoch']:.1f} s (median without the first), "
        f"{metrics['speed']['tokens_per_second']:,.0f} training tokens per second.",
    ]
    if metrics["interrupted"]:
        lines += ["", "**Training was interrupted**; the best epoch until then was kept."]
    lines += [f"\nNote: {note}." for note in data["notes"]]
    lines += _twins(metrics["same_words"])
    lines += ["", "![loss and accuracy](curves.png)", "", "![confusion](confusion_matrix.png)", ""]
    lines += ["| test rows | precision | recall | F1 | rows |", "|---|---:|---:|---:|---:|"]
    for name, values in metrics["per_class"].items():
        lines.append(
            f"| {_cell(name)} | {values['precision']:.2%} | {values['recall']:.2%} | "
            f"{values['f1']:.2%} | {values['rows']:,} |"
        )
    lines += ["", "## Calibration", "", *_calibration(metrics["calibration"])]
    lines += ["", "## Accuracy by length", "", *_by_length(metrics["by_length"])]
    if mistakes:
        lines += ["", "## The most confident mistakes", ""]
        lines += ["| label | predicted | probability | text |", "|---|---|---:|---|"]
        for row in mistakes:
            lines.append(
                f"| {_cell(row['label'])} | {_cell(row['predicted'])} | {row['probability']:.2%} "
                f"| {_cell(row['text'])} |"
            )
    if gates:
        lines += ["", "## Gates", "", *_GATES]
    lines += ["", "## Made with", "", f"Seed {metrics['seed']}; settings in `config.json`; "]
    lines[-1] += ", ".join(f"{name} {number}" for name, number in metrics["versions"].items()) + "."
    return "\n".join(lines) + "\n"


def _accuracy_row(name: str, parts: Mapping[str, Any]) -> str:
    return f"| {name} | {parts['validation']['accuracy']:.2%} | {parts['test']['accuracy']:.2%} |"


def _twins(same_words: Mapping[str, Any]) -> list[str]:
    if not same_words["pairs"]:
        return []
    return [
        "",
        f"**Word order.** {same_words['pairs']:,} pairs of test rows are made of the same words "
        f"and differ in label. The GRU gets both right in {same_words['gru']:.2%} of them, the "
        f"bag of words in {same_words['bag_of_words']:.2%}.",
    ]


def _calibration(calibration: Mapping[str, Any]) -> list[str]:
    remark = calibration["remark"]
    lines = [
        f"The model's logits are divided by the temperature {calibration['temperature']:.3f}"
        + (
            " (Guo et al., 2017), which maximises the likelihood of the validation rows."
            if remark is None
            else f": {remark}."
        ),
        "This changes no answer, only its confidence. All probabilities of this run and of its "
        "exports are computed after the division.",
        "",
    ]
    test = calibration["test"]
    lines += [
        f"| test rows, {test['before']['bins']} bins | negative log-likelihood | expected "
        "calibration error |",
        "|---|---:|---:|",
    ]
    for when, name in (("before", "as trained"), ("after", "after division")):
        values = test[when]
        lines.append(
            f"| {name} | {values['negative_log_likelihood']:.4f} | "
            f"{values['expected_calibration_error']:.2%} |"
        )
    return [*lines, "", "![confidence against accuracy](calibration.png)"]


def _by_length(bins: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = ["| tokens | test rows | GRU | bag of words |", "|---|---:|---:|---:|"]
    for of in bins:
        cells = [
            f"{of[model]['accuracy']:.1%} ({of[model]['low']:.1%} to {of[model]['high']:.1%})"
            for model in ("gru", "bag_of_words")
        ]
        lines.append(
            f"| {of['shortest']} to {of['longest']} | {of['rows']:,} | {' | '.join(cells)} |"
        )
    lines += ["", "With 95 % intervals (Wilson); tokens as the model reads them."]
    return [*lines, "", "![accuracy by length](accuracy_by_length.png)"]


def _cell(text: str, longest: int = 300) -> str:
    text = " ".join(text.split())
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return text.replace("|", "\\|").replace("<", "&lt;")
