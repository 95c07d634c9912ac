"""Series in tables in memory, which estimators are given."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from training.data.even_series import ExpectedSeries
from training.data.long_form import LongColumns
from training.data.problems import Problems
from training.data.series import Series
from training.data.series_frame import NAME, series_of_frame
from training.forecasting.config import SeriesConfig


class Times(NamedTuple):
    """Where the times of a table are, and how they are written; None: found by itself."""

    column: str | None = None
    format: str | None = None

    @classmethod
    def of_run(cls, given: Mapping[str, Any] | None) -> Self:
        """Those of a run, from what is known of its table."""
        return cls() if given is None else cls(given.get("time"), given.get("time_format"))


def trained_series(table: Any, times: Times, settings: SeriesConfig) -> Series:
    """The series to train on, with calendar columns if the settings want them.

    Raises:
        DataError: It cannot be used.
    """
    from training.forecasting.sources.sets import as_wanted

    problems = Problems(NAME, settings.drop_bad, settings.sort_rows, unit="row")
    return as_wanted(_read(table, times, settings, problems), settings)


def newer_series(
    name: str,
    table: Any,
    times: Times,
    settings: SeriesConfig,
    expected: ExpectedSeries,
    long: LongColumns | None = None,
) -> Series:
    """Newer rows of the series of a run, or its known inputs.

    Args:
        name: Of the table, for messages.
        table: Of pandas, Polars or PyArrow.
        times: Of the run.
        settings: Of the run.
        expected: Columns and spacing.
        long: The columns of a table in long form; by default those of the run.

    Raises:
        DataError: It has other columns, or cannot be used.
    """
    return _read(table, times, settings, Problems(name, unit="row"), expected, long)


def _read(
    table: Any,
    times: Times,
    settings: SeriesConfig,
    problems: Problems,
    expected: ExpectedSeries | None = None,
    long: LongColumns | None = None,
) -> Series:
    long = long or settings.long
    series = series_of_frame(table, *times, problems, expected, long, settings.times)
    problems.raise_errors()
    return series
