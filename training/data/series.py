"""A table of values at evenly spaced times."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Series:
    """One or more columns over time."""

    name: str
    """What it is called in reports and run names."""
    source: str
    """What errors name: the file."""
    columns: tuple[str, ...]
    """C names."""
    values: np.ndarray
    """(N, C) float64; NaN where a value is missing."""
    times: pd.DatetimeIndex
    """N times, evenly spaced by `frequency`."""
    frequency: str
    """Pandas' name of the spacing, as `h`, `15min`, `W-SAT` or `MS`."""
    notes: tuple[str, ...] = ()
    """What a reader of the report should know about the rows."""
    panel: bool = False
    """Whether it stood in long form: series of unequal length, of which those that are too short
    are left out."""
    ahead: np.ndarray | None = None
    """(n, C) of the steps after the last, of which only inputs are known."""

    def __len__(self) -> int:
        return len(self.values)

    def column(self, name: str) -> int:
        """The index of a column."""
        return self.columns.index(name)

    def contents(self) -> Iterator[str | np.ndarray]:
        """Columns, times and values, for a digest."""
        yield from self.columns
        yield self.times.as_unit("ns").asi8
        yield self.values
