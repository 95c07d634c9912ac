"""The report on a model that answers any number of labels for each text."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gru_training.runs.directory import RunWriter
from gru_training.runs.report_page import markdown_table
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
    measure_table,
    of_100_texts,
    opening,
    points,
    what_the_network_adds,
    why_lines,
)
from gru_training.sentiment.evaluation.pictures import draw_precision_recall
from gru_training.sentiment.measures import mean_average_precision, per_class

_ROWS_SHOWN = 10
_ALL_RIGHT = "get all their labels and no other"
_MEASURES = {
    "micro_f1": ("micro F1", ".2%"),
    "macro_f1": ("macro F1", ".2%"),
    "exact_match": ("all labels right", ".2%"),
    "cardinality": ("labels per text", ".2f"),
}


def labels_results(
    trained: TrainedClassifier,
    floors: Sequence[BaselineResult],  # noqa: ARG001
) -> Results:
    """Compute the figures of a run, and make the functions that draw its pictures.

    Arguments as in `class_results`.
    """
    names, target, rows = trained.data.classes, trained.target, trained.texts.rows
    logits, calibrated = trained.answers.logits, trained.calibrated
    assert calibrated.temperature is not None
    assert calibrated.decision is not None
    members = {part: target.members(of.labels) for part, of in rows.items()}
    scores = {part: calibrated.head.scores(logits[part]).numpy() for part in logits}
    answered = {part: calibrated.decision.labels(scores[part]) for part in logits}
    held, said, sure = members["test"], answered["test"], scores["test"]
    model = {
        part: {
            **trained.measures(part, logits[part], answered[part]),
            "average_precision": mean_average_precision(members[part], scores[part]),
        }
        for part in logits
    }
    metrics: dict[str, Any] = {
        "decision": calibrated.decision.reason,
        "thresholds": dict(zip(names, calibrated.decision.thresholds, strict=True)),
        "temperature": calibrated.temperature.value,
        "cardinality": {part: float(of.sum(axis=1).mean()) for part, of in members.items()},
        "per_class": per_class(held, said, sure, names),
    }
    right, given = ([[names[k] for k in np.flatnonzero(row)] for row in of] for of in (held, said))
    predictions = trained.predictions(right, given, sure)

    def draw(writer: RunWriter) -> dict[str, Any]:
        draw_precision_recall(held, sure, names, writer.path / "precision_recall.png")
        return {"deciding_words": _explain(writer, trained, held, said, sure)}

    wrong = [
        predictions[row]
        for row in np.argsort(-np.abs(sure - held).max(axis=1), kind="stable")
        if predictions[row]["label"] != predictions[row]["predicted"]
    ]
    markdown = partial(_markdown, mistakes=wrong[:_ROWS_SHOWN])
    return Results(model, metrics, predictions, draw, markdown)


def _explain(
    writer: RunWriter,
    trained: TrainedClassifier,
    held: np.ndarray,
    said: np.ndarray,
    scores: np.ndarray,
) -> dict[str, list[str]]:
    """Write the surest mistakes with marked words, and return the words that decide by label."""
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


def _markdown(metrics: Mapping[str, Any], mistakes: Sequence[Mapping[str, Any]]) -> str:
    balance, cardinality = metrics["data"]["balance"], metrics["cardinality"]
    test, rows = metrics["model"]["test"], metrics["data"]["rows"]["test"]
    adds = what_the_network_adds(metrics, "micro_f1", points)
    thresholds = [(cell(name), f"{value:.3f}") for name, value in metrics["thresholds"].items()]
    lines = [
        *opening(
            metrics,
            "Labels",
            f"**{of_100_texts(test['exact_match'], rows, _ALL_RIGHT)}.** The "
            f"micro F1 of the labels is {test['micro_f1']:.1%}; "
            f"{beside_simple_models(metrics, 'micro_f1', '{:.1%}'.format)}. {adds}".rstrip(),
            f"{len(balance)} labels, {cardinality['train']:.2f} for each text; ",
            measure_table(metrics, _MEASURES),
            f"The test rows have {cardinality['test']:.2f} labels for each text. "
            + epoch_sentence(metrics),
        ),
        "",
        "![loss and measure](curves.png)",
        "",
        *class_table(metrics["per_class"], balance),
        "",
        f"A label applies from its threshold on: {metrics['decision']}.",
        "",
        *markdown_table([("label", "threshold"), *thresholds]),
        "",
        "![precision and recall](precision_recall.png)",
        *why_lines(metrics["deciding_words"], "label"),
    ]
    if mistakes:
        table = [
            (*(", ".join(row[key]) or "none" for key in ("label", "predicted")), row["text"])
            for row in mistakes
        ]
        head = ("labels", "predicted", "text")
        lines += ["", "## The most confident mistakes", ""]
        lines += markdown_table([head, *(map(cell, row) for row in table)], 3)
    return "\n".join(lines) + "\n"
