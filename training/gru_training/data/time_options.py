"""The treatment of local, repeated, uneven or too frequent times."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from gru_training.data.problems import Problems, counted
from gru_training.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

    from gru_training.data.even_series import ExpectedSeries
    from gru_training.data.time_axis import ParsedTimes, TimeCells

Duplicates = Literal["error", "mean", "first", "last"]
Resample = Literal["none", "mean", "sum", "first", "last", "min", "max"]
_PARTS_OF_HOURS = ("30min", "15min", "10min", "5min", "min", "30s", "10s", "s")
_TIMES_SHOWN = 3
_MAX_OFFSET = 0.1
"""Largest deviation, as a share of a step."""
UNITS = {
    "h": 3_600_000_000_000,
    "min": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}
"""Nanoseconds in the units of spacings below a day, by pandas' names."""
_MOST_STEPS = 1.05
"""Most steps per time of a spacing for nearly even times."""
_USUAL_ROWS = 0.9
"""Share of the usual rows of a step below which its sum may be incomplete."""
_LONG_STEP = 2 * UNITS["h"]
"""Longest step in nanoseconds by which clocks are set forward or back."""


@dataclass(frozen=True)
class TimeOptions:
    """The options for reading times; by default evenly spaced times are expected, each once."""

    timezone: str | None = None
    """Time zone of the times, which are converted to UTC."""
    frequency: str | None = None
    """Spacing by pandas' name; times off it are moved to the nearest step."""
    duplicates: Duplicates = "error"
    """Row that counts among several with the same time."""
    resample: Resample = "none"
    """Way to combine rows to steps of the frequency."""

    @property
    def merges(self) -> bool:
        """True if rows are moved or combined."""
        return self.frequency is not None or self.duplicates != "error"

    @property
    def combines_rows(self) -> bool:
        """True if a time may be repeated, as its rows are combined."""
        return self.duplicates != "error" or self.resample != "none"

    @property
    def combines_days(self) -> bool:
        """True if rows are combined to steps of days or longer, which follow clock time."""
        return self.resample != "none" and str(self.frequency).lstrip("0123456789") not in UNITS

    def __post_init__(self) -> None:
        if self.frequency is not None:
            from pandas.tseries.frequencies import to_offset

            try:
                to_offset(self.frequency)
            except ValueError:
                raise ConfigError(
                    "--frequency must be a spacing as pandas names it (h, 15min, D, B, W-SUN, MS, "
                    f"ME), got {self.frequency!r}"
                ) from None
        if self.resample != "none" and self.frequency is None:
            raise ConfigError("--resample needs --frequency, the steps to combine rows into")
        if self.timezone is not None:
            from zoneinfo import ZoneInfo

            try:
                ZoneInfo(self.timezone)
            except (ValueError, OSError, KeyError):
                raise ConfigError(
                    f"--timezone must be one such as Europe/Berlin, got {self.timezone!r}"
                ) from None


UNCHANGED_TIMES = TimeOptions()


class ZonedTimes(NamedTuple):
    """Times of a series, with the way in which they are written."""

    times: np.ndarray
    """Nanoseconds without a zone."""
    zone: str | None = None
    """Time zone in which the times are displayed; None to display them unchanged."""
    local: bool = False
    """Whether the times are clock times in the zone rather than UTC."""


def zoned_times(
    parsed: "ParsedTimes",
    cells: "TimeCells",
    zone: str | None,
    options: TimeOptions,
    read_clocks: Callable[[], np.ndarray],
    as_before: "ExpectedSeries | None" = None,
) -> ZonedTimes:
    """Convert times to UTC, as clock times would have gaps and repetitions.

    Times that are even by the clock, in steps of two hours or more, such as days, stay clock times.

    Args:
        parsed: Times of the rows.
        cells: Cells of these times.
        zone: Zone of the times, where it is known.
        options: Options, by which rows may be combined into days.
        read_clocks: Function that reads times with offsets as clocks show them.
        as_before: Series that they must continue, which decides for clocks or UTC.

    Raises:
        DataError: A time that clocks skip, or an hour there twice of which the rows hold but one.
    """
    if not parsed.zoned and zone is None:
        return ZonedTimes(parsed.times)
    import pandas as pd

    if not parsed.zoned:
        clocks = parsed.times
    elif zone is None:
        clocks = read_clocks()
    else:
        utc = pd.DatetimeIndex(parsed.times, tz="UTC")
        clocks = np.asarray(utc.tz_convert(zone).tz_localize(None).as_unit("ns"))
    on_clocks = _steady(clocks) or options.combines_days
    if as_before is not None:
        on_clocks = as_before.local or as_before.zone is None
    if on_clocks:
        return ZonedTimes(clocks, zone, zone is not None)
    times = parsed.times if parsed.zoned else in_utc(clocks, str(zone), cells)
    return ZonedTimes(times, zone or "UTC")


def _steady(clocks: np.ndarray) -> bool:
    """Tell whether times are even, in steps longer than those by which clocks are set."""
    of_day = clocks - clocks.astype("M8[D]")
    if (of_day == of_day[0]).all():
        return True
    steps = np.unique(np.diff(np.unique(clocks)).astype(np.int64))
    return int(steps[0]) >= _LONG_STEP and not (steps % steps[0]).any()


def in_utc(clock: np.ndarray, timezone: str, cells: "TimeCells") -> np.ndarray:
    """Convert clock times, in the order of the rows, to UTC without a zone.

    Of an hour that occurs twice because clocks are set back, the order of the rows tells which is
    the earlier.

    Raises:
        DataError: A time that clocks skip, or an hour there twice of which the rows hold but one.
    """
    import pandas as pd

    times = pd.DatetimeIndex(clock)
    try:
        local = times.tz_localize(timezone, ambiguous="infer", nonexistent="NaT")
    except ValueError as error:
        once = times.tz_localize(timezone, ambiguous="NaT", nonexistent="NaT")
        skipped = times.tz_localize(timezone, ambiguous=True, nonexistent="NaT").isna()
        row = int(np.flatnonzero(once.isna() & ~skipped)[0])
        raise cells.error(
            row,
            f"expected the hour that clocks in {timezone} show twice to be there twice, or times "
            "with their offset from UTC (as 2024-10-27T02:30+02:00)",
        ) from error
    gone = np.flatnonzero(local.isna())
    if len(gone):
        raise cells.error(int(gone[0]), f"expected a time that clocks in {timezone} show")
    return np.asarray(local.tz_convert("UTC").tz_localize(None))


def put_together(
    times: np.ndarray,
    values: np.ndarray,
    options: TimeOptions,
    cells: "TimeCells",
    problems: Problems,
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Sort rows by time, and combine repeated and too frequent ones.

    Args:
        times: (n,) ascending; repeated where `duplicates` says what counts.
        values: (n, C), NaN where one is missing.
        options: Rules for combining the rows.
        cells: (n,) cells of these times, for messages.
        problems: Collector of rows with a step that an earlier row has, unless an option says which
            counts.

    Returns:
        Times, values and notes.
    """
    import pandas as pd

    notes = []
    table = pd.DataFrame(values, index=pd.DatetimeIndex(times))
    if options.resample != "none" and options.frequency is not None:
        steps, rows = table.resample(options.frequency), table
        sums = {"min_count": 1} if options.resample == "sum" else {}
        table = getattr(steps, options.resample)(**sums)
        notes.append(
            f"{len(rows):,} rows combined into {len(table):,} steps of {options.frequency} "
            f"(--resample {options.resample})"
        )
        if options.resample == "sum":
            notes += _without_incomplete(table, rows, np.repeat(range(len(table)), steps.size()))
            there = np.flatnonzero(table.notna().any(axis=1))
            table = table.iloc[there[0] : there[-1] + 1] if len(there) else table
    elif options.frequency is not None:
        table.index, moved = _on_steps(pd.DatetimeIndex(table.index), options.frequency)
        notes += moved
    again = int(table.index.duplicated().sum())
    if again and options.duplicates != "error":
        of_time: Callable[[], pd.DataFrame] = getattr(table.groupby(level=0), options.duplicates)
        table = of_time()
        rows_again = counted(again, "row")
        notes.append(f"{rows_again} with the time of another (--duplicates {options.duplicates})")
    elif again:
        table = _first_of_steps(table, cells, problems, str(options.frequency))
    merged = pd.DatetimeIndex(table.index).as_unit("ns").to_numpy()
    return merged, table.to_numpy(np.float64), notes


def _without_incomplete(
    sums: "pd.DataFrame", rows: "pd.DataFrame", places: np.ndarray
) -> list[str]:
    """Remove the first and last sum of a column if its rows cover less than other steps; note it.

    Such a step has fewer rows than usual, and they span less time than those of any other step.

    Args:
        sums: Sum of each step, which is changed.
        rows: Rows by their times, ascending.
        places: Step of each row.
    """
    times, seen = rows.index.as_unit("ns").asi8, rows.notna().to_numpy()
    begins = np.flatnonzero(np.diff(places, prepend=-1))
    ends = np.append(begins[1:], len(places)) - 1
    counts = np.add.reduceat(seen, begins, axis=0, dtype=np.int64)
    others = slice(1, -1) if len(begins) > 2 else slice(None)
    spans, usual = (times[ends] - times[begins])[others], np.median(counts[others], axis=0)
    left = list[int]()
    for last in (False, True):
        row = len(seen) - 1 - seen[::-1].argmax(axis=0) if last else seen.argmax(axis=0)
        step = np.searchsorted(ends, row)
        span = times[row] - times[begins[step]] if last else times[ends[step]] - times[row]
        columns = np.flatnonzero(
            seen.any(axis=0)
            & (span < (spans.min() if len(begins) > 2 else spans.max()))
            & (counts[step, np.arange(len(step))] < _USUAL_ROWS * usual)
        )
        for column in columns.tolist():
            sums.iat[places[begins[step[column]]], column] = np.nan
        left += places[begins[step[columns]]].tolist()
    shown = ", ".join(f"{sums.index[step]}" for step in sorted({*left}))
    return [f"sums that rows cover in part only are left out: {shown}"] if left else []


def _first_of_steps(
    table: "pd.DataFrame", cells: "TimeCells", problems: Problems, frequency: str
) -> "pd.DataFrame":
    """Combine rows of the same step whose values are in different columns; report the others."""
    filled = table.notna().groupby(level=0).cumsum()
    repeated = ((filled > 1) & table.notna()).any(axis=1).to_numpy()
    for row in np.flatnonzero(repeated).tolist():
        first = int(table.index.searchsorted(table.index[row]))
        cells.note(
            problems,
            row,
            "repeated",
            f"expected one row for each step of {frequency}, but {cells.unit} "
            f"{cells.lines[first]} is of {table.index[row]} too (see --duplicates and --resample)",
        )
    return table[~repeated].groupby(level=0).first()


def nearest_frequency(times: np.ndarray, usual: str) -> tuple[str, bool]:
    """Find the nearest spacing, and whether its steps have one time each.

    Args:
        times: Times of two or more rows, ascending, each once.
        usual: Spacing of most of them, which may leave steps without a time.
    """
    import pandas as pd

    index, found = pd.DatetimeIndex(times), dict[str, tuple[bool, np.timedelta64]]()
    weekly = f"W-{index[0]:%a}".upper()
    months = "YS", "YE", "QS", "QE", "MS", "ME", "SMS", "SME"
    for name in (*months, weekly, "B", "D", "h", *_PARTS_OF_HOURS):
        moved, _ = _on_steps(index, name)
        whole = len(pd.date_range(moved[0], moved[-1], freq=name))
        if whole > _MOST_STEPS * len(times):  # more, too, of the shorter ones
            break
        if len(times) <= whole:
            of_day = index.where(moved != moved.normalize(), index.normalize())
            found[name] = not moved.is_unique, np.abs((of_day - moved).to_numpy()).mean()
    if not found:
        return usual, _on_steps(index, usual)[0].is_unique
    best = min(found, key=lambda name: found[name])
    return best, not found[best][0]


def _on_steps(times: "pd.DatetimeIndex", frequency: str) -> tuple["pd.DatetimeIndex", list[str]]:
    """Move each time to the nearest step; also returns a note."""
    import pandas as pd

    try:
        step = pd.Timedelta(pd.tseries.frequencies.to_offset(frequency))
    except ValueError:  # weeks, months and the like, of unequal length
        day = pd.Timedelta(days=1)
        axis = pd.date_range(
            times[0].normalize() - 400 * day, times[-1] + 400 * day, freq=frequency
        )
        nearest = axis.get_indexer(times, method="nearest")
        in_order = nearest[0] + np.arange(len(times))  # months of 4, 4 and 5 weeks, one for one
        if times.is_unique and nearest[-1] == in_order[-1] and np.abs(nearest - in_order).max() < 2:
            nearest = in_order
        on_steps = axis[nearest]
    else:
        phase = _phase(times.as_unit("ns").asi8, step.value)
        places = np.round((times.as_unit("ns").asi8 - phase) / step.value).astype(np.int64)
        on_steps = pd.DatetimeIndex(places * step.value + phase)
    away = np.abs((times - on_steps).to_numpy())
    moved = np.flatnonzero(away > np.timedelta64(0))
    if not len(moved):
        return on_steps, []
    farthest = str(pd.Timedelta(away.max())).removeprefix("0 days ").removesuffix(" 00:00:00")
    shown = ", ".join(str(times[row]) for row in moved[:_TIMES_SHOWN])
    more = " ..." if len(moved) > _TIMES_SHOWN else ""
    return on_steps, [
        f"{len(moved):,} times moved to the nearest step of {frequency}, by at most {farthest}: "
        f"{shown}{more}"
    ]


def _phase(times: np.ndarray, step: int) -> int:
    """Compute the distance of times from full steps, in nanoseconds; 0 if they are close."""
    angles = 2 * np.pi * (times % step) / step
    share = np.angle(np.exp(1j * angles).mean()) / (2 * np.pi)  # -1/2 to 1/2 of a step
    return 0 if abs(share) < _MAX_OFFSET else round(share * step)
