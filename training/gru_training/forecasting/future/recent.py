"""The steps from which a forecast of the future begins; needs no TensorFlow."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from gru_training.data.even_series import ExpectedSeries
from gru_training.data.long_form import LongColumns
from gru_training.data.series import Series
from gru_training.data.series_file import read_series
from gru_training.errors import DataError, RunDirectoryError
from gru_training.forecasting.run import ForecastingRun

if TYPE_CHECKING:
    from gru_training.forecasting.data import ForecastingData

FILE = "last_window.npz"
"""Of a run: `values` (L, C) float32 of the last steps of its series, `times` (L,) in ns, and
`future` (n, F), known inputs after it."""


@dataclass(frozen=True)
class Recent:
    """The last L steps before a forecast."""

    times: pd.DatetimeIndex
    """(L,)."""
    values: np.ndarray
    """(L, C) float32 in raw units, NaN where a value is missing."""
    future: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.float32))
    """(n, F) float32, known inputs of the steps after it."""
    notes: tuple[str, ...] = ()
    """What a reader of the forecast should know."""

    def future_of(self, steps: int) -> tuple[int, np.ndarray]:
        """Of how many of the steps after it inputs are known, and their values, (steps, F).

        After the last one that is known they are NaN.
        """
        known = self.future[:steps]
        padding = np.full((steps - len(known), self.future.shape[1]), np.nan, np.float32)
        return len(known), np.vstack([known, padding])


def last_window(data: "ForecastingData") -> Recent:
    """What a run keeps of its series."""
    from gru_training.forecasting.stored import given_ahead  # needs TensorFlow

    series, lookback = data.series, data.shape.lookback
    end = _end(series.values[:, list(data.shape.targets)])
    kept = slice(max(0, end - lookback), end)
    after = series.values[end:]
    if series.ahead is not None:
        after = np.vstack([after, series.ahead])
    return Recent(
        series.times[kept].as_unit("ns"),
        series.values[kept].astype(np.float32),
        _known(after[:, given_ahead(data)]),
    )


def recent_of_run(run: ForecastingRun) -> Recent:
    """The end of the series that a run was trained on.

    Raises:
        RunDirectoryError: The run is of an earlier version, which kept none.
    """
    if not (run.path / FILE).is_file():
        raise RunDirectoryError(
            f"{run.path} holds no end of its series, as runs of earlier versions; give the newest "
            "values with --data"
        )
    kept = run.arrays(FILE)
    future = kept.get("future", np.empty((0, 0), np.float32))
    return Recent(pd.DatetimeIndex(kept["times"].astype("M8[ns]")), kept["values"], future)


def expected_series(run: ForecastingRun) -> ExpectedSeries:
    """What newer values must be like: the columns of the run, those it adds itself left out.

    Columns that no forecast depends on may be absent.
    """
    columns = tuple(name for name in run.columns if name not in run.calendar.columns)
    read = set(read_columns(run))
    return ExpectedSeries(
        columns, run.frequency, tuple(name for name in columns if name not in read)
    )


def read_columns(run: ForecastingRun) -> tuple[str, ...]:
    """The columns that a forecast depends on."""
    if not run.config.model.channel_independent:
        return run.columns
    return (*run.target_columns, *run.series.future_columns)


def recent_of_file(run: ForecastingRun, path: Path) -> Recent:
    """The end of newer values in a file.

    Raises:
        DataError: As `recent_of_series`, or the file cannot be used.
    """
    settings = run.config.data
    expected = expected_series(run)
    return recent_of_series(
        run,
        read_series(
            path,
            settings.time_column,
            settings.time_format,
            expected=expected,
            long=settings.long,
            options=settings.times,
            given=settings.text_format,
        ),
    )


def recent_of_series(run: ForecastingRun, series: Series) -> Recent:
    """The end of newer values of the series of a run.

    Rows at the end without a value of any column that is forecast are what is to be forecast, and
    are left out. Too few rows are appended to the end of the run's own series where they continue
    it.

    Args:
        run: Complete.
        series: With the columns of `expected_series`, in that order.

    Raises:
        DataError: There are too few rows, or a column has no value in those read.
    """
    notes = list(series.notes)
    targets = [series.column(name) for name in run.target_columns if name in series.columns]
    end = _end(series.values[:, targets])
    inputs = run.series.future_columns
    if not end:
        raise DataError(
            f"{series.source}: expected values of {', '.join(run.target_columns)}, got none"
            + "; give values of known inputs alone with --future" * bool(inputs)
        )
    times, values = series.times[:end], series.values[:end]
    left = len(series) - end
    future = _known(series.values[end:][:, [series.column(name) for name in inputs]])
    if left and not len(future):
        notes.append(
            f"the last {left:,} rows have no value of {', '.join(run.target_columns)} and were "
            f"left out; the forecast begins after {times[-1]}"
        )
    if run.calendar.columns:
        values = np.column_stack([values, run.calendar.values(times)])
    lookback = run.shape.lookback
    if len(times) < lookback:
        times, values, before = _after_run(run, times, values, series.source)
        notes.append(f"{before:,} steps before {times[before]} are from the run's own series")
    read = values[-lookback:].astype(np.float32)
    recent = Recent(times[-lookback:], read, future, tuple(notes))
    if not run.series.panel:
        _require_values(run, recent, series.source)
    return recent


def with_future_file(run: ForecastingRun, recent: Recent, path: Path) -> Recent:
    """The same with the known inputs of a file.

    Raises:
        DataError: As `with_future`, or the file cannot be used.
    """
    settings = run.config.data
    _require_future(run)
    expected = expected_future(run)
    reading = path, settings.time_column, settings.time_format
    long = future_form(run)
    series = read_series(
        *reading,
        expected=expected,
        long=long,
        options=settings.times,
        given=settings.text_format,
    )
    return with_future(run, recent, series)


def future_form(run: ForecastingRun) -> LongColumns:
    """How a table of known inputs is read: as that of the run, without values to forecast."""
    long = run.config.data.long
    return replace(long, valued=False, required=bool(run.series.inputs))


def expected_future(run: ForecastingRun) -> ExpectedSeries:
    """What known inputs must be like: their columns and spacing."""
    return ExpectedSeries(run.series.future_columns, run.frequency)


def with_future(run: ForecastingRun, recent: Recent, known: Series) -> Recent:
    """The same with the known inputs of the steps after it.

    Args:
        run: Complete.
        recent: Of the run.
        known: With the columns of `expected_future`; its first times may lie before.

    Raises:
        DataError: The run knows no such inputs, or the step after `recent` is not among them.
    """
    _require_future(run)
    following = pd.date_range(recent.times[-1], periods=2, freq=run.frequency)[1]
    after = known.times >= following
    if not after.any() or known.times[after][0] != following:
        raise DataError(
            f"{known.source}: expected {', '.join(run.series.future_inputs)} from {following} on, "
            f"the first step to forecast; got {known.times[0]} to {known.times[-1]}"
        )
    found = _known(known.values[after])
    if not len(found):
        raise DataError(f"{known.source}: expected values from {following} on, got none")
    notes = [*recent.notes, *known.notes]
    return replace(recent, future=found, notes=tuple(notes))


def _require_future(run: ForecastingRun) -> None:
    if not run.series.future_columns:
        raise DataError(
            f"--future: {run.path} reads no known inputs; train with --future NAME for that"
        )


def _known(inputs: np.ndarray) -> np.ndarray:
    """(n, F) float32 of the steps until the last of which any input is known."""
    seen = np.flatnonzero(np.isfinite(inputs).any(axis=1))
    return inputs[: int(seen[-1]) + 1 if len(seen) else 0].astype(np.float32)


def _end(targets: np.ndarray) -> int:
    """The number of rows until the last with any value, of (rows, K)."""
    seen = np.flatnonzero(np.isfinite(targets).any(axis=1))
    return int(seen[-1]) + 1 if len(seen) else 0


def _after_run(
    run: ForecastingRun, times: pd.DatetimeIndex, values: np.ndarray, source: str
) -> tuple[pd.DatetimeIndex, np.ndarray, int]:
    """The rows with the end of the run's own series before them, and how many those are."""
    lookback = run.shape.lookback
    try:
        kept = recent_of_run(run)
    except RunDirectoryError:
        kept = None
    joined = None
    if kept is not None and kept.times[0] <= times[0]:
        before = kept.times < times[0]
        joined = kept.times[before].append(times)
        whole = pd.date_range(joined[0], joined[-1], freq=run.frequency)
        if len(whole) != len(joined) or len(joined) < lookback:
            joined = None
    if kept is None or joined is None:
        ends = "" if kept is None else f", or rows that go on from {kept.times[-1]}"
        raise DataError(
            f"{source}: expected at least the {lookback} steps that the model reads{ends}; got "
            f"{len(times)} from {times[0]} to {times[-1]}"
        )
    return joined.as_unit("ns"), np.vstack([kept.values[before], values]), int(before.sum())


def _require_values(run: ForecastingRun, recent: Recent, source: str) -> None:
    for name in read_columns(run):
        if not np.isfinite(recent.values[:, run.columns.index(name)]).any():
            raise DataError(
                f"{source}, column {name!r}: expected a value in the "
                f"{len(recent.times)} steps that the model reads, {recent.times[0]} to "
                f"{recent.times[-1]}; got none"
            )
