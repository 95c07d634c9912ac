"""The report on a model that answers one class for each text."""

import csv
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from gru_serving.preprocessing.texts import UNKNOWN
from gru_training.runs.directory import RunWriter
from gru_training.sentiment.decision import Temperature, negative_log_likelihood, reliability
from gru_training.sentiment.evaluation import pictures
from gru_training.sentiment.evaluation.baselines import BaselineResult
from gru_training.sentiment.evaluation.classifier import Results, TrainedClassifier
from gru_training.sentiment.evaluation.doubtful_labels import (
    doubtful_labels,
    doubtful_table,
    out_of_fold_scores,
)
from gru_training.sentiment.evaluation.explanations import (
    Marked,
    Question,
    deciding_words,
    explain_rows,
    write_marked_texts,
)
from gru_training.sentiment.evaluation.markdown import write_markdown
from gru_training.sentiment.measures import per_class
from gru_training.words.vocabulary import word_counts

DOUBTFUL_LABELS_FILE = "doubtful_labels.csv"
_ROWS_SHOWN = 10
_MAX_FOLD_ROWS = 20_000
"""Most training rows for which folds are still fast."""


def class_results(trained: TrainedClassifier, floors: Sequence[BaselineResult]) -> Results:
    """Compute the figures of a run, and make the functions that draw its pictures.

    Args:
        trained: The model, its data and its answers.
        floors: Simple models beside it: majority class, bag of words, and any further ones.
    """
    data, target, test = trained.data, trained.target, trained.texts.rows["test"]
    logits, alone, calibrated = (
        trained.answers.logits,
        trained.answers.gru_alone,
        trained.calibrated,
    )
    labels = {part: trained.texts.rows[part].labels for part in logits}
    assert calibrated.temperature is not None
    assert calibrated.decision is not None
    scores = {part: calibrated.head.scores(logits[part]).numpy() for part in logits}
    answered = {part: calibrated.decision.classes(scores[part]) for part in logits}
    predicted, members = answered["test"], target.members(test.labels)
    model = {part: trained.measures(part, logits[part], answered[part]) for part in logits}
    metrics: dict[str, Any] = {
        "decision": calibrated.decision.reason,
        "per_class": per_class(members, target.members(predicted), scores["test"], data.classes),
        "calibration": calibration_summary(calibrated.temperature, labels, logits),
        "advice": advice(trained, floors, model["validation"]),
    }
    if alone is not None:
        metrics["gru_alone"] = {
            part: trained.measures(part, of, of.argmax(axis=1)) for part, of in alone.items()
        }
    right_names, names = (
        [data.classes[number] for number in numbers] for numbers in (test.labels, predicted)
    )
    predictions = trained.predictions(right_names, names, scores["test"])
    temperature = calibrated.temperature.value
    doubtful: list[dict[str, Any]] = []

    def draw(writer: RunWriter) -> dict[str, Any]:
        counts = confusion_matrix(test.labels, predicted, labels=range(len(data.classes)))
        pictures.draw_confusion_matrix(counts, data.classes, writer.path / "confusion_matrix.png")
        pictures.draw_precision_recall(
            members, scores["test"], data.classes, writer.path / "precision_recall.png"
        )
        pictures.draw_calibration(
            test.labels, logits["test"], temperature, writer.path / "calibration.png"
        )
        words = _explain(writer, trained, predictions, predicted)
        doubtful[:] = _doubtful(writer, trained)
        return {"deciding_words": words, "doubtful_labels": len(doubtful)}

    def markdown(metrics: Mapping[str, Any]) -> str:
        mistakes = [
            {**predictions[row], "probability": max(predictions[row]["scores"])}
            for row in _surest(predictions, right=False, most=_ROWS_SHOWN)
        ]
        return write_markdown(metrics, data.classes, mistakes, doubtful[:_ROWS_SHOWN])

    return Results(model, metrics, predictions, draw, markdown)


def _explain(
    writer: RunWriter,
    trained: TrainedClassifier,
    predictions: list[dict[str, Any]],
    predicted: np.ndarray,
) -> dict[str, list[str]]:
    """Write the most confident answers with marked words, and the words that decide by class."""
    surest = [*_surest(predictions, right=False), *_surest(predictions, right=True)]
    questions = [Question(row, int(predicted[row])) for row in [*surest, *range(len(predicted))]]
    explained = explain_rows(trained, questions)
    shown = []
    for one in explained[: len(surest)]:
        row = predictions[one.row]
        right = row["label"] == row["predicted"]
        verdict = "right" if right else f"wrong, it is {row['label']}"
        shown.append(Marked(one, f"{row['predicted']} {row['scores'][one.number]:.1%}", verdict))
    write_marked_texts(writer, shown)
    return deciding_words(explained, trained.data.classes)


def _surest(predictions: list[dict[str, Any]], right: bool, most: int = 6) -> list[int]:
    """Choose the most confident right or wrong answers, each text once."""
    rows = [k for k, row in enumerate(predictions) if (row["label"] == row["predicted"]) == right]
    rows.sort(key=lambda k: -max(predictions[k]["scores"]))
    first: dict[str, int] = {}
    for k in rows:
        first.setdefault(predictions[k]["text"], k)
    return list(first.values())[:most]


def _doubtful(writer: RunWriter, trained: TrainedClassifier) -> list[dict[str, Any]]:
    """Write the training rows whose label is probably wrong; returns them."""
    part, rows = trained.data.train, trained.texts.rows["train"]
    ids, labels = rows.ids, rows.labels
    if trained.data.made_up or len(ids) > _MAX_FOLD_ROWS:
        return []
    scores = out_of_fold_scores(word_counts(ids, len(trained.texts.words.vocabulary)), labels)
    if scores is None:
        return []
    ranked = doubtful_labels(labels, scores)
    found = doubtful_table(ranked, part.texts, part.places, labels, trained.data.classes)
    if found:
        with (writer.path / DOUBTFUL_LABELS_FILE).open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(found[0]))
            table.writeheader()
            table.writerows(found)
    return found


def calibration_summary(
    temperature: Temperature,
    labels: Mapping[str, np.ndarray],
    logits: Mapping[str, np.ndarray],
) -> dict[str, Any]:
    """Describe the effect of the temperature by part: validation, on which it was fitted, and test.

    Args:
        temperature: Temperature of the run.
        labels: (N,) of each part.
        logits: (N, C) of each part, not yet divided.
    """
    summary: dict[str, Any] = {"temperature": temperature.value, "remark": temperature.remark}
    for part, raw in logits.items():
        summary[part] = {}
        for when, divided in (("before", raw), ("after", raw / temperature.value)):
            curve = reliability(labels[part], divided)
            summary[part][when] = {
                "negative_log_likelihood": negative_log_likelihood(labels[part], divided),
                "expected_calibration_error": curve.expected_error,
                "bins": len(curve.rows),
            }
    return summary


_GAP = 0.1
"""Largest difference of training and validation accuracy without advice."""
_MIN_ROWS_RATIO = 5
_MAX_UNKNOWN_SHARE = 0.05
_CUT_SHARE = 0.05


def advice(
    trained: TrainedClassifier, floors: Sequence[BaselineResult], validation: Mapping[str, float]
) -> list[str]:
    """Write sentences of advice for the report; none if nothing suggests itself.

    Args:
        trained: A model that answers classes.
        floors: Simple models beside it.
        validation: Measures of the model on the validation rows.
    """
    found = []
    best = max(floors, key=lambda floor: floor.validation["accuracy"])
    if best.validation["accuracy"] > validation["accuracy"] and trained.answers.shares is None:
        found.append(
            f"{best.name} does better on the validation rows "
            f"({best.validation['accuracy']:.1%} against {validation['accuracy']:.1%}): "
            "combine the two with `--ngrams`."
        )
    found += _of_classes(trained, validation)
    found += _of_training(trained)
    if trained.config.training.warm_start is not None:  # words and their reading are the run's
        return found
    return found + _of_texts(trained)


def _of_classes(trained: TrainedClassifier, validation: Mapping[str, float]) -> list[str]:
    counts = np.bincount(trained.texts.rows["train"].labels, minlength=len(trained.data.classes))
    gap = validation["accuracy"] - validation["macro_f1"]
    if counts.max() < _MIN_ROWS_RATIO * counts.min() or gap < _GAP / 2:
        return []
    rare = trained.data.classes[int(counts.argmin())]
    text = (
        f"Accuracy is {validation['accuracy']:.1%} but macro F1 {validation['macro_f1']:.1%}, and "
        f"{rare!r} has {counts.min():,} training rows where the largest class has "
        f"{counts.max():,}: "
    )
    settings = trained.config.training
    if settings.class_weight is None:
        return [text + "try `--class-weight balanced --metric macro_f1`."]
    return [text + "label more rows of the rare classes."]


def _of_training(trained: TrainedClassifier) -> list[str]:
    result, settings = trained.result, trained.config.training
    last = result.epochs[-1]
    best = next(record for record in result.epochs if record.epoch == result.best_epoch)
    found = []
    if last.epoch == result.best_epoch == settings.epochs and not result.interrupted:
        found.append(f"The last epoch was the best: try `--epochs {2 * settings.epochs}`.")
    gap = best.train["accuracy"] - best.validation["accuracy"]
    if gap > _GAP:
        further = (
            "; `--unlabelled` learns from texts without labels, and `--set subwords=yes` from "
        )
        further += "parts of words"
        found.append(
            f"The network gets {best.train['accuracy']:.1%} of the training rows right but "
            f"{best.validation['accuracy']:.1%} of the validation rows: more labelled texts would "
            f"help{further if settings.warm_start is None else ''}."
        )
    return found


def _of_texts(trained: TrainedClassifier) -> list[str]:
    ids = np.concatenate(trained.texts.rows["validation"].ids)
    unknown = float(np.mean(ids == UNKNOWN))
    longest = trained.config.data.max_tokens
    cut = float(np.mean([len(row) >= longest for row in trained.texts.rows["validation"].ids]))
    found = []
    if unknown > _MAX_UNKNOWN_SHARE and not trained.config.model.subwords:
        found.append(
            f"{unknown:.1%} of the words in the validation rows are unknown to the model: try "
            "`--set subwords=yes`."
        )
    if cut > _CUT_SHARE:
        found.append(
            f"{cut:.1%} of the validation rows are longer than the {longest} tokens that are read, "
            f"and only their ends count: try `--max-tokens {2 * longest}`."
        )
    return found
