"""Series in tables in memory, which estimators are given."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from gru_training.data.even_series import ExpectedSeries
from gru_training.data.long_form import LongColumns
from gru_training.data.problems import Problems
from gru_training.data.series import Series
from gru_training.data.series_frame import NAME, series_of_frame
from gru_training.errors import DataError
from gru_training.forecasting.config import SeriesConfig

if TYPE_CHECKING:
    from gru_training.forecasting.data import ForecastingData
    from gru_training.forecasting.future import Recent
    from gru_training.forecasting.run import ForecastingRun


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
    from gru_training.forecasting.sets import as_wanted

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


def recent_rows(run: "ForecastingRun", data: Any, future: Any) -> "Recent":
    """The steps from which a forecast begins, and the known inputs after them.

    Args:
        run: Complete.
        data: Newer values, a table or the path of a file; None: the end of the run's own series.
        future: Known inputs likewise; None: those that come with the values.

    Raises:
        DataError: They do not fit the run, or are too few.
    """
    from gru_training.forecasting import future as of_run
    from gru_training.forecasting.future import require_known

    reading = Times.of_run(run.given), run.config.data
    if data is None:
        recent = of_run.recent_of_run(run)
    elif isinstance(data, str | os.PathLike):
        recent = of_run.recent_of_file(run, Path(data))
    else:
        newer = newer_series("data", data, *reading, of_run.expected_series(run))
        recent = of_run.recent_of_series(run, newer)
    if isinstance(future, str | os.PathLike):
        recent = of_run.with_future_file(run, recent, Path(future))
    elif future is not None:
        expected = of_run.expected_future(run), of_run.future_form(run)
        recent = of_run.with_future(
            run, recent, newer_series("future", future, *reading, *expected)
        )
    require_known(run, recent)
    return recent


def tested_rows(run: "ForecastingRun", data: Any, series: Series | None) -> "ForecastingData":
    """The series on which a run is tested, with its scale and its borders.

    Args:
        run: Complete.
        data: A table or the path of a file; None: as it was trained on.
        series: What it was trained on, where that is at hand.

    Raises:
        TrainingError: The data are not those of the run.
    """
    from gru_training.forecasting.backtest import data_of_run
    from gru_training.forecasting.data import prepare, read_series

    settings = run.config.data
    if isinstance(data, str | os.PathLike):
        settings = replace(settings, data=Path(data))
        series = read_series(settings)
    elif data is not None:
        series = trained_series(data, Times.of_run(run.given), settings)
    elif series is None and run.given is not None:
        raise DataError(f"{run.path} was trained on a table in memory; give it again as `data`")
    return data_of_run(run, prepare(series or read_series(settings), settings))


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
