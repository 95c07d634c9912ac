"""The criterion by which a search judges settings, and the trust in a difference of two trials."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

FEWEST_PARTS = 5
"""Fewest parts of the validation rows, or forecasts that do not overlap, that tell trials apart."""
PARTS = 20
"""Parts of the validation rows, by default."""
ERRORS_TO_BEAT = 1.0
"""Standard errors by which settings must beat the defaults to be taken."""
ERRORS_TO_BEAT_BY_FEW = 2.0
"""Standard errors where there are too few rows to choose by (`Criterion.caution`)."""


class Criterion(NamedTuple):
    """A measure on validation rows by which a search judges settings."""

    name: str
    higher_is_better: bool
    style: str
    """Format of a value, such as `.1%`."""
    measure: str
    """Name of the measure inside the task."""
    caution: str = ""
    """Reason why the criterion tells settings apart badly; empty where it does not."""


def caution(few: str) -> str:
    """Say that there are too few rows to choose by, such as "only 3 rows"."""
    return (
        f"{few}: what did best on so few is mostly chance, and the defaults are kept unless it is "
        f"better by {ERRORS_TO_BEAT_BY_FEW:g} standard errors"
    )


class Judged(NamedTuple):
    """The criterion of one trial."""

    value: float
    left_out: tuple[float, ...] = ()
    """The criterion without each part of the validation rows in turn; empty where there are too
    few rows for parts, or none are told apart."""


def judged(measure: Callable[[np.ndarray], float], rows: int, parts: int = PARTS) -> Judged:
    """Measure on all rows, and without each part of them.

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
    """Estimate the standard error of two trials' difference, from criteria without each part.

    The delete-a-group jackknife (Kott, 2001), which serves any criterion: for a mean over the rows
    it is the standard error of a mean over the parts.
    """
    differences = np.subtract(one, other)
    parts = len(differences)
    squared = np.square(differences - differences.mean()).sum()
    return math.sqrt((parts - 1) / parts * squared)
