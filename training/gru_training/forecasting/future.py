"""Forecasts of a series: their starting point, their computation, and `gru-train forecast`.

Only the computation needs TensorFlow, where the run has no graph.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from gru_serving.preprocessing.operations import Arrays
from gru_serving.preprocessing.series import MEDIAN, calibrated
from gru_training.data.calendar import Calendar
from gru_training.data.even_series import ExpectedSeries
from gru_training.data.long_form import LongColumns
from gru_training.data.problems import MOST_NAMED, counted, first_names, values_shown
from gru_training.data.series import Series, counts_steps
from gru_training.errors import ConfigError, DataError
from gru_training.forecasting.config import ForecastConfig, ForecasterConfig
from gru_training.forecasting.graph import graph_predictor
from gru_training.forecasting.run import ForecastingRun, given_ahead
from gru_training.forecasting.series_check import (
    MAX_OUTLIER_SHARE,
    OUTLIER_DEVIATIONS,
    UNIT_RATIO,
    series_problems,
)
from gru_training.forecasting.sets import read_file
from gru_training.tables.table_writer import (
    FileKind,
    file_kind,
    put_in_place,
    require_writable,
    unwritten,
)
from gru_training.task import start_tensorflow

if TYPE_CHECKING:
    from gru_training.forecasting.data import ForecastingData
    from gru_training.forecasting.preprocessor import Predictor, SeriesPreprocessor
MOST_STREAMED = 10_000
"""Number of last steps that a streaming model reads; it has forgotten the earlier ones."""
_OTHER_SIZE = 3
"""Ratio to earlier inputs from which the size of inputs far from them is noted."""
FILE = "last_window.npz"
"""File of a run with `values` (L, C) float32 of the last steps of its series, `times` (L,) in ns,
and `future` (n, F), known inputs after them.
"""


@dataclass(frozen=True)
class Recent:
    """The last L steps before a forecast."""

    times: pd.DatetimeIndex
    """Times of the steps, (L,)."""
    values: np.ndarray
    """(L, C) float32 in raw units, NaN where a value is missing."""
    future: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.float32))
    """(n, F) float32, known inputs of the steps after the last one."""
    notes: tuple[str, ...] = ()
    """Notes for a reader of the forecast."""
    unknown: tuple[str, ...] = ()
    """Names of series that the model does not know."""
    unknown_values: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.float32))
    """Their values until the same last step, (T, U) float32."""

    def future_of(self, steps: int) -> tuple[int, np.ndarray]:
        """Return the number of steps ahead with known inputs, and their values (steps, F).

        Values after the last known one are NaN.
        """
        known = self.future[:steps]
        padding = np.full((steps - len(known), self.future.shape[1]), np.nan, np.float32)
        return len(known), np.vstack([known, padding])


def steps_read(config: ForecasterConfig, lookback: int) -> int:
    """Return the most steps that a forecast reads: all available ones for a streaming model.

    Args:
        config: Settings of the networks.
        lookback: Look-back of the model.
    """
    return max(lookback, MOST_STREAMED) if config.streams else lookback


def last_window(data: "ForecastingData", config: ForecasterConfig) -> Recent:
    """Cut the end of a series from which a run forecasts."""
    series, lookback = data.series, steps_read(config, data.shape.lookback)
    end = _end(series.values[:, list(data.shape.targets)])
    kept = slice(max(0, end - lookback), end)
    after = series.values[end:]
    if series.ahead is not None:
        after = np.vstack([after, series.ahead])
    return Recent(
        series.index[kept],
        series.values[kept].astype(np.float32),
        _known(after[:, given_ahead(data)]),
    )


def recent_of_run(run: ForecastingRun) -> Recent:
    """Return the end of the series on which a run was trained.

    Raises:
        RunDirectoryError: The file is missing or damaged.
    """
    kept = run.arrays(FILE)
    times = pd.DatetimeIndex(kept["times"].astype("M8[ns]"))
    return Recent(times, kept["values"], kept["future"])


def write_recent(recent: Recent, folder: Path) -> None:
    """Write the end of a series to a run directory, for `recent_of_run`."""
    times = recent.times.as_unit("ns").asi8
    np.savez(folder / FILE, times=times, values=recent.values, future=recent.future)


def expected_series(run: ForecastingRun) -> ExpectedSeries:
    """Return columns and spacing that newer values must have, without computed columns.

    Columns that no forecast depends on may be absent.
    """
    columns = _given_columns(run)
    read = set(read_columns(run))
    return _continued(run, columns)._replace(
        optional=tuple(name for name in columns if name not in read)
    )


def _given_columns(run: ForecastingRun) -> tuple[str, ...]:
    """List the columns of a run except those of the calendar, which it computes."""
    return tuple(name for name in run.columns if name not in run.series.calendar.columns)


def _continued(run: ForecastingRun, columns: tuple[str, ...]) -> ExpectedSeries:
    """Describe the columns that newer rows must have, and the times of a run."""
    series, times = run.series, recent_of_run(run).times.to_numpy()
    return ExpectedSeries(
        columns,
        run.frequency,
        zone=series.zone,
        local=series.local,
        numbered=counts_steps(times, run.frequency),
        constants=series.constant_columns,
    )


def read_columns(run: ForecastingRun) -> tuple[str, ...]:
    """List the columns that a forecast depends on."""
    if not run.config.model.channel_independent:
        return run.columns
    return (*run.target_columns, *run.series.future_columns)


def recent_of_file(run: ForecastingRun, path: Path) -> Recent:
    """Read the end of newer values in a file.

    Raises:
        DataError: The file cannot be used, or its values do not suit, see `recent_of_series`.
    """
    return recent_of_series(run, newer_of_file(run, path))


def newer_of_file(run: ForecastingRun, path: Path) -> Series:
    """Read newer values of the series of a run from a file.

    Raises:
        DataError: The file cannot be used.
    """
    return _read_newer(run, path, expected=expected_series(run), long=run.config.data.long)


def _read_newer(run: ForecastingRun, path: Path, **form: Any) -> Series:
    """Read a file as the run's own, whose rows may be sorted and left out."""
    problems = series_problems(replace(run.config.data, data=path))
    series = read_file(path, run.config.data, problems=problems, **form)
    problems.remedies.clear()  # which are flags of a training
    problems.raise_errors()
    return series


def recent_of_series(run: ForecastingRun, series: Series, known: Recent | None = None) -> Recent:
    """Return the end of newer values of the series of a run.

    Rows at the end without a value of any forecast column are the steps to forecast, and are left
    out. Too few rows, in a panel those of each series, are appended to the steps that are known
    already if they continue these.

    Args:
        run: Complete run.
        series: Newer values, with the columns of `expected_series` in that order.
        known: Steps known already; by default the end of the run's own series.

    Raises:
        DataError: There are too few rows, or a column has no value in those read.
    """
    newer, known = _until_last_value(run, series), known or recent_of_run(run)
    lookback = run.shape.lookback
    kept = steps_read(run.config.model, lookback)
    if run.series.panel:
        newer = _begun(run, known, newer, kept)
    times, values, notes = newer.times, newer.values, newer.notes
    notes += _other_units(run, values[-kept:], known.values)
    seen = np.isfinite(values[:, list(run.shape.targets)]).any()
    if len(times) < lookback and not seen:  # series that the model does not know, alone
        padding = lookback - len(times)
        times = pd.date_range(end=times[-1], periods=lookback, freq=run.frequency).as_unit("ns")
        values = np.vstack([np.full((padding, values.shape[1]), np.nan), values])
    elif len(times) < lookback:
        times, values, before = _after_known(run, known, newer, series.source)
        begin = run.people_read(times)[before]
        notes += (f"{before:,} steps before {begin} are from the run's own series",)
    read = values[-kept:].astype(np.float32)
    recent = replace(newer, times=times[-kept:], values=read, notes=notes)
    _require_values(run, recent, series.source)
    return recent


def continued(run: ForecastingRun, known: Recent, series: Series) -> Recent:
    """Append the next rows of a series to the steps before a forecast.

    As many steps are kept as a forecast reads.

    Args:
        run: Complete run.
        known: Steps known already.
        series: Rows from the step after these on, with the columns of `expected_series`. Rows at
            the end without a value of any forecast column hold known inputs of the steps ahead.

    Raises:
        DataError: The rows begin at another step, are of unknown series, or hold no value.
    """
    newer = _until_last_value(run, series)
    if newer.unknown:
        raise DataError(
            f"{series.source}: expected the series of the training, got "
            f"{first_names(newer.unknown)}; predict(data=...) forecasts unknown "
            "series from their own history"
        )
    following = future_times(known.times[-1], run.frequency, 1)
    if newer.times[0] != following[0]:
        expected, got = run.people_read(following)[0], run.people_read(newer.times)
        raise DataError(
            f"{series.source}: expected rows from {expected} on, the step after the last known "
            f"one, got rows from {got[0]} to {got[-1]}; predict(data=...) forecasts after rows of "
            "any time"
        )
    kept = steps_read(run.config.model, run.shape.lookback)
    times = known.times.append(newer.times)[-kept:].as_unit("ns")
    values = np.vstack([known.values, newer.values])[-kept:].astype(np.float32)
    future = newer.future if len(newer.future) else known.future[len(newer.times) :]
    notes = newer.notes + _other_units(run, newer.values[-kept:], known.values)
    recent = Recent(times, values, future, notes)
    _require_values(run, recent, series.source)
    return recent


def _other_units(run: ForecastingRun, newer: np.ndarray, known: np.ndarray) -> tuple[str, ...]:
    """Write notes on targets that seem to be in another unit than before.

    Their level has moved by `OUTLIER_DEVIATIONS` standard deviations of the training rows, or level
    and spread have both grown or shrunk by `UNIT_RATIO`.

    Args:
        run: Complete run.
        newer: Newer rows, (T, C) in raw units.
        known: Steps known already, (L, C).
    """
    notes = list[str]()
    for target in run.shape.targets:
        now, before = (
            column[np.isfinite(column)].astype(np.float64)
            for column in (newer[:, target], known[:, target])
        )
        if not len(now) or not len(before) or run.columns[target] in run.series.constants:
            continue
        level, level_before = float(np.median(now)), float(np.median(before))
        moved = abs(level - level_before) > OUTLIER_DEVIATIONS * run.deviations[target]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.array([level, now.std()]) / (level_before, before.std())
        scaled = (ratios > UNIT_RATIO).all() or ((ratios > 0) & (ratios < 1 / UNIT_RATIO)).all()
        if moved or scaled:
            notes.append(
                f"{run.columns[target]} is about {level:g} in the newer rows, and {level_before:g} "
                "at the end of the earlier ones: are both in the same unit?"
            )
        if len(notes) == MOST_NAMED:
            break
    return tuple(notes)


def _until_last_value(run: ForecastingRun, series: Series) -> Recent:
    """Return all rows until the last with a value of any forecast column.

    The rows after it hold the known inputs of the steps ahead.
    """
    notes = list(series.notes)
    series, unknown = _told_apart(run, series)
    targets = [series.column(name) for name in run.target_columns if name in series.columns]
    end = _end(np.column_stack([series.values[:, targets], unknown.values]))
    inputs = run.series.future_columns
    if not end:
        raise DataError(
            f"{series.source}: expected values of {', '.join(run.target_columns)}, got none"
            + "; give values of known inputs alone with --future" * bool(inputs)
        )
    times, values = series.index[:end], series.values[:end]
    left = len(series) - end
    future = _known(series.values[end:][:, [series.column(name) for name in inputs]])
    if left and not len(future):
        notes.append(
            f"the last {left:,} rows have no value of {', '.join(run.target_columns)} and were "
            f"left out; the forecast begins after {run.people_read(times)[-1]}"
        )
    if run.series.calendar.columns:
        values = np.column_stack([values, run.series.calendar.values(times)])
    others = unknown.columns, unknown.values[:end].astype(np.float32)
    return Recent(times, values, future, tuple(notes), *others)


def _told_apart(run: ForecastingRun, series: Series) -> tuple[Series, Series]:
    """Separate newer values of the series that a run knows from others, which come last."""
    count = len(_given_columns(run)) if run.series.panel else len(series.columns)
    known = replace(series, columns=series.columns[:count], values=series.values[:, :count])
    others = replace(series, columns=series.columns[count:], values=series.values[:, count:])
    return known, others


def _ended(run: ForecastingRun, recent: Recent) -> list[str]:
    """Write notes on series of a panel without a forecast, and on those without newer values."""
    seen = np.isfinite(recent.values[:, list(run.shape.targets)])
    there, lacking = seen.any(axis=0), seen[::-1].argmax(axis=0)
    ended = [name for name, is_there in zip(run.target_columns, there, strict=True) if not is_there]
    old = [
        f"{name} ({counted(steps, 'step')})"
        for name, steps in zip(run.target_columns, lacking.tolist(), strict=True)
        if steps
    ]
    notes = list[str]()
    if ended and run.series.panel:
        notes.append(
            f"no forecast for {first_names(ended)}: no value in the last "
            f"{len(recent.times)} steps, which the model reads"
        )
    if old:
        notes.append(
            f"no value just before the forecast: {first_names(old)}; the intervals "
            "are those of series that go on"
        )
    return notes


def _other_inputs(run: ForecastingRun, recent: Recent) -> list[str]:
    """Write notes on known inputs that are missing ahead, or of another size than before.

    Args:
        run: Complete run.
        recent: Steps before a forecast, and the inputs after them.
    """
    notes, lacking = list[str](), list[str]()
    for name, ahead in zip(run.series.future_columns, recent.future.T, strict=False):
        column = run.columns.index(name)
        if count := int(np.isnan(ahead[: run.shape.horizon]).sum()):
            lacking.append(f"{name} ({counted(count, 'step')})")
        sizes = (np.abs(recent.values[:, column]), np.abs(ahead[: run.shape.horizon]))
        before, after = (size[np.isfinite(size)] for size in sizes)
        if not len(before) or not len(after) or not before.any():
            continue
        least, most, largest = before.min(), before.max(), after.max()
        far = largest - most > OUTLIER_DEVIATIONS * run.deviations[column]
        if (far and largest > _OTHER_SIZE * most) or 0 < UNIT_RATIO * largest < least:
            notes.append(
                f"{name} is up to {largest:g} in the steps to forecast, and {most:g} before: are "
                "both in the same unit?"
            )
    if lacking:
        notes.insert(
            0,
            f"not known in the steps to forecast: {first_names(lacking)}; the last "
            "value before stands in",
        )
    return notes[:MOST_NAMED]


def with_future_file(run: ForecastingRun, recent: Recent, path: Path) -> Recent:
    """Add the known inputs of a file.

    Raises:
        DataError: The file cannot be used, or its inputs do not suit, see `with_future`.
    """
    _require_future(run)
    form = {"expected": expected_future(run), "long": future_form(run)}
    return with_future(run, recent, _read_newer(run, path, **form))


def future_form(run: ForecastingRun) -> LongColumns:
    """Return the form of a table of known inputs: that of the run, without values to forecast."""
    long = run.config.data.long
    return replace(long, valued=False, required=bool(run.series.inputs))


def expected_future(run: ForecastingRun) -> ExpectedSeries:
    """Return columns and spacing that known inputs must have."""
    return _continued(run, run.series.future_columns)


def with_future(run: ForecastingRun, recent: Recent, known: Series) -> Recent:
    """Add the known inputs of the steps ahead.

    Args:
        run: Complete run.
        recent: Steps before the forecast.
        known: Known inputs, the columns of `expected_future`; its first times may lie before.

    Raises:
        DataError: The run knows no such inputs, or the step after `recent` is not among them.
    """
    _require_future(run)
    following = future_times(recent.times[-1], run.frequency, 1)[0]
    times = known.index
    after = times >= following
    if not after.any() or times[after][0] != following:
        raise DataError(
            f"{known.source}: expected {', '.join(run.series.future_inputs)} from {following} on, "
            f"the first step to forecast; got {times[0]} to {times[-1]}"
        )
    found = _known(known.values[after])
    if not len(found):
        raise DataError(
            f"{known.source}: expected values from {following} on, got "
            + ("; ".join(known.notes) or "none")
        )
    notes = [*recent.notes, *known.notes]
    return replace(recent, future=found, notes=tuple(notes))


def _require_future(run: ForecastingRun) -> None:
    if not run.series.future_columns:
        raise DataError(
            f"--future: {run.path} reads no known inputs; train with --future NAME for that"
        )


def _known(inputs: np.ndarray) -> np.ndarray:
    """Cut inputs (n, F) float32 after the last step with any known input."""
    seen = np.flatnonzero(np.isfinite(inputs).any(axis=1))
    return inputs[: int(seen[-1]) + 1 if len(seen) else 0].astype(np.float32)


def _end(targets: np.ndarray) -> int:
    """Count the rows until the last with any value, of (rows, K)."""
    seen = np.flatnonzero(np.isfinite(targets).any(axis=1))
    return int(seen[-1]) + 1 if len(seen) else 0


def _after_known(
    run: ForecastingRun, known: Recent, newer: Recent, source: str
) -> tuple[pd.DatetimeIndex, np.ndarray, int]:
    """Return newer rows preceded by known ones, and the number of these."""
    lookback, times = run.shape.lookback, newer.times
    before = known.times < times[0]
    joined = known.times[before].append(times)
    whole = pd.date_range(joined[0], joined[-1], freq=run.frequency)
    goes_on = known.times[0] <= times[0] and len(whole) == len(joined) and (whole == joined).all()
    if not goes_on or len(joined) < lookback:
        raise DataError(
            f"{source}: expected at least the {lookback} steps that the model reads, or rows that "
            f"go on from {known.times[-1]}; got {len(times)} from {times[0]} to {times[-1]}"
        )
    values = np.vstack([known.values[before], newer.values])
    return joined.as_unit("ns"), values, int(before.sum())


def _begun(run: ForecastingRun, known: Recent, newer: Recent, kept: int) -> Recent:
    """Return newer rows of a panel, in whose last `kept` known values precede the first of each.

    A series without any newer value stays without.
    """
    seen = np.isfinite(newer.values)
    absent = (np.cumsum(seen, axis=0) == 0) & seen.any(axis=0)
    values = np.full_like(newer.values, np.nan)
    places = known.times.get_indexer(newer.times)
    values[places >= 0] = known.values[places[places >= 0]]
    filled = absent & np.isfinite(values)
    filled[:-kept] = False
    names = [run.columns[target] for target in run.shape.targets if filled[:, target].any()]
    if not names:
        return newer
    shown = first_names(names)
    note = f"values before the first newer row of {shown} are from the run's own series"
    values = np.where(filled, values, newer.values)
    return replace(newer, values=values, notes=(*newer.notes, note))


def _require_values(run: ForecastingRun, recent: Recent, source: str) -> None:
    """Raise DataError if a column has no value; series of a panel may have ended."""
    if run.series.panel:
        return
    for name in read_columns(run):
        if not np.isfinite(recent.values[:, run.columns.index(name)]).any():
            raise DataError(
                f"{source}, column {name!r}: expected a value in the "
                f"{len(recent.times)} steps that the model reads, {recent.times[0]} to "
                f"{recent.times[-1]}; got none"
            )


ID, TIME, VALUE = "unique_id", "ds", "forecast"
"""Columns of a forecast, named as in statsforecast; followed by `lo-80`, `hi-80` and so on."""


def forecast(
    run: ForecastingRun,
    recent: Recent,
    horizon: int | None = None,
    predict: "Predictor | None" = None,
    warn: Callable[[str], object] | None = None,
) -> pd.DataFrame:
    """Forecast the steps after a series, in raw units.

    Series that the model does not know are forecast with what it shares among all series, each on
    the scale of its own history.

    Args:
        run: Complete run.
        recent: Steps of this run before the forecast.
        horizon: Steps to forecast; by default all that the model was trained for.
        predict: Result of `make_predictor` for the run, where there is one already.
        warn: Function that shows a note on series that the model does not know.

    Returns:
        A row for each column that is forecast and each step: `unique_id`, the column; `ds`,
        the time; `forecast`; and the bounds of the intervals, the narrower first. Of series of
        unequal length none for those that have ended: without a value in the steps read. A model
        that reads known inputs forecasts the steps of which they are known.

    Raises:
        ConfigError: The model forecasts fewer steps.
        DataError: A known input is missing, see `require_known`.
    """
    steps = require_horizon(run, horizon)
    require_known(run, recent)
    preprocessor = run.preprocessor()
    predict = predict or served_predictor(run)
    parts = recent, run.columns, run.series.calendar, run.frequency, run.offsets, run.levels
    known, values = quantiles_ahead(predict, preprocessor, *parts)
    if far := far_values(run, recent):
        without = recent.values.copy()
        without[tuple(zip(*far, strict=True))] = np.nan
        parts = replace(recent, values=without), *parts[1:]
        values = _spanning(values, quantiles_ahead(predict, preprocessor, *parts)[1], run.levels)
    steps = min(steps, known)
    goes_on = np.isfinite(recent.values[:, list(run.shape.targets)]).any(axis=0)
    times = run.people_read(future_times(recent.times[-1], run.frequency, steps))
    constants = run.series.constants
    found = {
        name: values[:steps, number]
        for number, name in enumerate(run.target_columns)
        if goes_on[number] or not run.series.panel
    }
    said = list[str]()
    for name, ahead in _unknown_ahead(run, recent, said.append).items():
        found[name] = ahead[:steps]
    found |= {name: np.full((steps, len(run.levels)), value) for name, value in constants.items()}
    if not found:
        raise DataError("; ".join(said) or f"{run.path}: no series has values to forecast from")
    if warn is not None:
        for note in said:
            warn(note)
    return pd.concat(
        [
            pd.DataFrame({ID: name, TIME: times, **_columns(ahead, run.levels)})
            for name, ahead in found.items()
        ],
        ignore_index=True,
    )


def served_predictor(run: ForecastingRun) -> "Predictor":
    """Return the steps and the model of forecasts, which answer as an export of the run does."""
    from gru_training.forecasting.network import sequence_of
    from gru_training.forecasting.preprocessor import make_predictor

    model = run.delivered_model()
    sequence = sequence_of(run.shown_network(model), run.config.model)
    return make_predictor(model, run.preprocessor(), sequence)


def _unknown_ahead(
    run: ForecastingRun, recent: Recent, warn: Callable[[str], None]
) -> dict[str, np.ndarray]:
    """Compute quantiles (H, Q) by name for series that the model does not know, if it can."""
    if not recent.unknown:
        return {}
    from gru_training.forecasting.export.one_series import one_series_of
    from gru_training.forecasting.intervals import calibration

    named = first_names(recent.unknown)
    one = None if run.series.future_columns else one_series_of(run, run.delivered_model())
    there = np.isfinite(recent.unknown_values).any(axis=0)
    if one is None:
        warn(
            f"no forecast of {named}, which the model does not know, as it shares too little among "
            f"series; train with them, where --warm-start {run.path} begins with this run"
        )
        return {}
    warn(
        f"{named}: not known to the model, and forecast by what it shares among all series, on the "
        "scale of their own values"
    )
    known = [name for name, is_there in zip(recent.unknown, there, strict=True) if is_there]
    intervals = calibration(run.offsets, run.levels)
    answers = one.quantiles(recent.unknown_values.T[there], intervals)
    return dict(zip(known, answers, strict=True))


def _spanning(values: np.ndarray, others: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """Widen quantiles (H, K, Q) to include the bounds of another forecast."""
    outer = np.where(np.array(levels) < 0.5, np.fmin(values, others), np.fmax(values, others))
    return np.where(np.array(levels) == 0.5, values, outer)


def quantiles_ahead(
    predict: "Predictor",
    preprocessor: "SeriesPreprocessor",
    recent: Recent,
    columns: Sequence[str],
    calendar: Calendar,
    frequency: str,
    offsets: np.ndarray,
    levels: Sequence[float],
) -> tuple[int, np.ndarray]:
    """Forecast the quantiles of the steps after a series, in raw units.

    Args:
        predict: Preprocessing and model.
        preprocessor: Scale of the model.
        recent: The steps before the forecast.
        columns: Names of the C columns read.
        calendar: Calendar inputs, which make some of the columns.
        frequency: Spacing of the steps.
        offsets: (H, K, Q), added to standardised forecasts.
        levels: Levels of the Q quantiles.

    Returns:
        Number of the H steps for which all inputs are known, and (H, K, Q), NaN after these steps.
    """
    raw, known, effects = recent.values[np.newaxis], len(offsets), None
    if preprocessor.future_columns:
        names = [columns[column] for column in preprocessor.future_columns]
        known, future = inputs_ahead(recent, names, calendar, frequency, len(offsets))
        effects = preprocessor.scale.effects(raw, future[np.newaxis], Arrays)
    served = calibrated(predict(raw), offsets, list(levels).index(MEDIAN))
    ahead = np.array(preprocessor.scale.restored(served, 2, effects, Arrays)[0])
    ahead[known:] = np.nan
    return known, ahead


def inputs_ahead(
    recent: Recent, names: Sequence[str], calendar: Calendar, frequency: str, steps: int
) -> tuple[int, np.ndarray]:
    """Collect the inputs of the steps ahead, and count the steps of which all are known.

    Args:
        recent: Steps before the forecast, with the inputs that are given.
        names: Names of the F columns read of the steps ahead.
        calendar: Calendar inputs, which make the others of these columns.
        frequency: Spacing of the steps.
        steps: Number H of steps ahead.

    Returns:
        Number of steps of which all inputs are known, and the inputs (H, F), NaN after these steps.
    """
    known, given = recent.future_of(steps)
    if not any(name in calendar.columns for name in names):
        return known, given
    times = future_times(recent.times[-1], frequency, steps)
    made = calendar.values(times).astype(np.float32)
    places = iter(range(given.shape[1]))
    columns = [
        made[:, calendar.columns.index(name)]
        if name in calendar.columns
        else given[:, next(places)]
        for name in names
    ]
    return known if given.shape[1] else steps, np.column_stack(columns)


def require_horizon(run: ForecastingRun, horizon: int | None) -> int:
    """Return the number of steps to forecast."""
    most = run.shape.horizon
    if horizon is None:
        return most
    if not 1 <= horizon <= most:
        raise ConfigError(
            f"--horizon must be 1 to {most}, the steps that {run.path} was trained for, got "
            f"{horizon}; train with --horizon {horizon} for more"
            if horizon > most
            else f"--horizon must be 1 to {most}, got {horizon}"
        )
    return horizon


def checked(run: ForecastingRun, recent: Recent) -> Recent:
    """Add notes that a reader of the forecast should know.

    Raises:
        DataError: A known input is missing, see `require_known`.
    """
    require_known(run, recent)
    notes = [*recent.notes, *_ended(run, recent), *_other_inputs(run, recent)]
    if constants := run.series.constants:
        shown = values_shown(constants)
        notes.append(f"constant in the training, and forecast as they were: {shown}")
    far = far_values(run, recent)
    for row, column in far[:MOST_NAMED]:
        name, value = run.columns[column], recent.values[row, column]
        notes.append(
            f"{name} is {value:g} at {run.people_read(recent.times)[row]}, far from all other "
            "values: the intervals reach to the forecast without it; leave the cell empty if it is "
            "an error"
        )
    return replace(recent, notes=tuple(notes))


def far_values(run: ForecastingRun, recent: Recent) -> list[tuple[int, int]]:
    """Find rows and columns of the targets' values that are far from those around them.

    Such a value is more than `OUTLIER_DEVIATIONS` standard deviations of the training rows away
    from the median of the window, unlike nearly all others in it.

    Args:
        run: Complete run.
        recent: Steps before a forecast.
    """
    found = list[tuple[int, int]]()
    for target in run.shape.targets:
        column = recent.values[:, target].astype(np.float64)
        if not np.isfinite(column).any() or run.columns[target] in run.series.constants:
            continue
        away = np.abs(column - np.nanmedian(column)) / run.deviations[target]
        rows = np.flatnonzero(away > OUTLIER_DEVIATIONS)
        if len(rows) <= max(1, len(column) * MAX_OUTLIER_SHARE):
            found += [(int(row), target) for row in rows]
    return found


def require_known(run: ForecastingRun, recent: Recent) -> None:
    """Raise DataError if the model reads known inputs and none are given."""
    wanted = run.series.future_inputs
    if wanted and not len(recent.future):
        raise DataError(
            f"{run.path} reads {', '.join(wanted)} of the steps that it forecasts, from "
            f"{future_times(recent.times[-1], run.frequency, 1)[0]} on; give them with --future "
            "FILE, or as rows after the last value in --data"
        )


def future_times(last: pd.Timestamp, frequency: str, steps: int) -> pd.DatetimeIndex:
    """Return the times that follow, in the spacing of the series."""
    return pd.date_range(last, periods=steps + 1, freq=frequency)[1:].as_unit("ns")


def _columns(quantiles: np.ndarray, levels: tuple[float, ...]) -> dict[str, np.ndarray]:
    """Return forecast and bounds by column name, from the quantiles (H, Q) of a series."""
    middle = levels.index(0.5)
    columns = {VALUE: quantiles[:, middle]}
    for inner in range(1, middle + 1):
        low, high = middle - inner, middle + inner
        share = f"{100 * (levels[high] - levels[low]):g}"
        columns |= {f"lo-{share}": quantiles[:, low], f"hi-{share}": quantiles[:, high]}
    return columns


_MOST_ROWS = 60
"""Greatest number of rows of the table on the screen."""


@dataclass(frozen=True)
class ForecastJob:
    """A forecast that has passed all checks that need no model."""

    config: ForecastConfig
    run: ForecastingRun
    recent: Recent
    kind: FileKind | None
    """Kind of the output file; None without a file."""


def check_forecast(config: ForecastConfig, console: Console) -> ForecastJob:
    """Open the run and read the data; needs no TensorFlow.

    Raises:
        TrainingError: Run, data or output cannot be used.
    """
    kind = None
    if config.output is not None:
        kind = file_kind(config.output)
        require_writable(config.output, config.overwrite)
    run = ForecastingRun.open(config.run_path)
    run.config  # noqa: B018  says whether it is a forecaster's
    require_horizon(run, config.horizon)
    with console.status("reading the data ..."):
        recent = recent_of_file(run, config.data) if config.data else recent_of_run(run)
        if config.future is not None:
            recent = with_future_file(run, recent, config.future)
        recent = checked(run, recent)
    for note in recent.notes:
        console.print(f"note: {note}", style="yellow")
    return ForecastJob(config, run, recent, kind)


def run_forecast(job: ForecastJob, console: Console) -> None:
    """Forecast, and print or write the result.

    Raises:
        TrainingError: The model cannot be loaded, or the output cannot be written.
    """
    predict = None if job.recent.unknown else graph_predictor(job.run)
    if predict is None:
        start_tensorflow(console, job.config.debug)
    with console.status("forecasting ..."):
        notes = list[str]()
        table = forecast(job.run, job.recent, job.config.horizon, predict, notes.append)
    for note in notes:
        console.print(f"note: {note}", style="yellow")
    first, last = table[TIME].iloc[0], table[TIME].iloc[-1]
    console.print(
        f"{job.run.series.name}: {counted(table[TIME].nunique(), 'step')} "
        f"{f'at {first}' if first == last else f'from {first} to {last}'}, after "
        f"{job.run.people_read(job.recent.times)[-1]}"
    )
    if not job.run.metrics["beats_seasonal_naive"]:
        console.print(
            "note: on its validation windows this model was no better than repeating the last "
            f"season; see {job.run.path / 'report.md'}",
            style="yellow",
        )
    if job.config.output is None or job.kind is None:
        _print(table, console)
        console.print(
            f"\nnext    gru-train forecast {quote(str(job.run.path))} --output forecast.csv"
        )
        return
    _write(table, job.config.output, job.kind, job.config.overwrite)
    console.print(f"output  {job.config.output}")


def _print(table: pd.DataFrame, console: Console) -> None:
    shown = Table(box=None, header_style="bold")
    for name in table.columns:
        shown.add_column(name, justify="left" if name in (ID, TIME) else "right", no_wrap=True)
    numbered = table[TIME].dtype.kind == "i"
    times = table[TIME].astype(str) if numbered else table[TIME].dt.strftime(_time_format(table))
    for time, row in zip(times, table.head(_MOST_ROWS).itertuples(index=False), strict=False):
        shown.add_row(str(row[0]), time, *(f"{value:,.5g}" for value in row[2:]))
    wide = console.options.update(max_width=1000)
    shown.width = console.measure(shown, options=wide).maximum
    console.print(shown, crop=False)  # a narrower console would cut times and numbers
    if len(table) > _MOST_ROWS:
        console.print(f"... {len(table) - _MOST_ROWS:,} more rows; --output writes all of them")


def _time_format(table: pd.DataFrame) -> str:
    """Return the format of times, without parts of the time of day that steps lack."""
    times = table[TIME].dt
    if (times.normalize() == table[TIME]).all():
        return "%Y-%m-%d"
    form = "%Y-%m-%d %H:%M:%S" if times.second.any() else "%Y-%m-%d %H:%M"
    return form if times.tz is None else f"{form}%z"


def _write(table: pd.DataFrame, output: Path, kind: FileKind, overwrite: bool) -> None:
    """Write the file atomically."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from gru_training.tables.table_writer import table_writer

    rows = pa.Table.from_pandas(table.drop(columns=TIME), preserve_index=False)
    times = table[TIME]
    if times.dtype.kind == "i":
        column = pa.array(times.to_numpy())
    elif kind.suffix != ".parquet" and _time_format(table) == "%Y-%m-%d":
        column = pa.array(times.dt.date, pa.date32())
    elif times.dt.tz is None:
        column = pa.array(times.to_numpy().astype("M8[us]"))
    else:
        in_utc = pa.array(times.dt.tz_convert(None).to_numpy().astype("M8[us]"))
        column = pc.assume_timezone(in_utc, "UTC").cast(pa.timestamp("us", str(times.dt.tz)))
    rows = rows.add_column(1, TIME, column)
    try:
        with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as folder:
            aside = Path(folder) / "whole"
            with table_writer(aside, kind, rows.schema) as write:
                for piece in rows.to_batches():
                    write(piece)
            put_in_place(aside, output, overwrite)
    except OSError as error:
        raise unwritten(output, error) from error
