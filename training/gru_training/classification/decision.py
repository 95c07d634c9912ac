"""From probabilities to answers: thresholds and costs in place of what is likeliest.

A class is eligible where its probability reaches its threshold; where none is, all are. The answer
is the eligible class of the greatest expected utility, the sum over the true classes of probability
times utility. Without thresholds and utilities that is the likeliest class. Of several labels all
apply whose probability reaches its threshold.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gru_training.errors import ConfigError

HALF = 0.5


@dataclass(frozen=True)
class Decision:
    """How classes or labels are answered."""

    thresholds: tuple[float, ...] = ()
    """The least probability of each; none where any will do."""
    utilities: tuple[tuple[float, ...], ...] = ()
    """(C, C): of the answer (column) where the row's class is true; none for 1 if right."""
    reason: str = "the likeliest class"
    """How it was chosen, for people."""

    def classes(self, scores: np.ndarray) -> np.ndarray:
        """The class numbers (N,) answered, of probabilities (N, C)."""
        value = scores @ np.array(self.utilities, scores.dtype) if self.utilities else scores
        if self.thresholds:
            eligible = scores >= np.array(self.thresholds, scores.dtype)
            eligible |= ~eligible.any(axis=1, keepdims=True)
            value = np.where(eligible, value, -np.inf)
        return np.asarray(value.argmax(axis=1))

    def labels(self, scores: np.ndarray) -> np.ndarray:
        """Which labels apply, (N, C) bool, of probabilities (N, C)."""
        least = np.array(self.thresholds or [HALF] * scores.shape[1], scores.dtype)
        return np.asarray(scores >= least)


def decision_from_json(values: Mapping[str, Any]) -> Decision:
    """The inverse of `gru_training.config.to_dict`.

    Raises:
        ConfigError: The values are no decision.
    """
    try:
        return Decision(
            tuple(map(float, values["thresholds"])),
            tuple(tuple(map(float, row)) for row in values["utilities"]),
            str(values["reason"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"expected thresholds, utilities and a reason: {error!r}") from error


def read_costs(path: Path, classes: Sequence[str]) -> tuple[tuple[float, ...], ...]:
    """Utilities (C, C) from a JSON file of costs: `{"true class": {"answer": cost}}`.

    What is left out costs 0 where the answer is right, else 1.

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
    """The precisions asked for, by class number, of texts as `spam=0.95`.

    Raises:
        ConfigError: One names no class, or no share.
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
    """The lowest threshold from which on a class is answered with at least this precision.

    Args:
        is_class: (N,) bool, of rows that were not trained on.
        scores: (N,) probabilities of the class.
        target: Of the precision.

    Returns:
        The threshold, a score that occurs; None where none reaches the target.
    """
    order = np.argsort(-scores, kind="stable")
    precision = np.cumsum(is_class[order]) / np.arange(1, len(order) + 1)
    ends = np.append(np.diff(scores[order]) != 0, True)  # rows of one score are answered together
    reached = np.flatnonzero((precision >= target) & ends)
    return float(scores[order[reached[-1]]]) if len(reached) else None


def f1_threshold(is_label: np.ndarray, scores: np.ndarray) -> float:
    """The threshold of the greatest F1, halfway to the next score below it; 0.5 without rows.

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
