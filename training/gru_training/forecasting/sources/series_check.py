"""Whether a series can be trained on: rows, columns, windows; needs no TensorFlow."""

from dataclasses import replace

import numpy as np

from gru_training.data.calendar import season_length
from gru_training.data.long_form import wide_columns
from gru_training.data.problems import Problems
from gru_training.data.series import Series
from gru_training.forecasting.config import SeriesConfig
from gru_training.forecasting.network.config import ForecastShape
from gru_training.forecasting.sources.column_notes import note_columns
from gru_training.forecasting.sources.column_problems import LARGEST, column_problem
from gru_training.forecasting.sources.sets import (
    PARTS,
    Borders,
    borders_of,
    longest_lookback,
    steps_of,
)


def series_problems(config: SeriesConfig, series: Series | None = None) -> Problems:
    """Where to collect what is wrong with a series of these settings."""
    source = str(config.data or "co2") if series is None else series.source
    return Problems(source, config.drop_bad, config.sort_rows)


def usable_series(
    series: Series, config: SeriesConfig, problems: Problems
) -> tuple[Series, ForecastShape, int]:
    """What a network reads and forecasts of a series, and the season.

    Args:
        series: As read.
        config: The split, the steps and the columns to forecast.
        problems: Told of what keeps the series from being trained on; columns that cannot be used
            are left out where bad rows are.
    """
    series = without_ahead(series, config)
    borders = borders_of(series, config)
    lookback, horizon, season = steps_of(series, config)
    if config.lookback is None:
        lookback = min(lookback, longest_lookback(borders.train, horizon))
    enough = _has_rows(series, config, problems)
    _note_short(series, config, borders, problems)
    if enough and season > borders.train:
        problems.error(
            f"{series.source}: expected a season of at most the {borders.train} training rows, got "
            f"{season}; set --season"
        )
    if borders.train > 1:
        series = _usable_columns(series, config, borders, problems)
    names = _target_names(series, config)
    targets = tuple(series.column(name) for name in names)
    shape = ForecastShape(lookback, horizon, len(series.columns), targets)
    if not problems.errors:
        _check_windows(series, borders, shape, problems)
    return series, shape, season


def without_ahead(series: Series, config: SeriesConfig) -> Series:
    """The series until its last value to forecast, with what is known of inputs after it apart."""
    if not config.future:
        return series
    targets = [series.column(name) for name in _target_names(series, config)]
    seen = np.flatnonzero(np.isfinite(series.values[:, targets]).any(axis=1))
    end = int(seen[-1]) + 1 if len(seen) else len(series)
    if end == len(series):
        return series
    return replace(
        series, values=series.values[:end], times=series.times[:end], ahead=series.values[end:]
    )


def window_origins(
    targets: np.ndarray, begin: int, end: int, lookback: int, horizon: int
) -> np.ndarray:
    """First steps to forecast of the windows that have any value to compare with.

    Args:
        targets: (rows, K), NaN where a value is missing.
        begin: The first row that may be forecast.
        end: The row after the last.
        lookback: Steps read.
        horizon: Steps forecast.
    """
    origins = np.arange(max(begin, lookback), end - horizon + 1)
    count = np.concatenate([[0], np.cumsum(np.isfinite(targets).any(axis=1))])
    return origins[count[origins + horizon] > count[origins]]


def calibration_problem(
    targets: np.ndarray, names: tuple[str, ...], origins: np.ndarray, horizon: int
) -> str | None:
    """What keeps validation windows from calibrating some step of some column.

    Args:
        targets: (rows, K), NaN where a value is missing.
        names: Of the K columns.
        origins: Of the validation windows, from `window_origins`.
        horizon: Steps forecast.
    """
    for step in range(horizon):
        seen = np.isfinite(targets[origins + step]).any(axis=0)
        if not seen.all():
            return (
                f"column {names[int(seen.argmin())]!r}: expected a value {step + 1} steps ahead in "
                "some validation window, to calibrate intervals, got only missing ones; raise "
                "--validation-fraction"
            )
    return None


def _target_names(series: Series, config: SeriesConfig) -> tuple[str, ...]:
    inputs = {*config.future, *config.past} if not series.panel else series.input_columns
    named = tuple(name for name in config.target if name in series.columns)
    return named or tuple(
        name
        for name in series.columns
        if name not in inputs and name not in series.calendar.columns
    )


def _has_rows(series: Series, config: SeriesConfig, problems: Problems) -> bool:
    """Whether each part has the rows of a window; of those that have not the first is told."""
    missing = _missing_rows(series, config)
    if missing is not None:
        problems.error(f"{series.source}: {missing}; {_what_fits(series, config)}")
    return missing is None


def _missing_rows(series: Series, config: SeriesConfig) -> str | None:
    """Which part has too few rows, if any has."""
    borders = borders_of(series, config)
    lookback, horizon, _ = steps_of(series, config)
    if config.lookback is None:
        lookback = min(lookback, longest_lookback(borders.train, horizon))
    least = {"train": lookback + horizon, "validation": horizon, "test": horizon}
    for part, rows in least.items():
        begin, end = borders.part(part)
        if end - begin < rows:
            what = f"the horizon of {horizon}"
            if part == "train":
                what = f"look-back {lookback} + horizon {horizon}"
            return (
                f"the {part} part has {max(0, end - begin)} of {len(series)} rows, expected at "
                f"least {rows} ({what})"
            )
    return None


def _what_fits(series: Series, config: SeriesConfig) -> str:
    """The change of the settings with which the rows suffice."""
    any_lookback = replace(config, lookback=None)
    by_default = replace(config, validation_fraction=None, test_fraction=None)
    for other, flags in (
        (any_lookback, "--lookback"),
        (by_default, "--validation-fraction and --test-fraction"),
    ):
        if other != config and _missing_rows(series, other) is None:
            return f"leave out {flags}"
    _, horizon, _ = steps_of(series, config)
    for fewer in range(min(horizon, len(series)) - 1, 0, -1):
        if _missing_rows(series, replace(config, horizon=fewer)) is None:
            return f"--horizon {fewer} fits"
    return "more rows are needed"


def _note_short(series: Series, config: SeriesConfig, borders: Borders, problems: Problems) -> None:
    """Say what is not done by default, as the series is short."""
    rows = len(series)
    _, horizon, season = steps_of(series, config)
    usual = season_length(series.frequency)
    if config.season is None and season < usual:
        problems.note(
            f"no season: the usual one of {usual} steps is longer than the {borders.train} rows to "
            "train on; --season sets another"
        )
    if config.horizon is None and horizon < usual and 3 * usual >= rows:
        problems.note(
            f"a horizon of {horizon} steps in place of the usual {usual}, for which {rows} rows "
            "are too few; --horizon sets another"
        )


def _usable_columns(
    series: Series, config: SeriesConfig, borders: Borders, problems: Problems
) -> Series:
    """The series; where bad columns are dropped, without them."""
    names, inputs = set(_target_names(series, config)), series.input_columns
    bad, unused, made = dict[int, str](), list[str](), series.calendar.columns
    for number, name in enumerate(series.columns):
        if name in inputs:  # of a single series it may never vary
            if np.nanmax(np.abs(series.values[:, number]), initial=0) > LARGEST:
                problems.error(f"{series.source}, {name}: expected values up to {LARGEST:.0e}")
            continue
        problem = column_problem(series, number, borders, name in names)
        if problem and name in made:
            unused.append(name)
        elif problem:
            bad[number] = problem
            kept_out = problems.drop_bad or series.panel
            wanted = name in (*config.target, *config.future, *config.past)
            if not kept_out or wanted:
                remedy = None if wanted else "--drop-bad"
                problems.error(f"{series.source}, column {name!r}: {problem}", remedy)
    without = [series.columns[number] for number in bad]
    gone = {*unused, *without, *wide_columns(without, series.inputs, valued=False)}
    kept = [number for number, name in enumerate(series.columns) if name not in gone]
    if not problems.errors and not any(series.columns[number] in names for number in kept):
        problems.error(f"{series.source}: no column can be forecast; {next(iter(bad.values()))}")
    if problems.errors:
        return series
    _note_dropped(series, bad, problems)
    if unused:
        problems.note(
            f"calendar: {', '.join(unused)} left out, which never vary in the training rows"
        )
    if gone:
        columns = tuple(series.columns[number] for number in kept)
        ahead = None if series.ahead is None else series.ahead[:, kept]
        calendar = replace(
            series.calendar, columns=tuple(name for name in made if name not in unused)
        )
        series = replace(
            series, columns=columns, values=series.values[:, kept], ahead=ahead, calendar=calendar
        )
    note_columns(series, borders, problems)
    return series


def _note_dropped(series: Series, bad: dict[int, str], problems: Problems) -> None:
    if series.panel and bad:
        number, problem = next(iter(bad.items()))
        others = f" and {len(bad) - 1:,} more" if len(bad) > 1 else ""
        problems.note(
            f"series {series.columns[number]!r}{others} left out, as they cannot be trained on: "
            f"{problem}"
        )
        return
    for number, problem in bad.items():
        problems.note(f"column {series.columns[number]!r} dropped (--drop-bad): {problem}")


def _check_windows(
    series: Series, borders: Borders, shape: ForecastShape, problems: Problems
) -> None:
    values = series.values[:, list(shape.targets)]
    for part in PARTS:
        begin, end = borders.part(part)
        if not len(window_origins(values, begin, end, shape.lookback, shape.horizon)):
            problems.error(
                f"{series.source}: no window of the {part} part has a value to forecast; all of "
                "them are missing"
            )
