"""The units of a number to estimate, and intervals around estimates."""

from dataclasses import dataclass

import numpy as np

LEVELS = (0.025, 0.1, 0.9, 0.975)
"""Quantiles that bound the 95 % and the 80 % interval, ascending."""


@dataclass(frozen=True)
class Scale:
    """From a model's standard units to those of the data."""

    mean: float = 0.0
    """Mean of the training rows."""
    deviation: float = 1.0
    """Standard deviation of the training rows."""
    offsets: tuple[float, ...] = (0.0,) * len(LEVELS)
    """Difference of each of `LEVELS` from an estimate, in the data's units."""


def interval_offsets(residuals: np.ndarray) -> tuple[float, ...]:
    """Compute what to add to estimates to get the bounds of intervals (split conformal).

    With n residuals the level p takes the one of rank ⌈p·(n + 1)⌉ above the middle and ⌊p·(n + 1)⌋
    below (Vovk et al. 2005), the last one where there is none, so that on exchangeable rows an
    interval covers at least its share.

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
