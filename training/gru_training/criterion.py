"""The criterion of a search, and the significance of a difference between two trials."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

FEWEST_PARTS = 5
"""Fewest parts of the validation rows, or non-overlapping forecasts, that can distinguish
trials.
"""
PARTS = 20
"""Parts of the validation rows, by default."""
ERRORS_TO_BEAT = 1.0
"""Number of standard errors by which settings must beat the defaults."""
ERRORS_TO_BEAT_BY_FEW = 2.0
"""Number of standard errors if there are too few rows to choose by (`Criterion.caution`)."""


class Criterion(NamedTuple):
    """A measure on validation rows by which a search judges settings."""

    name: str
    higher_is_better: bool
    style: str
    """Format of a value, such as `.1%`."""
    measure: str
    """Name of the measure inside the task."""
    caution: str = ""
    """Reason why the criterion distinguishes settings badly; empty if it does not."""


def caution(few: str) -> str:
    """Describe why there are too few rows to choose by, such as "only 3 rows"."""
    return (
        f"{few}: what did best on so few is mostly chance, and the defaults are kept unless it is "
        f"better by {ERRORS_TO_BEAT_BY_FEW:g} standard errors"
    )


class Judged(NamedTuple):
    """The criterion's values of one trial."""

    value: float
    left_out: tuple[float, ...] = ()
    """Values without each part of the validation rows in turn; empty if there are too few rows for
    parts.
    """


def judged(measure: Callable[[np.ndarray], float], rows: int, parts: int = PARTS) -> Judged:
    """Compute the criterion on all rows, and without each part of them.

    Args:
        measure: The criterion of some rows, from whether each row (N,) counts.
        rows: Number N of rows.
        parts: Number of parts; of consecutive rows, as those may depend on each other.
    """
    left_out = list[float]()
    if min(parts, rows) > 1:
        for part in np.array_split(np.arange(rows), min(parts, rows)):
            kept = np.ones(rows, bool)
            kept[part] = False
            left_out.append(measure(kept))
    return Judged(measure(np.ones(rows, bool)), tuple(left_out))


def standard_error(one: Sequence[float], other: Sequence[float]) -> float:
    """Estimate the standard error of two trials' difference from the values without each part.

    This is the delete-a-group jackknife (Kott, 2001), which works for any criterion: for a mean
    over the rows it is the standard error of a mean over the parts.
    """
    differences = np.subtract(one, other)
    parts = len(differences)
    squared = np.square(differences - differences.mean()).sum()
    return math.sqrt((parts - 1) / parts * squared)
