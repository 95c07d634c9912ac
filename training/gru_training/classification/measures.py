"""Measures of answers against labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.metrics import log_loss

from gru_training.classification.averages import (
    averages,
    f1,
    mean_average_precision,
    micro_f1,
    per_class,
)


def class_measures(labels: np.ndarray, predicted: np.ndarray, classes: int) -> dict[str, float]:
    """Accuracy and averages of class numbers (N,) against labels (N,)."""
    return {"accuracy": float(np.mean(predicted == labels)), **averages(labels, predicted, classes)}


def labels_agreement(members: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """What several labels are measured by; (N, C) bool each."""
    return {
        "micro_f1": micro_f1(members, predicted),
        "macro_f1": float(f1(members, predicted).mean()),
        "exact_match": float(np.mean((members == predicted).all(axis=1))),
        "cardinality": float(predicted.sum(axis=1).mean()),
    }


def number_measures(values: np.ndarray, estimates: np.ndarray) -> dict[str, float]:
    """What estimates (N,) of numbers (N,) are measured by."""
    errors = values.astype(np.float64) - estimates
    spread = float(np.sum((values - values.mean(dtype=np.float64)) ** 2))
    return {
        "mae": float(np.mean(np.abs(errors))),
        "rmse": float(np.sqrt(np.mean(errors**2))),
        "r2": 1 - float(np.sum(errors**2)) / spread if spread else 0.0,
    }


def classification_measures(
    labels: np.ndarray,
    scores: np.ndarray,
    classes: Sequence[str],
    predicted: np.ndarray | None = None,
) -> dict[str, Any]:
    """What a classifier achieves on labelled rows.

    Args:
        labels: (N,) class numbers.
        scores: (N, C) probabilities.
        classes: The C names.
        predicted: (N,) class numbers answered; the likeliest by default.

    Returns:
        `rows`, `accuracy`, averages, `log_loss`, and `per_class`: precision, recall, F1, average
        precision and rows by class. The macro F1 is the mean over the classes that occur among
        labels or predictions.
    """
    if predicted is None:
        predicted = scores.argmax(axis=1)
    exact = scores.astype(np.float64)
    exact /= exact.sum(axis=1, keepdims=True)  # as float32 they are 1 to seven digits only
    numbers = np.arange(len(classes))
    return {
        "rows": len(labels),
        **class_measures(labels, predicted, len(classes)),
        "log_loss": float(log_loss(labels, exact, labels=range(len(classes)))),
        "per_class": per_class(
            labels[:, np.newaxis] == numbers, predicted[:, np.newaxis] == numbers, scores, classes
        ),
    }


def label_measures(
    members: np.ndarray, answered: np.ndarray, scores: np.ndarray, names: Sequence[str]
) -> dict[str, Any]:
    """What a model that answers several labels achieves.

    Args:
        members: (N, C) bool, the labels of the rows.
        answered: (N, C) bool.
        scores: (N, C) probabilities.
        names: The C labels.
    """
    return {
        "rows": len(members),
        **labels_agreement(members, answered),
        "average_precision": mean_average_precision(members, scores),
        "per_class": per_class(members, answered, scores, names),
    }
