"""The measure by which epochs, settings and combinations are chosen on the validation rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, softmax

from gru_training.classification.averages import averages, f1, mean_average_precision, micro_f1
from gru_training.classification.calibration import negative_log_likelihood
from gru_training.data.label_cells import TargetKind
from gru_training.errors import ConfigError

DEFAULTS: dict[TargetKind, str] = {"class": "accuracy", "labels": "micro_f1", "number": "mae"}
LOG_LOSS = "log_loss"
_ONE_CLASS = "f1:"
Values = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class ChosenMetric:
    """A measure of logits against targets."""

    name: str
    of: Values
    """Of targets and logits of N rows; of numbers both are in standard units."""
    higher_is_better: bool = True

    def score(self, targets: np.ndarray, logits: np.ndarray) -> float:
        """The measure, or minus it, so that more is better."""
        value = self.of(targets, logits)
        return value if self.higher_is_better else -value


def chosen_metric(name: str | None, kind: TargetKind, classes: Sequence[str]) -> ChosenMetric:
    """The measure of this name; the default of the kind where there is none.

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
    known = _KNOWN[kind]
    if name not in known:
        also = "" if kind == "number" else " or f1:CLASS"
        raise ConfigError(f"--metric: expected {', '.join(known)}{also}; got {name!r}")
    return ChosenMetric(name, known[name], name not in _LOWER)


def at_best_threshold(members: np.ndarray, logits: np.ndarray, tries: int = 50) -> np.ndarray:
    """The labels (N, C) bool at the one threshold of all labels that has the best micro F1."""
    levels = np.quantile(logits, np.linspace(0, 1, tries + 2)[1:-1])
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
    """Mean over rows and labels of -log p, in nats; targets 0 and 1, and logits, (N, C)."""
    exact = logits.astype(np.float64)
    return float(-np.mean(targets * log_expit(exact) + (1 - targets) * log_expit(-exact)))


def _labels_f1(targets: np.ndarray, logits: np.ndarray) -> float:
    return micro_f1(targets > 0.5, at_best_threshold(targets > 0.5, logits))


def _labels_macro_f1(targets: np.ndarray, logits: np.ndarray) -> float:
    members = targets > 0.5
    columns = [
        f1(members[:, [k]], at_best_threshold(members[:, [k]], logits[:, [k]]))[0]
        for k in range(members.shape[1])
    ]
    return float(np.mean(columns))


def _exact_match(targets: np.ndarray, logits: np.ndarray) -> float:
    members = targets > 0.5
    return float(np.mean((at_best_threshold(members, logits) == members).all(axis=1)))


def _labels_precision(targets: np.ndarray, logits: np.ndarray) -> float:
    return mean_average_precision(targets > 0.5, expit(logits.astype(np.float64)))


def _mae(targets: np.ndarray, values: np.ndarray) -> float:
    return float(np.mean(np.abs(targets - values.reshape(-1))))


def _rmse(targets: np.ndarray, values: np.ndarray) -> float:
    return float(np.sqrt(np.mean((targets - values.reshape(-1)) ** 2)))


_LOWER = (LOG_LOSS, "mae", "rmse")
_KNOWN: dict[TargetKind, dict[str, Values]] = {
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
METRICS = {kind: tuple(known) for kind, known in _KNOWN.items()}
"""Names by kind of target."""
