"""The conversion of probabilities to answers: calibration, thresholds, costs, units of a number.

A class is eligible if its probability reaches its threshold; if no class does, all are eligible.
The answer is the eligible class of the greatest expected utility, the sum over the true classes of
probability times utility. Without thresholds and utilities it is the likeliest class. For several
labels, all labels whose probability reaches their threshold apply.

Temperature scaling is that of Guo et al. (2017), "On Calibration of Modern Neural Networks"
(arXiv:1706.04599), section 4.2. One number divides all logits; the most likely class does not
change.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gru_serving.preprocessing.answers import ChooseClass
from gru_training.config import require_above_zero
from gru_training.errors import ConfigError

_MOST_BINS, _ROWS_PER_BIN = 15, 40


@dataclass(frozen=True)
class Reliability:
    """Test rows in K bins of equal numbers, from the least confident to the most."""

    confidence: np.ndarray
    """Mean probability of the predicted class, (K,)."""
    accuracy: np.ndarray
    """Share of right predictions, (K,)."""
    rows: np.ndarray
    """Number of rows in each bin, (K,)."""

    @property
    def expected_error(self) -> float:
        """The expected calibration error: the mean of |accuracy - confidence|.

        Naeini et al. (2015), "Obtaining Well Calibrated Probabilities Using Bayesian Binning"; Guo
        et al. (2017), equation 3. With few rows per bin it is positive by chance alone.
        """
        gaps = np.abs(self.accuracy - self.confidence)
        return float(np.average(gaps, weights=self.rows))


def negative_log_likelihood(labels: np.ndarray, logits: np.ndarray) -> float:
    """Compute the mean of -log p(label) over the rows, in nats.

    Args:
        labels: (N,) class numbers.
        logits: Logits, (N, C).
    """
    from scipy.special import log_softmax

    log_probabilities = log_softmax(logits.astype(np.float64), axis=1)
    return float(-log_probabilities[np.arange(len(labels)), labels].mean())


def reliability(labels: np.ndarray, logits: np.ndarray, bins: int | None = None) -> Reliability:
    """Compare confidence with accuracy.

    Args:
        labels: (N,) class numbers.
        logits: Logits, (N, C).
        bins: K; by default 15 as Guo et al. have it, or fewer where bins would have less than 40
            rows.
    """
    count = len(labels)
    if bins is None:
        bins = int(np.clip(count // _ROWS_PER_BIN, 1, _MOST_BINS))
    from scipy.special import softmax

    scores = softmax(logits.astype(np.float64), axis=1)
    confidence = scores.max(axis=1)
    right = scores.argmax(axis=1) == labels
    parts = np.array_split(np.argsort(confidence, kind="stable"), bins)
    return Reliability(
        np.array([confidence[part].mean() for part in parts]),
        np.array([right[part].mean() for part in parts]),
        np.array([len(part) for part in parts]),
    )


Loss = Callable[[np.ndarray, np.ndarray], float]
LOWEST, HIGHEST = 0.1, 10.0
"""Bounds of the search; a temperature outside of them indicates another fault."""


@dataclass(frozen=True)
class Temperature:
    """The divisor of logits before the softmax."""

    value: float = 1.0
    """Divisor; above 1 it makes the model less confident, below 1 more confident."""
    remark: str | None = None
    """Reason why the value is not the maximum-likelihood temperature, if it is not."""

    def __post_init__(self) -> None:
        require_above_zero("temperature", self.value)


def fit_temperature(
    labels: np.ndarray, logits: np.ndarray, loss: Loss = negative_log_likelihood
) -> Temperature:
    """Find the temperature that minimises the negative log-likelihood of held-out rows.

    There is none if every row is right, since the likelihood then grows with confidence. The
    temperature is then 1, which leaves the model unchanged. Otherwise the likelihood has one
    maximum, as the loss is convex in 1/T.

    Args:
        labels: (N,) class numbers, or (N, C) of 0 and 1, of rows that were not trained on.
        logits: Logits, (N, C).
        loss: Loss of labels and divided logits; that of a sigmoid where labels are (N, C).
    """
    answered = logits > 0 if labels.ndim > 1 else logits.argmax(axis=1)
    if np.all(answered == labels):
        return Temperature(
            1.0, f"there is no best one, as all {len(labels):,} validation rows are right"
        )
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda log_t: loss(labels, logits / math.exp(log_t)),
        bounds=(math.log(LOWEST), math.log(HIGHEST)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    for bound in (LOWEST, HIGHEST):
        if abs(found.x - math.log(bound)) < 1e-4:
            side = "below" if bound == LOWEST else "above"
            return Temperature(bound, f"the best one lies {side} it, beyond the end of the search")
    return Temperature(math.exp(found.x))


HALF = 0.5


@dataclass(frozen=True)
class Decision:
    """The choice of the answered class or labels."""

    thresholds: tuple[float, ...] = ()
    """Least probability of each class or label; empty if there are no thresholds."""
    utilities: tuple[tuple[float, ...], ...] = ()
    """Utility (C, C) of the answer (column) for the true class (row); empty for 1 if right."""
    reason: str = "the likeliest class"
    """Description of the choice, for display."""

    def classes(self, scores: np.ndarray) -> np.ndarray:
        """Choose the class numbers (N,) to answer, given probabilities (N, C)."""
        return ChooseClass("scores", (), self.thresholds, self.utilities).places(scores)

    def labels(self, scores: np.ndarray) -> np.ndarray:
        """Mark the labels that apply, (N, C) bool, given probabilities (N, C)."""
        least = np.array(self.thresholds or [HALF] * scores.shape[1], scores.dtype)
        return np.asarray(scores >= least)


def decision_from_json(values: Mapping[str, Any]) -> Decision:
    """Restore a decision from the result of `gru_training.config.to_dict`.

    Raises:
        ConfigError: The values are no decision.
    """
    try:
        return Decision(
            tuple(map(float, values["thresholds"])),
            tuple(tuple(map(float, row)) for row in values["utilities"]),
            str(values["reason"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ConfigError(f"expected thresholds, utilities and a reason: {error!r}") from error


def read_costs(path: Path, classes: Sequence[str]) -> tuple[tuple[float, ...], ...]:
    """Read utilities (C, C) from a JSON file of costs: `{"true class": {"answer": cost}}`.

    A missing cost is 0 if the answer is right, otherwise 1.

    Raises:
        ConfigError: The file cannot be read, or holds other classes or values.
    """
    try:
        costs = json.loads(path.read_text("utf-8"))
        rows = {name: dict(row) for name, row in costs.items()}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise ConfigError(
            f'--costs: expected a JSON file as {{"class": {{"answer": cost}}}}; cannot read '
            f"{path}: {error}"
        ) from error
    for name in (*rows, *(answer for row in rows.values() for answer in row)):
        if name not in classes:
            raise ConfigError(
                f"--costs: {path}: expected the classes {', '.join(map(repr, classes))}; got "
                f"{name!r}"
            )
    table = []
    for true in classes:
        row = [rows.get(true, {}).get(answer, float(true != answer)) for answer in classes]
        if not all(isinstance(cost, int | float) and np.isfinite(cost) for cost in row):
            raise ConfigError(f"--costs: {path}: expected numbers for {true!r}, got {row}")
        table.append(tuple(-float(cost) for cost in row))
    return tuple(table)


def read_targets(targets: Sequence[str], classes: Sequence[str]) -> dict[int, float]:
    """Parse the target precisions, by class number, from texts such as `spam=0.95`.

    Raises:
        ConfigError: An entry names no class, or no share.
    """
    found = {}
    for text in targets:
        name, _, share = text.rpartition("=")
        if name not in classes:
            raise ConfigError(
                f"--target-precision: expected CLASS=SHARE with one of "
                f"{', '.join(map(repr, classes))}, got {text!r}"
            )
        try:
            value = float(share)
        except ValueError:
            value = 0.0
        if not 0 < value <= 1:
            raise ConfigError(f"--target-precision: expected a share such as 0.9, got {text!r}")
        found[list(classes).index(name)] = value
    return found


def precision_threshold(is_class: np.ndarray, scores: np.ndarray, target: float) -> float | None:
    """Find the lowest threshold from which a class is answered with at least this precision.

    Args:
        is_class: (N,) bool, of rows that were not trained on.
        scores: (N,) probabilities of the class.
        target: Precision to reach, in (0, 1].

    Returns:
        Threshold, one of the scores; None if no score reaches the target.
    """
    order = np.argsort(-scores, kind="stable")
    precision = np.cumsum(is_class[order]) / np.arange(1, len(order) + 1)
    ends = np.append(np.diff(scores[order]) != 0, True)  # rows of one score are answered together
    reached = np.flatnonzero((precision >= target) & ends)
    return float(scores[order[reached[-1]]]) if len(reached) else None


def f1_threshold(is_label: np.ndarray, scores: np.ndarray) -> float:
    """Find the threshold of the greatest F1, halfway to the next score below it; 0.5 without rows.

    Args:
        is_label: (N,) bool, of rows that were not trained on.
        scores: (N,) probabilities of the label.
    """
    if not is_label.any():
        return HALF
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    hits = np.cumsum(is_label[order])
    values = 2 * hits / (np.arange(1, len(order) + 1) + is_label.sum())
    ends = np.append(np.diff(ranked) != 0, True)
    best = int(np.flatnonzero(ends)[values[ends].argmax()])
    below = ranked[best + 1] if best + 1 < len(ranked) else 0.0
    return float((ranked[best] + below) / 2)


LEVELS = (0.025, 0.1, 0.9, 0.975)
"""Quantiles that bound the 95 % and the 80 % interval, ascending."""


@dataclass(frozen=True)
class Scale:
    """The conversion of a model's standardised answers to the data's units."""

    mean: float = 0.0
    """Mean of the training rows."""
    deviation: float = 1.0
    """Standard deviation of the training rows."""
    offsets: tuple[float, ...] = (0.0,) * len(LEVELS)
    """Difference of each of `LEVELS` from an estimate, in the data's units."""


def interval_offsets(residuals: np.ndarray) -> tuple[float, ...]:
    """Compute the offsets from estimates to the bounds of intervals (split conformal).

    With n residuals, level p uses the one of rank ⌈p·(n + 1)⌉ above the middle and ⌊p·(n + 1)⌋
    below (Vovk et al. 2005), or the outermost one if there is no such rank, so that on exchangeable
    rows an interval covers at least its share.

    Args:
        residuals: Number minus estimate (N,) of rows that were not trained on.
    """
    ordered, count = np.sort(residuals), len(residuals)
    offsets = []
    for level in LEVELS:
        exact = round(level * (count + 1), 9)  # against rounding
        rank = np.ceil(exact) if level > 0.5 else np.floor(exact)
        offsets.append(float(ordered[int(np.clip(rank, 1, count)) - 1]))
    return tuple(offsets)
