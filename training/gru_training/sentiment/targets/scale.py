"""The units of a number to estimate, and intervals around estimates."""

from dataclasses import dataclass

import numpy as np

LEVELS = (0.025, 0.1, 0.9, 0.975)
"""Of the bounds of the 95 % and the 80 % interval, ascending."""


@dataclass(frozen=True)
class Scale:
    """From a model's standard units to those of the data."""

    mean: float = 0.0
    """Of the training rows."""
    deviation: float = 1.0
    """Likewise."""
    offsets: tuple[float, ...] = (0.0,) * len(LEVELS)
    """What to add to an estimate for each of `LEVELS`, in the data's units."""


def interval_offsets(residuals: np.ndarray) -> tuple[float, ...]:
    """What to add to estimates so that they become the bounds of intervals (split conformal).

    With n residuals the level p takes the one of rank ⌈p·(n + 1)⌉ above the middle and ⌊p·(n + 1)⌋
    below (Vovk et al. 2005), the last one where there is none, so that on exchangeable rows an
    interval covers at least its share.

    Args:
        residuals: (N,) number minus estimate, of rows that were not trained on.
    """
    ordered, count = np.sort(residuals), len(residuals)
    offsets = []
    for level in LEVELS:
        exact = round(level * (count + 1), 9)  # against rounding
        rank = np.ceil(exact) if level > 0.5 else np.floor(exact)
        offsets.append(float(ordered[int(np.clip(rank, 1, count)) - 1]))
    return tuple(offsets)
