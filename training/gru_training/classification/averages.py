"""Measures over all classes or labels: means of precision, recall and F1, average precision."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import average_precision_score, precision_recall_fscore_support


def averages(labels: np.ndarray, predicted: np.ndarray, classes: int) -> dict[str, float]:
    """Macro and weighted means over the classes that occur among labels or predictions.

    Args:
        labels: (N,) class numbers.
        predicted: (N,) class numbers.
        classes: C.
    """
    found: dict[str, float] = {}
    present = np.union1d(labels, predicted)
    for kind in ("macro", "weighted"):
        values = precision_recall_fscore_support(
            labels, predicted, labels=present, average=kind, zero_division=0.0
        )
        for name, value in zip(("precision", "recall", "f1"), values, strict=False):
            found[f"{kind}_{name}"] = float(value)
    hits = np.bincount(labels[labels == predicted], minlength=classes)
    rows = np.bincount(labels, minlength=classes)
    found["balanced_accuracy"] = float(np.mean(hits[rows > 0] / rows[rows > 0]))
    return found


def per_class(
    labels: np.ndarray, predicted: np.ndarray, scores: np.ndarray, names: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Precision, recall, F1, average precision and rows of each class or label.

    Args:
        labels: (N, C) bool, which rows are of which class.
        predicted: (N, C) bool, what was answered.
        scores: (N, C) probabilities.
        names: C names. The average precision of one without rows is None.
    """
    columns = precision_recall_fscore_support(
        labels, predicted, labels=range(len(names)), average=None, zero_division=0.0
    )
    keys = ("precision", "recall", "f1", "rows")
    return {
        name: {
            **{key: column[k].item() for key, column in zip(keys, columns, strict=True)},
            "average_precision": (
                float(average_precision_score(labels[:, k], scores[:, k]))
                if labels[:, k].any()
                else None
            ),
        }
        for k, name in enumerate(names)
    }


def mean_average_precision(members: np.ndarray, scores: np.ndarray) -> float:
    """Mean over the classes that have rows of the area under their precision-recall curve.

    Args:
        members: (N, C) bool.
        scores: (N, C), of which the order within a class matters.
    """
    there = members.any(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        value = average_precision_score(members[:, there], scores[:, there], average="macro")
    return float(value)


def f1(members: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """F1 of each class, (C,), of labels and answers (N, C) bool; 0 where neither has a row."""
    hits = (members & predicted).sum(axis=0)
    total = members.sum(axis=0) + predicted.sum(axis=0)
    return np.asarray(np.divide(2 * hits, total, out=np.zeros(hits.shape), where=total > 0))


def micro_f1(members: np.ndarray, predicted: np.ndarray) -> float:
    """F1 of all labels of all rows taken together."""
    total = int(members.sum()) + int(predicted.sum())
    return 2 * int((members & predicted).sum()) / total if total else 0.0
