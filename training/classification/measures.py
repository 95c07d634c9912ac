"""Measures of probabilities against labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.metrics import f1_score, log_loss, precision_recall_fscore_support


def classification_measures(
    labels: np.ndarray, scores: np.ndarray, classes: Sequence[str]
) -> dict[str, Any]:
    """What a classifier achieves on labelled rows.

    Args:
        labels: (N,) class numbers.
        scores: (N, C) probabilities.
        classes: The C names.

    Returns:
        `rows`, `accuracy`, `macro_f1`, `log_loss`, and `per_class`: precision, recall,
        F1 and rows by class. The macro F1 is the mean over the classes that occur among labels
        or predictions.
    """
    predicted = scores.argmax(axis=1)
    exact = scores.astype(np.float64)
    exact /= exact.sum(axis=1, keepdims=True)  # as float32 they are 1 to seven digits only
    columns = precision_recall_fscore_support(
        labels, predicted, labels=range(len(classes)), zero_division=0.0
    )
    names = ("precision", "recall", "f1", "rows")
    per_class = {
        name: {key: column[k].item() for key, column in zip(names, columns, strict=True)}
        for k, name in enumerate(classes)
    }
    return {
        "rows": len(labels),
        "accuracy": float(np.mean(predicted == labels)),
        "macro_f1": float(f1_score(labels, predicted, average="macro")),
        "log_loss": float(log_loss(labels, exact, labels=range(len(classes)))),
        "per_class": per_class,
    }
