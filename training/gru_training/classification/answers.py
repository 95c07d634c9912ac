"""Answers of a classifier, row by row, as a comparison of runs needs them."""

from functools import partial

import numpy as np

from gru_training.outcomes import Answers, Measure, mean_measure

_LEAST = float(np.finfo(np.float32).eps)
"""Lower probabilities of the right class count as this one, as in scikit-learn."""


def label_answers(
    labels: np.ndarray, predicted: np.ndarray, scores: np.ndarray | None, classes: int
) -> Answers:
    """Accuracy, macro F1 and, where probabilities are known, log loss.

    Args:
        labels: (N,) class numbers.
        predicted: (N,) class numbers.
        scores: (N, C) probabilities; None of a model that gives labels only.
        classes: C.
    """
    right = labels == predicted
    measures = [
        mean_measure("accuracy", right, higher_is_better=True, style=".2%"),
        _macro_f1(labels, predicted, classes),
    ]
    if scores is not None:
        likelihood = scores[np.arange(len(labels)), labels].astype(np.float64)
        losses = -np.log(np.clip(likelihood, _LEAST, 1))
        measures.append(mean_measure("log loss", losses, higher_is_better=False))
    return Answers(tuple(measures), right)


def _macro_f1(labels: np.ndarray, predicted: np.ndarray, classes: int) -> Measure:
    of_class = np.arange(classes)
    labelled, answered = labels[:, np.newaxis] == of_class, predicted[:, np.newaxis] == of_class
    columns = np.concatenate([labelled & answered, labelled, answered], axis=1)
    of_means = partial(_mean_f1, classes=classes)
    return Measure("macro F1", columns.astype(np.float64), of_means, True, ".2%")


def _mean_f1(means: np.ndarray, classes: int) -> np.ndarray:
    """Over the classes that stand among labels or answers, as in scikit-learn."""
    hits = means[..., :classes]
    total = means[..., classes : 2 * classes] + means[..., 2 * classes :]
    seen = total > 0
    scores = np.divide(2 * hits, total, out=np.zeros_like(hits), where=seen)
    return np.asarray(scores.sum(axis=-1) / seen.sum(axis=-1))
