"""A table of values at evenly spaced times."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gru_training.data.calendar import Calendar
from gru_training.data.long_form import input_column
from gru_training.data.time_axis import nanoseconds
from gru_training.data.time_forms import LATEST_STEP

if TYPE_CHECKING:
    import pandas as pd


def counts_steps(times: np.ndarray, frequency: str) -> bool:
    """Tell whether times of a series are numbers of steps, stored as this many nanoseconds."""
    return frequency.endswith("ns") and bool((nanoseconds(times) < LATEST_STEP).all())


def people_read(
    times: "pd.DatetimeIndex", frequency: str, zone: str | None, local: bool
) -> "pd.Index[Any]":
    """Return times of a series for display: in their zone, or as numbers of steps.

    Args:
        times: Times without a zone, at least one.
        frequency: Pandas' name of the spacing.
        zone: Time zone of the series; None: the times are as they stand.
        local: Whether the times are those of clocks in the zone, in place of UTC.
    """
    import pandas as pd

    if counts_steps(times.to_numpy(), frequency):
        return pd.Index(times.as_unit("ns").asi8)
    if zone is None:
        return times
    if local:
        ambiguous = np.ones(len(times), bool)
        return times.tz_localize(zone, ambiguous=ambiguous, nonexistent="shift_forward")
    return times.tz_localize("UTC").tz_convert(zone)


@dataclass(frozen=True)
class Series:
    """One or more columns over time."""

    name: str
    """Name in reports and in names of runs."""
    source: str
    """Name in error messages, that of the file."""
    columns: tuple[str, ...]
    """Names of the C columns."""
    values: np.ndarray
    """(N, C) float64; NaN where a value is missing."""
    times: np.ndarray
    """N times in nanoseconds, evenly spaced by `frequency`."""
    frequency: str
    """Pandas' name of the spacing, as `h`, `15min`, `W-SAT` or `MS`."""
    notes: tuple[str, ...] = ()
    """Notes on the rows for a reader of the report."""
    panel: bool = False
    """Whether the series came in long form, in which series have different lengths and those that
    are too short are left out.
    """
    ahead: np.ndarray | None = None
    """Values (n, C) of the steps after the last, with only the inputs known; or None."""
    inputs: tuple[str, ...] = ()
    """Names of each series' inputs beside its values in a panel, in columns of
    `gru_training.data.long_form.input_column`."""
    calendar: Calendar = Calendar()  # noqa: RUF009  it is frozen
    """Calendar inputs in the last columns, computed from the times."""
    zone: str | None = None
    """Time zone in which the times are displayed; None to display them unchanged."""
    local: bool = False
    """Whether the times are clock times in the zone rather than UTC."""
    constants: tuple[tuple[str, float], ...] = ()
    """Names and values of columns that never vary, which no model reads."""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def index(self) -> "pd.DatetimeIndex":
        """The times as an index of pandas."""
        import pandas as pd

        return pd.DatetimeIndex(self.times)

    @property
    def numbered(self) -> bool:
        """True if the times are numbers of steps."""
        return counts_steps(self.times, self.frequency)

    @property
    def positions(self) -> np.ndarray:
        """The places (N,) on the axis of a picture: the times, or numbers of steps."""
        return nanoseconds(self.times) if self.numbered else self.times

    def column(self, name: str) -> int:
        """Return the index of a column."""
        return self.columns.index(name)

    def with_columns(self, columns: tuple[str, ...]) -> "Series":
        """Return these columns alone, in this order, with missing values for absent ones."""
        values = np.full((len(self), len(columns)), np.nan)
        for place, name in enumerate(columns):
            if name in self.columns:
                values[:, place] = self.values[:, self.column(name)]
        return replace(self, columns=columns, values=values)

    @property
    def input_columns(self) -> frozenset[str]:
        """List the columns of the inputs of all series of a panel."""
        if not self.inputs:
            return frozenset()
        there = set(self.columns)
        made = ([input_column(name, of) for name in self.inputs] for of in self.columns)
        return frozenset(name for of in made if there.issuperset(of) for name in of)

    def contents(self) -> Iterator[str | np.ndarray]:
        """Yield columns, times and values for a digest."""
        yield from self.columns
        yield nanoseconds(self.times)
        yield self.values
