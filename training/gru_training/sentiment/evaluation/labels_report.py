"""The report on a model that answers any number of labels for each text."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gru_training.runs.directory import RunWriter
from gru_training.sentiment.evaluation.baselines import BaselineResult
from gru_training.sentiment.evaluation.classifier import Results, TrainedClassifier
from gru_training.sentiment.evaluation.explanations import (
    MAX_TEXTS,
    Marked,
    Question,
    deciding_words,
    explain_rows,
    write_marked_texts,
)
from gru_training.sentiment.evaluation.markdown import (
    beside_simple_models,
    cell,
    class_table,
    epoch_sentence,
    further_lines,
    points,
    what_the_network_adds,
    why_lines,
)
from gru_training.sentiment.evaluation.pictures import draw_precision_recall
from gru_training.sentiment.measures import labels_agreement, mean_average_precision, per_class

_ROWS_SHOWN = 10
_MEASURES = {
    "micro_f1": "micro F1",
    "macro_f1": "macro F1",
    "exact_match": "all labels right",
    "cardinality": "labels per text",
}


def labels_results(
    trained: TrainedClassifier,
    floors: Sequence[BaselineResult],  # noqa: ARG001
) -> Results:
    """Compute the figures of a run, and make the functions that draw its pictures.

    Arguments as in `class_results`.
    """
    data, target, rows = trained.data, trained.target, trained.texts.rows
    logits, calibrated = trained.answers.logits, trained.calibrated
    assert calibrated.temperature is not None
    assert calibrated.decision is not None
    members = {part: target.members(rows[part].labels) for part in logits}
    scores = {part: calibrated.head.scores(logits[part]).numpy() for part in logits}
    answered = {part: calibrated.decision.labels(scores[part]) for part in logits}

    def measures(part: str, answers: np.ndarray, values: np.ndarray) -> dict[str, float]:
        return {
            "loss": target.mean_loss(rows[part].labels, logits[part]),
            **labels_agreement(members[part], answers),
            "average_precision": mean_average_precision(members[part], values),
        }

    metrics: dict[str, Any] = {
        "model": {
            **{part: measures(part, answered[part], scores[part]) for part in logits},
            "parameters": trained.model.count_params(),
        },
        "decision": calibrated.decision.reason,
        "thresholds": dict(zip(data.classes, calibrated.decision.thresholds, strict=True)),
        "temperature": calibrated.temperature.value,
        "cardinality": {
            part: float(target.members(held.labels).sum(axis=1).mean())
            for part, held in rows.items()
        },
        "per_class": per_class(members["test"], answered["test"], scores["test"], data.classes),
        **trained.shares_record(),
    }
    predictions = [
        {
            "text": text,
            "label": _names(data.classes, right),
            "predicted": _names(data.classes, said),
            "scores": [float(score) for score in row],
        }
        for text, right, said, row in zip(
            data.test.texts, members["test"], answered["test"], scores["test"], strict=True
        )
    ]
    held, said, sure = members["test"], answered["test"], scores["test"]

    def draw(writer: RunWriter) -> dict[str, Any]:
        draw_precision_recall(held, sure, data.classes, writer.path / "precision_recall.png")
        return {"deciding_words": _explain(writer, trained, held, said, sure)}

    surest = np.abs(scores["test"] - members["test"]).max(axis=1)
    wrong = [
        predictions[row]
        for row in np.argsort(-surest, kind="stable")
        if predictions[row]["label"] != predictions[row]["predicted"]
    ]
    return Results(metrics, predictions, draw, partial(_markdown, mistakes=wrong[:_ROWS_SHOWN]))


def _explain(
    writer: RunWriter,
    trained: TrainedClassifier,
    held: np.ndarray,
    said: np.ndarray,
    scores: np.ndarray,
) -> dict[str, list[str]]:
    """Write the most confident mistakes with marked words, and the words that decide by label.

    Args:
        writer: Writer of the run.
        trained: The model and its data.
        held: Labels of the test rows, (N, C) bool.
        said: Labels that the model gave them, (N, C) bool.
        scores: Probabilities of the labels, (N, C).
    """
    names = trained.data.classes
    wrong = np.argwhere(held != said)
    doubt = np.abs(scores - held)[tuple(wrong.T)]
    first = [Question(*map(int, wrong[k])) for k in np.argsort(-doubt, kind="stable")[:MAX_TEXTS]]
    given = [Question(*map(int, place)) for place in np.argwhere(said)]
    explained = explain_rows(trained, [*first, *given])
    shown = []
    for one in explained[: len(first)]:
        verdict = "missing" if held[one.row, one.number] else "wrong, it does not have this label"
        answer = f"{names[one.number]} {scores[one.row, one.number]:.1%}"
        shown.append(Marked(one, answer, verdict))
    write_marked_texts(writer, shown)
    return deciding_words([one for one in explained if said[one.row, one.number]], names)


def _names(names: Sequence[str], held: np.ndarray) -> list[str]:
    return [name for name, is_held in zip(names, held, strict=True) if is_held]


def _markdown(metrics: Mapping[str, Any], mistakes: Sequence[Mapping[str, Any]]) -> str:
    data, model = metrics["data"], metrics["model"]
    rows, test = data["rows"], model["test"]
    adds = what_the_network_adds(metrics, "micro_f1", points)
    lines = [
        f"# Labels: {data['name']}",
        "",
        f"**{test['exact_match']:.0%} of new texts get all their labels and no other.** The micro "
        f"F1 of the labels is {test['micro_f1']:.1%}; "
        f"{beside_simple_models(metrics, 'micro_f1', '{:.1%}'.format)}. {adds}".rstrip(),
        "",
        f"{rows['train']:,} training, {rows['validation']:,} validation and {rows['test']:,} test "
        f"rows that share no text; {len(data['balance'])} labels, "
        f"{metrics['cardinality']['train']:.2f} for each text; {model['parameters']:,} weights.",
        "",
        "| test rows | " + " | ".join(_MEASURES.values()) + " |",
        "|---|" + "---:|" * len(_MEASURES),
        _row("**model**", test),
    ]
    for name, of in metrics["baselines"].items():
        lines.append(_row(name, {key: of[f"test_{key}"] for key in _MEASURES}))
    lines += [
        "",
        f"The test rows have {metrics['cardinality']['test']:.2f} labels for each text."
        + epoch_sentence(metrics),
        *further_lines(metrics),
        "",
        "![loss and measure](curves.png)",
        "",
        *class_table(metrics["per_class"], data["balance"]),
        "",
        f"A label applies from its threshold on: {metrics['decision']}.",
        "",
        "| label | threshold |",
        "|---|---:|",
        *(f"| {cell(name)} | {value:.3f} |" for name, value in metrics["thresholds"].items()),
        "",
        "![precision and recall](precision_recall.png)",
        *why_lines(metrics["deciding_words"], "label"),
    ]
    if mistakes:
        lines += ["", "## The most confident mistakes", ""]
        lines += ["| labels | predicted | text |", "|---|---|---|"]
        for row in mistakes:
            right, said = (cell(", ".join(row[key]) or "none") for key in ("label", "predicted"))
            lines.append(f"| {right} | {said} | {cell(row['text'])} |")
    return "\n".join(lines) + "\n"


def _row(name: str, measures: Mapping[str, float]) -> str:
    cells = [
        f"{measures[key]:.2f}" if key == "cardinality" else f"{measures[key]:.2%}"
        for key in _MEASURES
    ]
    return f"| {name} | {' | '.join(cells)} |"
