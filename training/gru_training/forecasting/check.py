"""The check of a series before training; needs no TensorFlow."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from gru_training.data.check import DataCheck, DataTable
from gru_training.data.problems import DataProblemsError, Problems, counted
from gru_training.data.series import Series, people_read
from gru_training.data.time_axis import nanoseconds, rows_at, time_text
from gru_training.errors import ForeignDataError, TrainingError
from gru_training.forecasting.config import ForecastingConfig, ForecastShape
from gru_training.forecasting.series_check import (
    calibration,
    series_problems,
    usable_series,
    window_origins,
)
from gru_training.forecasting.sets import PARTS, borders_of, load_series
from gru_training.forecasting.warm_start import require_continued, starting_run, with_start_settings


def check_forecasting(config: ForecastingConfig) -> DataCheck:
    """Read and check the data of a training.

    Raises:
        ForeignDataError: The columns of the file are not those of a series.
    """
    problems, wanted = series_problems(config.data), config
    series: Series | None = None
    summary = "cannot be used as it is"
    shown: Series | None = None
    try:
        series = load_series(config.data, problems)
        if config.training.warm_start is not None:
            run = starting_run(config)
            wanted = with_start_settings(config, run)
            require_continued(series, wanted, run)
        shown, shape, _ = usable_series(series, wanted.data, problems)
        summary = _summary(shown, shape, wanted)
        config.model.require_lookback(shape.lookback)
        if not problems.errors:
            _check_calibration(shown, shape, wanted, problems)
    except ForeignDataError:
        raise
    except TrainingError as error:
        problems.close_rows()
        found = error.messages if isinstance(error, DataProblemsError) else [str(error)]
        problems.errors += [message for message in found if message not in problems.errors]
    notes = (*(() if series is None else series.notes), *problems.notes)
    return DataCheck(
        problems.source,
        summary,
        None if shown is None else partial(_series_table, shown),
        tuple(problems.errors),
        tuple(problems.remedies),
        notes,
        None if problems.errors else series,
    )


def _check_calibration(
    series: Series, shape: ForecastShape, config: ForecastingConfig, problems: Problems
) -> None:
    """Check that the validation windows can calibrate the intervals."""
    values = series.values[:, list(shape.targets)]
    begin, end = borders_of(series, config.data).part("validation")
    origins = window_origins(values, begin, end, shape.lookback, shape.horizon)
    names = [series.columns[number] for number in shape.targets]
    parts = shape.horizon, series.panel, config.model.levels
    notes, problem = calibration(values, names, origins, *parts)
    for note in notes:
        problems.note(note)
    if problem:
        problems.error(f"{series.source}, {problem}")


def _summary(series: Series, shape: ForecastShape, config: ForecastingConfig) -> str:
    borders = borders_of(series, config.data)
    values = series.values[:, list(shape.targets)]
    steps = shape.lookback, shape.horizon
    windows = ", ".join(
        f"{len(window_origins(values, *borders.part(part), *steps)):,} {part}" for part in PARTS
    )
    first, last = _times(series, [0, -1])
    return (
        f"{rows_at(series.frequency, len(series))} from {first} to {last}; a forecast of "
        f"{counted(shape.horizon, 'step')} reads {shape.lookback}; windows: {windows}"
    )


def _times(series: Series, rows: Sequence[int] | np.ndarray) -> list[str]:
    """Return the times of rows for display; pandas is loaded only if they have a zone."""
    times = series.times[rows]
    if series.numbered:
        return list(map(str, nanoseconds(times)))
    if series.zone is None:
        return list(map(time_text, times))
    zone = series.frequency, series.zone, series.local
    return list(map(str, people_read(series.index[rows], *zone)))


def _series_table(series: Series) -> DataTable:
    """List each column with the number of its values, its first time, and some values."""
    rows = []
    inputs = series.input_columns
    for name, column in zip(series.columns, series.values.T, strict=True):
        if name in inputs:
            continue
        seen = np.flatnonzero(np.isfinite(column))
        if not len(seen):
            rows.append((name, "0", f"{len(column):,}", *[""] * 5))
            continue
        values = column[seen]
        ends = (time.removesuffix(" 00:00:00") for time in _times(series, seen[[0, -1]]))
        numbers = (f"{number:,.6g}" for number in np.quantile(values, (0, 0.5, 1)))
        rows.append((name, f"{len(seen):,}", f"{len(column) - len(seen):,}", *ends, *numbers))
    header = ("series", "values", "missing", "from", "to", "least", "median", "most")
    return DataTable(header, rows)
