"""Writes the report of a sentiment run: predictions, numbers, pictures, a summary."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import keras
import numpy as np
from scipy.special import softmax

from training.classification import pictures as classification_pictures
from training.classification import report
from training.classification.accuracy_by_length import bin_by_length
from training.classification.temperature import fit_temperature
from training.config import to_dict
from training.loop.fit import FitResult
from training.plots import learning_curves
from training.runs.directory import RunWriter
from training.sentiment.data import SentimentData
from training.sentiment.evaluation.baselines import BaselineResult
from training.sentiment.evaluation.gates import choose_rows, draw_gates, read_texts
from training.sentiment.evaluation.metrics import (
    baseline_summary,
    calibration_summary,
    class_summary,
    data_summary,
    length_summary,
    part_summary,
    same_words,
)
from training.sentiment.network.logits import predict_logits
from training.words.token_rows import TokenRows
from training.words.vocabulary import PADDING, TextPreprocessor


class Alone(NamedTuple):
    """A GRU without the n-gram regression that answers with it."""

    logits: dict[str, np.ndarray]
    """Of the validation and test rows, (N, C) each."""
    shares: tuple[float, float]
    """Of the GRU and of the regression in the combined logits."""


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
    alone: Alone | None
    """Of a combined model."""
    result: FitResult


def write_report(
    writer: RunWriter,
    trained: TrainedClassifier,
    floors: Sequence[BaselineResult],
    summary: Mapping[str, Any],
) -> None:
    """Calibrate and test the model, and write the files of the run that describe it.

    Args:
        writer: Of the run.
        trained: The model and its data.
        floors: Majority class, bag of words, and any further simple models.
        summary: Of the training, from `training.runs.summary.run_summary`.
    """
    data, test = trained.data, trained.rows["test"]
    labels = {part: trained.rows[part].labels for part in ("validation", "test")}
    logits = {part: predict_logits(trained.model, trained.rows[part].ids) for part in labels}
    temperature = fit_temperature(labels["validation"], logits["validation"])
    scores = softmax(logits["test"] / np.float32(temperature.value), axis=1)
    predicted = scores.argmax(axis=1)
    right = {
        "gru": predicted == test.labels,
        "bag_of_words": floors[1].test_predictions == test.labels,
    }
    lengths = np.array([np.count_nonzero(ids != PADDING) for ids in test.ids])
    bins = bin_by_length(lengths)
    shown = choose_rows(scores, test.labels, lengths)
    metrics: dict[str, Any] = {
        "task": "sentiment",
        "data": data_summary(data, trained.vocabulary_size),
        "model": {
            **{part: part_summary(labels[part], logits[part]) for part in labels},
            "parameters": trained.model.count_params(),
        },
        "speed": _speed(trained),
        **({} if trained.alone is None else _alone(trained.alone, labels)),
        "baselines": baseline_summary(floors),
        "same_words": same_words(test, predicted, floors[1].test_predictions),
        "per_class": class_summary(data, predicted),
        "calibration": calibration_summary(temperature, labels, logits),
        "by_length": length_summary(bins, right),
        **summary,
    }
    predictions = _predictions(data, scores)
    writer.write_json("temperature.json", to_dict(temperature))
    writer.write_text(
        "test_predictions.jsonl",
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in predictions),
    )
    writer.write_json(
        "test_baselines.json", {floor.name: floor.test_predictions.tolist() for floor in floors}
    )
    result = trained.result
    learning_curves.draw_curves(
        result.epochs, result.best_epoch, ("loss", "accuracy"), writer.path / "curves.png"
    )
    classification_pictures.draw_confusion_matrix(
        classification_pictures.confusion_counts(test.labels, predicted, len(data.classes)),
        data.classes,
        writer.path / "confusion_matrix.png",
    )
    classification_pictures.draw_calibration(
        test.labels, logits["test"], temperature.value, writer.path / "calibration.png"
    )
    classification_pictures.draw_accuracy_by_length(
        bins, right, writer.path / "accuracy_by_length.png"
    )
    if shown:
        texts = [predictions[row] for row in shown]
        draw_gates(
            read_texts(trained.model, trained.preprocessor, temperature.value, texts),
            data.classes,
            writer.path / "gates.png",
        )
    writer.write_text(
        "report.md",
        report.write_markdown(metrics, data.classes, _surest_mistakes(predictions), bool(shown)),
    )
    writer.write_json("metrics.json", metrics)


def _alone(alone: Alone, labels: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {
        "gru_alone": {part: part_summary(labels[part], alone.logits[part]) for part in labels},
        "shares": dict(zip(("gru", "ngrams"), alone.shares, strict=True)),
    }


def _speed(trained: TrainedClassifier) -> dict[str, float]:
    """Of an epoch, validation included; of those after the first, in which XLA compiles."""
    epochs = trained.result.epochs
    seconds = float(np.median([epoch.seconds for epoch in epochs[1:] or epochs]))
    tokens = sum(len(ids) for ids in trained.rows["train"].ids)
    return {"seconds_per_epoch": seconds, "tokens_per_second": tokens / seconds}


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
