"""Checks of whether a series can be trained on: rows, columns, windows; without TensorFlow."""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gru_training.data.calendar import season_length
from gru_training.data.long_form import wide_columns
from gru_training.data.problems import Problems, counted, first_names, values_shown
from gru_training.data.series import Series
from gru_training.forecasting.config import ForecastShape, SeriesConfig
from gru_training.forecasting.sets import PARTS, Borders, borders_of, longest_lookback, steps_of

_FEW_WINDOWS = 200
"""Number of windows below which a single horizon and column has too few residuals, as they
overlap.
"""


@dataclass(frozen=True)
class Support:
    """The amount of data for the calibration of intervals.

    Args:
        windows: Number of validation windows, overlapping ones too.
        horizon: Steps of each.
        columns: Number of columns that are forecast.
        panel: Whether series are of unequal length.
        levels: Levels of the quantiles, ascending.
    """

    windows: int
    horizon: int
    columns: int
    panel: bool
    levels: Sequence[float]

    @property
    def independent(self) -> float:
        """Estimate the number of independent windows.

        It counts windows that do not overlap; with several columns, which are similar but not
        equal, more.
        """
        return self.windows / self.horizon * math.sqrt(self.columns)

    @property
    def pools(self) -> bool:
        """True if residuals of all columns and horizons are pooled."""
        few = self.windows < _FEW_WINDOWS or self.independent < least_windows(self.levels[-1])
        return self.panel or few

    def notes(self) -> tuple[str, ...]:
        """Describe the intervals whose bounds the windows do not support, and the consequence."""
        levels = [level for level in self.levels if level > 0.5]
        short = [level for level in levels if self.independent < least_windows(level)]
        if not short:
            return ()
        needed = ", ".join(
            f"{100 * (2 * level - 1):.6g}% needs {least_windows(level):,}" for level in short
        )
        there = counted(max(1, round(self.independent)), "validation window")
        symmetric = len(short) == len(levels)
        how = "wider, and as wide above the forecast as below" if symmetric else "wider"
        return (f"rough intervals: about {there} without overlap ({needed}), so they are {how}",)


def least_windows(level: float) -> int:
    """Return the fewest residuals n for which a level has a rank, ⌈level·(n + 1)⌉."""
    return math.ceil(round(level / (1 - level), 9))


_MAX_ROUNDING = 0.01
"""Share of the deviation; a note is given if neighbouring float32 numbers differ by more."""
_MAX_MISSING_SHARE = 0.5
"""Share of the training rows; a note is given if more are missing."""
_MOST_NOTES = 10
"""Greatest number of notes of one kind that are listed column by column."""


def note_columns(series: Series, borders: Borders, problems: Problems) -> None:
    """Note columns that float32 resolves coarsely, that are mostly missing, or with odd values."""
    coarse, missing, far, stuck, units = (list[tuple[str, str]]() for _ in range(5))
    inputs = series.input_columns
    constants = dict(series.constants)
    for name, column in zip(series.columns, series.values.T, strict=True):
        if name in inputs or name in constants:
            continue
        train = column[: borders.train]
        known = train[np.isfinite(train)]
        share = float32_distance(known) / float(known.std())
        if share > _MAX_ROUNDING:
            coarse.append(
                (name, f"{float32_distance(known):g} apart, {share:.0%} of its standard deviation")
            )
        if (gone := 1 - len(known) / len(train)) > _MAX_MISSING_SHARE:
            missing.append((name, f"{gone:.0%}"))
        row = far_row(column)
        if row is not None:
            far.append((name, f"{column[row]:g} in row {row + 1:,}"))
        run = stuck_run(column)
        if run is not None:
            first, last = run
            stuck.append((name, f"rows {first + 1:,} to {last + 1:,} all are {column[first]:g}"))
        found = unit_break(column)
        if found is not None:
            row, before, after = found
            units.append(
                (name, f"about {before:g} before row {row + 1:,} and {after:g} from it on")
            )
    for name, text in _shown(coarse):
        problems.note(
            f"{name}: models read numbers as float32, which at its size are {text}; subtract a "
            "constant from the column for better forecasts"
        )
    for name, text in _shown(far):
        problems.note(
            f"{name}: {text} is far from all other values, and may spoil forecasts; leave the cell "
            "empty if it is an error"
        )
    for name, text in _shown(stuck):
        problems.note(f"{name}: {text}; leave the cells empty if nothing was measured there")
    for name, text in _shown(units):
        problems.note(f"{name}: {text}: are all values in the same unit?")
    for name, text in _shown(missing):
        problems.note(f"{name}: {text} of its training rows are missing")


OUTLIER_DEVIATIONS = 20
"""Number of standard deviations beyond which a value is far from the others."""
MAX_OUTLIER_SHARE = 0.005
"""Largest share of far values; if there are more, they are not errors."""


def far_row(column: np.ndarray) -> int | None:
    """Find the value that is farthest from the median, if few are as far, or all are as -999.

    The standard deviation is that of a normal distribution with the same quartiles, so the value
    itself does not widen it.

    Args:
        column: (rows,), NaN where a value is missing.
    """
    seen = column[np.isfinite(column)]
    if not len(seen):
        return None
    low, middle, high = np.quantile(seen, (0.25, 0.5, 0.75))
    away = np.abs(column - middle) / ((high - low) / 1.349 or np.inf)
    far = np.flatnonzero(away > OUTLIER_DEVIATIONS)
    few = len(far) <= max(1, MAX_OUTLIER_SHARE * len(seen))
    if not len(far) or not (few or set(column[far]) <= _CODES):
        return None
    return int(np.nanargmax(away))


_CODES = {sign * (10.0**digits - 1) for sign in (-1, 1) for digits in range(2, 10)}
"""Numbers that loggers and offices write for a missing value, however often."""
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FEWEST_WEEKS = 4
"""Number of weeks from which a day of the week without a value is noted."""
_STUCK_ROWS = 10
"""Number of equal values in succession that are noted where few others equal the one before."""
_MAX_EQUAL_SHARE = 0.1


def stuck_run(column: np.ndarray) -> tuple[int, int] | None:
    """Find the first and last row of the longest run of equal values, if it stands out.

    Args:
        column: (rows,), NaN where a value is missing.
    """
    borders = np.flatnonzero(np.diff(column, prepend=np.nan, append=np.nan) != 0)
    lengths = np.diff(borders)
    if not len(lengths):
        return None
    longest = int(lengths.argmax())
    others = len(column) - lengths[longest]
    equal = len(column) - len(lengths) - (lengths[longest] - 1)
    if lengths[longest] < _STUCK_ROWS or equal > _MAX_EQUAL_SHARE * others:
        return None
    return int(borders[longest]), int(borders[longest + 1]) - 1


UNIT_RATIO = 30
"""Ratio of the sizes of values from which on their units are in doubt."""
_UNIT_ROWS = 20
"""Number of values on both sides of a change of units."""
_MOST_JUMPS = 100
"""Number of the largest ratios of neighbours that are looked at."""


def unit_break(column: np.ndarray) -> tuple[int, float, float] | None:
    """Find the row from which on all values are many times larger, or smaller, than before.

    Args:
        column: (rows,), NaN where a value is missing.

    Returns:
        Row, and the median of the values next to it on both sides; None if there is no such row.
    """
    rows = np.flatnonzero(np.isfinite(column))
    sizes = np.abs(column[rows])
    low, high = np.minimum(sizes[:-1], sizes[1:]), np.maximum(sizes[:-1], sizes[1:])
    jumps = np.flatnonzero((low > 0) & (high > UNIT_RATIO * low))
    largest = np.argsort(low[jumps] / high[jumps], kind="stable")[:_MOST_JUMPS]
    for place in jumps[largest].tolist():
        before = sizes[max(0, place + 1 - _UNIT_ROWS) : place + 1]
        after = sizes[place + 1 : place + 1 + _UNIT_ROWS]
        least, most = sorted((before, after), key=np.median)
        ample = min(len(before), len(after)) == _UNIT_ROWS and least.min() > 0
        if ample and most.min() > UNIT_RATIO * least.max():
            return int(rows[place + 1]), float(np.median(before)), float(np.median(after))
    return None


def _shown(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Write a line for each column with its remark; for many columns a single line."""
    if len(found) <= _MOST_NOTES:
        return [(f"column {name!r}", text) for name, text in found]
    (name, text), others = found[0], len(found) - 1
    return [(f"column {name!r} and {others:,} others like it", text)]


def float32_distance(values: np.ndarray) -> float:
    """Return the distance between neighbouring float32 numbers at the largest value."""
    return float(np.spacing(np.float32(np.abs(values).max())))


MAX_VALUE = 1e30
"""Largest value; beyond it, differences and sums of values approach the largest float32."""
_LEAST_DEVIATION = 1e-30
_MAX_DEVIATIONS = 1e15
"""Largest value whose square, summed over a window, is still a float32."""


def column_problem(series: Series, number: int, borders: Borders, is_target: bool) -> str | None:
    """Find the reason why a column cannot be read, or cannot be forecast if it is a target."""
    column = series.values[:, number]
    train = column[: borders.train]
    train = train[np.isfinite(train)]
    if not len(train):
        return (
            f"expected values in the training rows (1 to {borders.train}), got only missing ones; "
            "leave the column out"
        )
    if train.min() == train.max():
        return (
            f"expected values that vary, got {train[0]:g} in all training rows (1 to "
            f"{borders.train}); leave the column out"
        )
    problem = _float32_problem(column, train)
    if problem or not is_target or series.panel:
        return problem
    for part in ("validation", "test"):
        begin, end = borders.part(part)
        if end > begin and not np.isfinite(column[begin:end]).any():
            return (
                f"expected values in the {part} rows ({begin + 1} to {end}), got only missing ones"
            )
    return None


def _float32_problem(values: np.ndarray, train: np.ndarray) -> str | None:
    """Find the reason why float32 numbers hide the variation of a column."""
    largest = float(np.nanmax(np.abs(values)))
    if largest > MAX_VALUE:
        return (
            f"expected values up to {MAX_VALUE:.0e}, got one of {largest:g}; models read "
            "numbers as float32: divide the column by a constant"
        )
    deviation, between = float(train.std()), float32_distance(train)
    if deviation <= between or deviation < _LEAST_DEVIATION:
        return (
            f"expected values whose standard deviation is above {_LEAST_DEVIATION:g} and "
            f"above the distance between neighbouring float32 numbers of their size, {between:g}, "
            f"as which models read them; got {deviation:g}: subtract or multiply by some number"
        )
    away = np.abs(values - train.mean()) / deviation
    if np.nanmax(away) > _MAX_DEVIATIONS:
        row = int(np.nanargmax(away))
        return (
            f"expected values within {_MAX_DEVIATIONS:.0e} standard deviations of the training "
            f"rows, {deviation:g}, got {values[row]:g} in row {row + 1}; if that means a missing "
            "value, leave the cell empty"
        )
    return None


def series_problems(config: SeriesConfig, series: Series | None = None) -> Problems:
    """Make the collection of problems of a series with these settings."""
    source = str(config.data or "co2") if series is None else series.source
    return Problems(source, config.drop_bad, config.sort_rows)


def usable_series(
    series: Series, config: SeriesConfig, problems: Problems, planned: bool = False
) -> tuple[Series, ForecastShape, int]:
    """Choose the columns that a network reads and forecasts, and the season.

    Args:
        series: Series as it was read.
        config: The split, the steps and the columns to forecast.
        problems: Receives what keeps the series from being trained on; columns that cannot be used
            are left out where bad rows are.
        planned: Whether the look-back is that of a plan: the last season may be longer than
            training windows are, as nothing is fitted to it.
    """
    series = without_ahead(series, config)
    if series.ahead is not None:
        names = first_names(_target_names(series, config))
        problems.note(
            f"the last {counted(len(series.ahead), 'row')} without a value of {names}: known "
            "inputs of the steps to forecast"
        )
    borders = borders_of(series, config)
    lookback, horizon, season = steps_of(series, config)
    if config.lookback is None:
        lookback = min(lookback, longest_lookback(borders.train, horizon))
    enough = planned or _has_rows(series, config, problems)
    _note_short(series, config, borders, problems)
    if enough and season > borders.train:
        problems.error(
            f"{series.source}: expected a season of at most the {borders.train} training rows, got "
            f"{season}; give --set season=N"
        )
    if borders.train > 1:
        series = _usable_columns(series, config, borders, problems)
    _note_known_ahead(series, config, problems)
    targets = tuple(series.column(name) for name in _target_names(series, config))
    _note_closed_days(series, targets, problems)
    shape = ForecastShape(lookback, horizon, len(series.columns), targets)
    if not problems.errors:
        _check_windows(series, borders, shape, problems)
    return series, shape, season


def _note_known_ahead(series: Series, config: SeriesConfig, problems: Problems) -> None:
    """Note columns with values after the last of the targets, which may be known inputs."""
    if config.future or series.panel or not len(series):
        return
    ends = {
        name: int(np.flatnonzero(np.isfinite(column))[-1]) + 1 if np.isfinite(column).any() else 0
        for name, column in zip(series.columns, series.values.T, strict=True)
    }
    last = max(ends.values(), default=0)
    targets = config.target or tuple(name for name, end in ends.items() if end < last)
    end = max((ends.get(name, last) for name in targets), default=last)
    others = {*targets, *config.past}
    inputs = [name for name, its_end in ends.items() if name not in others and its_end == last]
    if 0 < end < last and inputs:
        rows = "row has" if last - end == 1 else f"{last - end:,} rows have"
        named = shlex.join(inputs) if len(inputs) <= _MOST_NOTES else "and their names"
        problems.note(
            f"the last {rows} no value of {first_names(targets)}: leave out of the "
            "file what has ended; if the others are known of the steps to forecast, --future "
            f"{named}"
        )


def _note_closed_days(series: Series, targets: Sequence[int], problems: Problems) -> None:
    """Note days of the week on which no target ever has a value; forecasts have them, too."""
    if series.frequency != "D" or len(series) < _FEWEST_WEEKS * len(_WEEKDAYS):
        return
    seen = np.isfinite(series.values[:, targets]).any(axis=1)
    days = (series.times[seen].astype("M8[D]").astype(np.int64) + 3) % len(_WEEKDAYS)
    closed = [f"{name}s" for day, name in enumerate(_WEEKDAYS) if day not in days]
    if closed and len(days):
        problems.note(
            f"no value on {' and '.join(closed)}: forecasts have these days, too; ignore them "
            "there, or write 0 into the file if that is what they stand for"
        )


def without_ahead(series: Series, config: SeriesConfig) -> Series:
    """Cut the series after its last value to forecast, and separate the known inputs after it."""
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
    """Return the first forecast steps of the windows that have any value to compare with.

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


def calibration(
    targets: np.ndarray,
    names: Sequence[str],
    origins: np.ndarray,
    horizon: int,
    panel: bool,
    levels: Sequence[float],
) -> tuple[tuple[str, ...], str | None]:
    """Return remarks on rough intervals, and the reason if no interval can be calibrated.

    Args:
        targets: (rows, K), NaN where a value is missing.
        names: Names of the K columns.
        origins: First steps of the validation windows, from `window_origins`.
        horizon: Steps forecast.
        panel: Whether the series are of unequal length.
        levels: Levels of the quantiles, ascending.
    """
    support = Support(len(origins), horizon, targets.shape[1], panel, levels)
    if support.pools:
        return support.notes(), None
    for step in range(horizon):
        seen = np.isfinite(targets[origins + step]).any(axis=0)
        if not seen.all():
            return (), (
                f"column {names[int(seen.argmin())]!r}: expected a value {step + 1} steps ahead in "
                "some validation window, to calibrate intervals, got only missing ones; raise "
                "--validation-fraction"
            )
    return (), None


def _target_names(series: Series, config: SeriesConfig) -> tuple[str, ...]:
    inputs = {*config.future, *config.past} if not series.panel else series.input_columns
    named = tuple(name for name in config.target if name in series.columns)
    return named or tuple(
        name
        for name in series.columns
        if name not in inputs and name not in series.calendar.columns
    )


def _has_rows(series: Series, config: SeriesConfig, problems: Problems) -> bool:
    """Tell whether each part has the rows of a window; the first part without is reported."""
    missing = _missing_rows(series, config)
    if missing is not None:
        problems.error(f"{series.source}: {missing}; {_what_fits(series, config)}")
    return missing is None


def _missing_rows(series: Series, config: SeriesConfig) -> str | None:
    """Find the first part that has too few rows."""
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
    """Find the change of the settings with which there are enough rows."""
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
    """Note what is not done by default because the series is short."""
    rows = len(series)
    _, horizon, season = steps_of(series, config)
    usual = season_length(series.frequency)
    if config.season is None and season < usual:
        problems.note(
            f"no season: the usual one of {usual} steps is longer than the {borders.train} rows to "
            "train on; --set season=N sets another"
        )
    if config.horizon is None and horizon < usual and config.season is None:
        problems.note(
            f"a horizon of {horizon} steps in place of the usual {usual}, for which {rows} rows "
            "are too few; --horizon sets another"
        )


def _usable_columns(
    series: Series, config: SeriesConfig, borders: Borders, problems: Problems
) -> Series:
    """Return the series without bad columns, if these are to be dropped."""
    series = _without_constants(series, config, borders, problems)
    names, inputs = set(_target_names(series, config)), series.input_columns
    bad, unused, made = dict[int, str](), list[str](), series.calendar.columns
    for number, name in enumerate(series.columns):
        if name in inputs:  # of a single series it may never vary
            if np.nanmax(np.abs(series.values[:, number]), initial=0) > MAX_VALUE:
                problems.error(f"{series.source}, {name}: expected values up to {MAX_VALUE:.0e}")
            continue
        if name in dict(series.constants):
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


def _without_constants(
    series: Series, config: SeriesConfig, borders: Borders, problems: Problems
) -> Series:
    """Remove the targets that never vary, whose forecast is their value.

    If all of them are constant they stay, as a model must have some column to forecast.
    """
    names = _target_names(series, config)
    found = dict[str, float]()
    for name in names:
        column = series.values[:, series.column(name)]
        seen = np.flatnonzero(np.isfinite(column))
        goes_on = len(seen) and seen[0] < borders.train and seen[-1] >= borders.validation
        if goes_on and (column[seen] == column[seen[0]]).all():
            found[name] = float(column[seen[0]])
    if not found:
        return series
    problems.note(f"constant, and forecast as they are: {values_shown(found)}")
    if len(found) < len(names):
        gone = {*found, *wide_columns(list(found), series.inputs, valued=False)}
        kept = [number for number, name in enumerate(series.columns) if name not in gone]
        series = replace(
            series,
            columns=tuple(series.columns[number] for number in kept),
            values=series.values[:, kept],
            ahead=None if series.ahead is None else series.ahead[:, kept],
        )
    return replace(series, constants=tuple(found.items()))


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
        lookback = min(shape.lookback, max(1, borders.train - shape.horizon))
        if not len(window_origins(values, begin, end, lookback, shape.horizon)):
            problems.error(
                f"{series.source}: no window of the {part} part has a value to forecast; all of "
                "them are missing"
            )
