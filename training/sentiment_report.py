"""Writes what a sentiment run tells: predictions, numbers, pictures, a summary."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from scipy.special import log_softmax
from sklearn.metrics import precision_recall_fscore_support

from training import learning_curves, report
from training.baselines import BaselineResult, TokenRows
from training.loop import FitResult
from training.run_directory import RunWriter
from training.sentiment_data import SentimentData
from training.sentiment_predictions import predict_logits
from training.vocabulary import TextPreprocessor


@dataclass(frozen=True)
class TrainedClassifier:
    """A classifier and what it was made of."""

    data: SentimentData
    rows: Mapping[str, TokenRows]
    """The parts of the data as word ids: train, validation, test."""
    preprocessor: TextPreprocessor
    vocabulary_size: int
    model: keras.Model
    """With the weights of the best epoch."""
    result: FitResult


def write_report(
    writer: RunWriter,
    trained: TrainedClassifier,
    floors: Sequence[BaselineResult],
    summary: Mapping[str, Any],
) -> None:
    """Tests the model and writes the files of the run that are for people.

    Args:
        writer: of the run.
        trained: the model and its data.
        floors: majority class, bag of words, and any further simple models.
        summary: of the training, from :func:`training.run_summary.run_summary`.
    """
    data, rows = trained.data, trained.rows
    logits = {
        part: predict_logits(trained.model, rows[part].ids) for part in ("validation", "test")
    }
    scores = np.exp(log_softmax(logits["test"], axis=1))
    predicted = scores.argmax(axis=1)
    metrics: dict[str, Any] = {
        "task": "sentiment",
        "data": {
            "name": data.name,
            "rows": {name: len(part) for name, part in data.parts().items()},
            "vocabulary": trained.vocabulary_size,
            "notes": list(data.notes),
        },
        "model": {
            **{part: _means(rows[part].labels, logits[part]) for part in logits},
            "parameters": trained.model.count_params(),
        },
        "baselines": {
            floor.name: {
                "validation_accuracy": floor.validation_accuracy,
                "test_accuracy": floor.test_accuracy,
            }
            for floor in floors
        },
        "same_words": same_words(rows["test"], predicted, floors[1].test_predictions),
        "per_class": _per_class(data, predicted),
        **summary,
    }
    predictions = _predictions(data, scores)
    writer.write_text(
        "test_predictions.jsonl",
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in predictions),
    )
    result = trained.result
    learning_curves.draw_curves(
        result.epochs, result.best_epoch, ("loss", "accuracy"), writer.path / "curves.png"
    )
    report.draw_confusion_matrix(
        report.confusion_counts(data.test.labels, predicted, len(data.classes)),
        data.classes,
        writer.path / "confusion_matrix.png",
    )
    writer.write_text(
        "report.md", report.write_summary(metrics, data.classes, _surest_mistakes(predictions))
    )
    writer.write_json("metrics.json", metrics)


def _means(labels: np.ndarray, logits: np.ndarray) -> dict[str, float]:
    losses = -log_softmax(logits.astype(np.float64), axis=1)[np.arange(len(labels)), labels]
    return {
        "loss": float(losses.mean()),
        "accuracy": float(np.mean(logits.argmax(axis=1) == labels)),
    }


def same_words(test: TokenRows, predicted: np.ndarray, bag_predicted: np.ndarray) -> dict[str, Any]:
    """How often both of two rows with the same words and different labels are got right."""
    bags: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, row in enumerate(test.ids):
        bags[tuple(sorted(row.tolist()))].append(index)

    def pairs(counted: np.ndarray) -> int:
        total = 0
        for indices in bags.values():
            labels = test.labels[indices][counted[indices]]
            total += (len(labels) ** 2 - int(np.sum(np.bincount(labels) ** 2))) // 2
        return total

    everything = pairs(np.ones(len(test.labels), bool))
    result: dict[str, Any] = {"pairs": everything}
    for name, answers in (("gru", predicted), ("bag_of_words", bag_predicted)):
        result[name] = pairs(answers == test.labels) / everything if everything else None
    return result


def _per_class(data: SentimentData, predicted: np.ndarray) -> dict[str, dict[str, float]]:
    columns = precision_recall_fscore_support(
        data.test.labels, predicted, labels=range(len(data.classes)), zero_division=0.0
    )
    names = ("precision", "recall", "f1", "rows")
    return {
        label: {name: column[k].item() for name, column in zip(names, columns, strict=True)}
        for k, label in enumerate(data.classes)
    }


def _predictions(data: SentimentData, scores: np.ndarray) -> list[dict[str, Any]]:
    return [
        {
            "text": text,
            "label": data.classes[label],
            "predicted": data.classes[row.argmax()],
            "scores": [float(score) for score in row],
        }
        for text, label, row in zip(data.test.texts, data.test.labels, scores, strict=True)
    ]


def _surest_mistakes(predictions: list[dict[str, Any]], most: int = 10) -> list[dict[str, Any]]:
    wrong = [
        {**row, "probability": max(row["scores"])}
        for row in predictions
        if row["label"] != row["predicted"]
    ]
    return sorted(wrong, key=lambda row: -row["probability"])[:most]
