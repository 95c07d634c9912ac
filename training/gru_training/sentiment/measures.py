"""Measures of answers against labels, and the measure by which a training chooses."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, softmax
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import average_precision_score, log_loss, precision_recall_fscore_support

from gru_training.data.label_cells import TargetKind
from gru_training.errors import ConfigError
from gru_training.sentiment.decision import negative_log_likelihood


def averages(labels: np.ndarray, predicted: np.ndarray, classes: int) -> dict[str, float]:
    """Compute macro and weighted means over the classes that occur among labels or predictions.

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
    """Compute precision, recall, F1, average precision and rows of each class or label.

    Args:
        labels: (N, C) bool, which rows are of which class.
        predicted: (N, C) bool, what was answered.
        scores: (N, C) probabilities.
        names: C names. Of one without rows the recall and the average precision are None, and
            the precision and the F1 as well where it was not answered either.
    """
    columns = precision_recall_fscore_support(
        labels, predicted, labels=range(len(names)), average=None, zero_division=0.0
    )
    keys = ("precision", "recall", "f1", "rows")
    there = np.asarray(labels.any(axis=0))
    either = np.logical_or(there, predicted.any(axis=0))
    known = {"precision": either, "recall": there, "f1": either, "rows": np.ones_like(there)}
    return {
        name: {
            **{
                key: column[k].item() if known[key][k] else None
                for key, column in zip(keys, columns, strict=True)
            },
            "average_precision": (
                float(average_precision_score(labels[:, k], scores[:, k]))
                if labels[:, k].any()
                else None
            ),
        }
        for k, name in enumerate(names)
    }


def mean_average_precision(members: np.ndarray, scores: np.ndarray) -> float:
    """Average the area under the precision-recall curve over the classes that have rows.

    Args:
        members: Labels of each row, (N, C) bool.
        scores: (N, C), of which the order within a class matters.
    """
    there = members.any(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        value = average_precision_score(members[:, there], scores[:, there], average="macro")
    return float(value)


def f1(members: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Compute F1 of each class, (C,), from labels and answers (N, C) bool; 0 without any row."""
    hits = (members & predicted).sum(axis=0)
    return np.asarray(2 * hits / np.maximum(1, members.sum(axis=0) + predicted.sum(axis=0)))


def micro_f1(members: np.ndarray, predicted: np.ndarray) -> float:
    """Compute F1 of all labels of all rows together."""
    return float(f1(members.reshape(-1, 1), predicted.reshape(-1, 1))[0])


def class_measures(labels: np.ndarray, predicted: np.ndarray, classes: int) -> dict[str, float]:
    """Compute accuracy and averages of class numbers (N,) against labels (N,)."""
    return {"accuracy": float(np.mean(predicted == labels)), **averages(labels, predicted, classes)}


def labels_agreement(members: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Measure predicted labels; (N, C) bool each.

    The macro F1 is the mean over the labels that occur among them.
    """
    there = members.any(axis=0) | predicted.any(axis=0)
    return {
        "micro_f1": micro_f1(members, predicted),
        "macro_f1": float(f1(members, predicted)[there].mean()) if there.any() else 0.0,
        "exact_match": float(np.mean((members == predicted).all(axis=1))),
        "cardinality": float(predicted.sum(axis=1).mean()),
    }


def number_measures(values: np.ndarray, estimates: np.ndarray) -> dict[str, float]:
    """Measure estimates (N,) of numbers (N,)."""
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
    """Measure a classifier on labelled rows.

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
    """Measure a model that answers several labels.

    Args:
        members: (N, C) bool, the labels of the rows.
        answered: Labels answered, (N, C) bool.
        scores: (N, C) probabilities.
        names: The C labels.
    """
    return {
        "rows": len(members),
        **labels_agreement(members, answered),
        "average_precision": mean_average_precision(members, scores),
        "per_class": per_class(members, answered, scores, names),
    }


DEFAULTS: dict[TargetKind, str] = {"class": "accuracy", "labels": "micro_f1", "number": "mae"}
LOG_LOSS = "log_loss"
_ONE_CLASS = "f1:"
Values = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class ChosenMetric:
    """A measure of logits against targets."""

    name: str
    of: Values
    """Function of targets and logits of N rows; for numbers both are in standard units."""
    higher_is_better: bool = True

    def score(self, targets: np.ndarray, logits: np.ndarray) -> float:
        """Return the measure, negated if less is better."""
        value = self.of(targets, logits)
        return value if self.higher_is_better else -value


def chosen_metric(name: str | None, kind: TargetKind, classes: Sequence[str]) -> ChosenMetric:
    """Return the measure of this name; without a name the default of the kind.

    Raises:
        ConfigError: There is no such measure of this kind, or no such class.
    """
    name = name or DEFAULTS[kind]
    if kind != "number" and name.startswith(_ONE_CLASS):
        wanted = name.removeprefix(_ONE_CLASS)
        if wanted not in classes:
            raise ConfigError(
                f"--metric {name}: expected one of the classes {', '.join(map(repr, classes))}"
            )
        return ChosenMetric(name, _f1_of(list(classes).index(wanted), kind))
    known = _METRICS[kind]
    if name not in known:
        also = "" if kind == "number" else " or f1:CLASS"
        raise ConfigError(f"--metric: expected {', '.join(known)}{also}; got {name!r}")
    return ChosenMetric(name, known[name], name not in _LOSS_METRICS)


_THRESHOLDS_TRIED = 50


def at_best_threshold(members: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Choose labels (N, C) bool at the single threshold with the best micro F1."""
    levels = np.quantile(logits, np.linspace(0, 1, _THRESHOLDS_TRIED + 2)[1:-1])
    best = max(levels, key=lambda level: micro_f1(members, logits >= level))
    return np.asarray(logits >= best)


def _accuracy(labels: np.ndarray, logits: np.ndarray) -> float:
    return float(np.mean(logits.argmax(axis=1) == labels))


def _average(name: str) -> Values:
    return lambda labels, logits: averages(labels, logits.argmax(axis=1), logits.shape[1])[name]


def _members(labels: np.ndarray, classes: int) -> np.ndarray:
    return np.asarray(labels[:, np.newaxis] == np.arange(classes))


def _class_precision(labels: np.ndarray, logits: np.ndarray) -> float:
    scores = softmax(logits.astype(np.float64), axis=1)
    return mean_average_precision(_members(labels, logits.shape[1]), scores)


def _f1_of(number: int, kind: TargetKind) -> Values:
    def value(targets: np.ndarray, logits: np.ndarray) -> float:
        if kind == "labels":
            members = targets[:, [number]] > 0.5
            return float(f1(members, at_best_threshold(members, logits[:, [number]]))[0])
        answered = _members(logits.argmax(axis=1), logits.shape[1])
        return float(f1(_members(targets, logits.shape[1]), answered)[number])

    return value


def label_log_loss(targets: np.ndarray, logits: np.ndarray) -> float:
    """Average -log p in nats over rows and labels, from targets 0 and 1 and logits, (N, C)."""
    exact = logits.astype(np.float64)
    return float(-np.mean(targets * log_expit(exact) + (1 - targets) * log_expit(-exact)))


def _labels_f1(targets: np.ndarray, logits: np.ndarray) -> float:
    return micro_f1(targets > 0.5, at_best_threshold(targets > 0.5, logits))


def _labels_macro_f1(targets: np.ndarray, logits: np.ndarray) -> float:
    members = targets > 0.5
    columns = [
        f1(members[:, [k]], at_best_threshold(members[:, [k]], logits[:, [k]]))[0]
        for k in np.flatnonzero(members.any(axis=0))
    ]
    return float(np.mean(columns)) if columns else 0.0


def _exact_match(targets: np.ndarray, logits: np.ndarray) -> float:
    members = targets > 0.5
    return float(np.mean((at_best_threshold(members, logits) == members).all(axis=1)))


def _labels_precision(targets: np.ndarray, logits: np.ndarray) -> float:
    return mean_average_precision(targets > 0.5, expit(logits.astype(np.float64)))


def _mae(targets: np.ndarray, values: np.ndarray) -> float:
    return float(np.mean(np.abs(targets - values.reshape(-1))))


def _rmse(targets: np.ndarray, values: np.ndarray) -> float:
    return float(np.sqrt(np.mean((targets - values.reshape(-1)) ** 2)))


_LOSS_METRICS = (LOG_LOSS, "mae", "rmse")
_METRICS: dict[TargetKind, dict[str, Values]] = {
    "class": {
        "accuracy": _accuracy,
        "balanced_accuracy": _average("balanced_accuracy"),
        "macro_f1": _average("macro_f1"),
        "weighted_f1": _average("weighted_f1"),
        LOG_LOSS: negative_log_likelihood,
        "average_precision": _class_precision,
    },
    "labels": {
        "micro_f1": _labels_f1,
        "macro_f1": _labels_macro_f1,
        "exact_match": _exact_match,
        LOG_LOSS: label_log_loss,
        "average_precision": _labels_precision,
    },
    "number": {"mae": _mae, "rmse": _rmse},
}
METRICS = {kind: tuple(known) for kind, known in _METRICS.items()}
"""Names by kind of target."""
