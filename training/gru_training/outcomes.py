"""The answers of models to test rows, in the form that comparisons of runs need.

A measure is a function of the means of some columns with one value per row: accuracy is the mean of
one column (right or not), macro F1 a function of three per class. A comparison can therefore draw
rows anew, or leave one out, for any rows and measures.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np


@dataclass(frozen=True)
class Measure:
    """The quality of answers by one measure."""

    name: str
    columns: np.ndarray
    """Contribution of each row, (N, D) float64."""
    of_means: Callable[[np.ndarray], np.ndarray]
    """Function from means of the columns (..., D) to the measure (...)."""
    higher_is_better: bool
    style: str = ".4f"
    """Format of a value, such as `.2%`."""

    @property
    def value(self) -> float:
        """Value of the measure over all rows."""
        return float(self.of_means(self.columns.mean(axis=0)))


@dataclass(frozen=True)
class Answers:
    """The answers of one model to N rows."""

    measures: tuple[Measure, ...]
    """Measures of the answers; the first one decides."""
    right: np.ndarray | None = None
    """Rows with a right answer, (N,) bool, if answers are right or wrong; otherwise None."""

    def of_rows(self, rows: np.ndarray) -> "Answers":
        """Return the answers to these rows, by number."""
        return Answers(
            tuple(replace(each, columns=each.columns[rows]) for each in self.measures),
            None if self.right is None else self.right[rows],
        )


@dataclass(frozen=True)
class Outcomes:
    """The answers of a run, and of simple models beside it, to the same N test rows."""

    rows: str
    """Name of the rows, such as `held-out texts`."""
    keys: np.ndarray
    """(N,) distinct texts: two rows of two runs with one key are the same question with the same
    right answer.
    """
    model: Answers
    baselines: Mapping[str, Answers] = field(default_factory=dict)
    overlap: int | None = None
    """Number of steps that each row forecasts, if rows are consecutive in time, so that this many
    neighbours share steps. None for independent rows.
    """
    notes: tuple[str, ...] = ()
    """Notes on this run's answers for a reader of the comparison."""

    def __post_init__(self) -> None:
        if self.overlap is None and self.model.right is None:
            raise ValueError("expected rows in time (overlap) or right and wrong answers (right)")

    def of_rows(self, rows: np.ndarray) -> "Outcomes":
        """Return the outcomes of these rows, by number."""
        return replace(
            self,
            keys=self.keys[rows],
            model=self.model.of_rows(rows),
            baselines={name: each.of_rows(rows) for name, each in self.baselines.items()},
        )


def mean_measure(
    name: str, values: np.ndarray, higher_is_better: bool, style: str = ".4f"
) -> Measure:
    """Make a measure that is the mean of one value (N,) per row."""
    return Measure(name, values[:, np.newaxis].astype(np.float64), _first, higher_is_better, style)


def ratio_measure(name: str, sums: np.ndarray, counts: np.ndarray) -> Measure:
    """Make a measure that is a mean error over all values of all rows.

    Args:
        name: Name of the measure; lower is better.
        sums: (N,) of the errors of each row.
        counts: (N,) of the values of each row.
    """
    return Measure(name, np.column_stack([sums, counts]).astype(np.float64), _ratio, False)


def _first(means: np.ndarray) -> np.ndarray:
    return np.asarray(means[..., 0])


def _ratio(means: np.ndarray) -> np.ndarray:
    return np.asarray(means[..., 0] / means[..., 1])
