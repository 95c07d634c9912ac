"""The rows of a series that goes on: those that a run had, and newer ones behind them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from gru_training.data.digest import data_digest
from gru_training.data.even_series import ExpectedSeries
from gru_training.data.problems import Problems, counted
from gru_training.data.series import Series
from gru_training.data.series_file import read_series
from gru_training.errors import DataError, RunDirectoryError, TrainingError
from gru_training.forecasting.config import ForecastingConfig
from gru_training.forecasting.future.recent import recent_of_run
from gru_training.forecasting.run import ForecastingRun
from gru_training.forecasting.sources.series_check import series_problems
from gru_training.forecasting.sources.sets import load_series

_NAMES_SHOWN = 8


def problems_of(config: ForecastingConfig) -> Problems:
    """Where to collect what is wrong with the rows of these settings."""
    if config.continued is None:
        return series_problems(config.data)
    data = config.data
    return Problems(str(config.continued.new_data), data.drop_bad, data.sort_rows)


def read_whole(config: ForecastingConfig, problems: Problems | None = None) -> Series:
    """The series of a training, whether it is the first or goes on from a run.

    Args:
        config: Every setting.
        problems: Told of rows and cells that cannot be used; by default they raise.

    Raises:
        DataError: Rows cannot be used, or are not those of the run.
    """
    found = problems or problems_of(config)
    if config.continued is None:
        series = load_series(config.data, found)
    else:
        run = ForecastingRun.open(config.continued.from_run)
        new = _read_new(run, config, config.continued.new_data, found)
        series = joined(run, old_rows(run, new), new)
    if problems is None:
        found.raise_errors()
    return series


def expected_further(run: ForecastingRun) -> ExpectedSeries:
    """What new rows must be like: all columns of the run; of a panel further series may come."""
    columns = tuple(name for name in run.columns if name not in run.calendar.columns)
    return ExpectedSeries(columns, run.frequency, further=run.series.panel)


def old_rows(run: ForecastingRun, new: Series | None = None) -> Series:
    """The rows that a run was made of, without what it makes of the times.

    Args:
        run: Whose.
        new: The rows it goes on with. Where those of the run are gone, and these have them all,
            they are taken from here.

    Raises:
        DataError: There are none that are recognised.
    """
    refusal: TrainingError | None = None
    for series in _sources(run, new):
        if isinstance(series, TrainingError):
            refusal = refusal or series
            continue
        rows = until_run(run, series)
        if rows is not None:
            return rows
    if refusal is not None:
        raise DataError(f"the old rows of {run.path} cannot be read again: {refusal}")
    raise DataError(
        f"the old rows of {run.path} are not those it was trained on; expected "
        f"{run.config.data.data or 'the series'} as it was then, at least until "
        f"{run.series.last_time}"
    )


def _sources(run: ForecastingRun, new: Series | None) -> Iterator[Series | TrainingError]:
    try:
        yield read_whole(run.config)
    except TrainingError as error:
        yield error
    if new is not None:
        yield new


def until_run(run: ForecastingRun, series: Series) -> Series | None:
    """The first rows of a series where they are those that a run was made of, else None."""
    made = run.calendar.columns
    names = [name for name in run.columns if name not in made]
    if not set(names) <= set(series.columns):
        return None
    end = int(series.times.searchsorted(pd.Timestamp(run.series.last_time), side="right"))
    times = series.times[:end]
    values = series.values[:end, [series.column(name) for name in names]]
    rows = replace(
        series, columns=tuple(names), values=values, times=times, notes=(), ahead=None,
        frequency=run.frequency, calendar=type(run.calendar)(),
    )  # fmt: skip
    return rows if end and _recognised(run, with_calendar(run, rows)) else None


def with_calendar(run: ForecastingRun, series: Series) -> Series:
    """The same with the columns that the run makes of the times, at the end."""
    made = run.calendar.columns
    if not made:
        return series
    return replace(
        series,
        columns=(*series.columns, *made),
        values=np.column_stack([series.values, run.calendar.values(series.times)]),
        calendar=run.calendar,
    )


def _recognised(run: ForecastingRun, series: Series) -> bool:
    """Whether these are the rows of the run: by their digest, in older runs by the last ones."""
    recorded = run.metrics["data"].get("digest")
    if recorded is not None:
        return bool(recorded == data_digest(series.contents()))
    try:
        kept = recent_of_run(run)
    except RunDirectoryError:
        return False
    same = str(series.times[0]) == run.series.first_time
    last = series.values[-len(kept.times) :].astype(np.float32)
    return (
        same
        and str(series.times[-1]) == run.series.last_time
        and np.array_equal(series.times[-len(kept.times) :].asi8, kept.times.asi8)
        and np.array_equal(last, kept.values, equal_nan=True)
    )


def _read_new(
    run: ForecastingRun, config: ForecastingConfig, path: Path, problems: Problems
) -> Series:
    data = config.data
    return read_series(
        path,
        data.time_column,
        data.time_format,
        problems=problems,
        expected=expected_further(run),
        long=replace(data.long, required=run.series.panel),
        options=data.times,
        given=data.text_format,
    )


def joined(run: ForecastingRun, old: Series, new: Series) -> Series:
    """Old rows and new ones behind them, with a row for each step between them.

    Rows of times that the run knows are left out, but for series that it does not know.

    Args:
        run: Whose the old ones are.
        old: Of `old_rows`.
        new: With the columns of `expected_further`.

    Raises:
        DataError: No row is new, or the new ones are off the steps of the old ones.
    """
    if old.panel != new.panel:
        raise DataError(
            f"{new.source}: expected a table in {'long' if old.panel else 'wide'} form, as that of "
            f"{run.path}"
        )
    first = old.times[-1]
    later = new.times > first
    if not later.any():
        raise DataError(
            f"{new.source}: expected rows after {first}, the last time of {run.path}, got none; "
            f"its last one is {new.times[-1]}"
        )
    ahead = pd.date_range(first, new.times[-1], freq=run.frequency)[1:]
    times = old.times.append(ahead).as_unit(old.times.unit)
    places = times.get_indexer(new.times)
    if (places[later] < 0).any():
        off = new.times[later][places[later] < 0][0]
        raise DataError(
            f"{new.source}: expected times every {run.frequency} after {first}, as in {run.path}, "
            f"got {off}"
        )
    apart, usual = _steps_apart(new.values[later]), _steps_apart(old.values)
    if apart > usual:
        raise DataError(
            f"{new.source}: expected a row every {usual:g} steps of {run.frequency}, as in "
            f"{run.path}, got one every {apart:g} steps"
        )
    count, known = len(old), len(old.columns)
    values = np.full((len(times), len(new.columns)), np.nan)
    there = places >= 0
    values[places[there]] = new.values[there]
    again = np.isfinite(values[:count, :known])
    differ = int((again & (values[:count, :known] != old.values)).sum())
    values[:count, :known] = old.values
    notes = list(new.notes)
    repeated = int((~later).sum())
    if repeated:
        notes.append(
            f"{counted(repeated, 'row')} of times that {run.path} knows left out"
            + (f"; {counted(differ, 'value')} of them differ, the old ones stay" if differ else "")
        )
    missing = len(ahead) - int(later.sum())
    if missing:
        notes.append(
            f"{counted(missing, 'step')} between the old rows and the new ones or within these "
            "are missing values"
        )
    added = new.columns[known:]
    if added:
        notes.append(
            f"{len(added):,} new series: {', '.join(added[:_NAMES_SHOWN])}"
            + (" ..." if len(added) > _NAMES_SHOWN else "")
        )
        if run.series.inputs or run.calendar.columns:
            raise DataError(
                f"{new.source}: got {added[0]!r}, which {run.path} does not know; of a run with "
                "known inputs expected no further series; train anew on all rows"
            )
    series = replace(
        old, name=run.series.name, source=new.source, columns=new.columns, values=values,
        times=times, notes=tuple(notes), ahead=new.ahead,
    )  # fmt: skip
    return with_calendar(run, series)


def _steps_apart(values: np.ndarray) -> float:
    """The median of the steps between rows with any value, 1 where there are hardly any."""
    seen = np.flatnonzero(np.isfinite(values).any(axis=1))
    return float(np.median(np.diff(seen))) if len(seen) > 1 else 1.0
