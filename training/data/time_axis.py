"""Evenly spaced times: read, checked, and completed where some are missing."""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from training.errors import DataError

_DAY = pd.Timedelta(days=1)
_LARGEST_GROWTH = 100
"""Times its rows that a file may have steps."""
_LEAST_STEPS = 10_000
"""Steps that any file may have."""
_YEARS, _LONGEST = (1677, 2262), 290
"""What nanoseconds reach, and how far apart two times can be to be subtracted."""
_YEAR_FIRST = re.compile(r"\s*\d{4}")


@dataclass(frozen=True)
class TimeAxis:
    """Evenly spaced times, and where the rows of a file stand among them."""

    times: pd.DatetimeIndex
    """N times, without gap."""
    frequency: str
    """Pandas' name of the spacing."""
    places: np.ndarray
    """(rows,) int: the place of each row of the file."""


@dataclass(frozen=True)
class TimeCells:
    """The time column of a file as it stands there."""

    source: str
    column: str
    texts: Sequence[str]
    lines: Sequence[int]
    """Line of each, for errors."""

    def error(self, row: int, problem: str) -> DataError:
        """An error that names file, line, column and cell."""
        return DataError(
            f"{self.source}, line {self.lines[row]}, column {self.column!r}: {problem}, "
            f"got {self.texts[row]!r}"
        )


def parse_times(cells: TimeCells, time_format: str | None = None) -> pd.DatetimeIndex:
    """Read times; offsets from UTC are applied and dropped.

    Behind the year stands the month. Otherwise day and month may stand in either order where only
    one of the two gives ascending times, or times that are far more even.

    Args:
        cells: As they stand in the file.
        time_format: As for `strptime`; guessed by default.

    Raises:
        DataError: A cell is no time, or could be either of two; names it.
    """
    tries: list[dict[str, Any]] = [{"format": time_format} if time_format else {}]
    if not time_format and not all(map(_YEAR_FIRST.match, cells.texts)):
        tries.append({"dayfirst": True})
    parsed = []
    for options in tries:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # no common format: then cell by cell
            times = pd.to_datetime(pd.Series(cells.texts), errors="coerce", utc=True, **options)
        parsed.append(_in_nanoseconds(pd.DatetimeIndex(times).tz_localize(None), cells))
    ascending = [times for times in parsed if not times.hasnans and times.is_monotonic_increasing]
    if len(ascending) == 2:
        return _more_even(ascending[0], ascending[1], cells)
    if ascending:
        return ascending[0]
    best = min(parsed, key=lambda times: int(times.isna().sum()))
    if best.hasnans:
        row = int(np.flatnonzero(best.isna())[0])
        expected = f"a time like {time_format}" if time_format else "a time"
        raise cells.error(row, f"expected {expected} (see --time-format)")
    return best


def _in_nanoseconds(times: pd.DatetimeIndex, cells: TimeCells) -> pd.DatetimeIndex:
    """The same times; raises DataError where one, or the span of all, is beyond int64."""
    years = times.year  # NaN where there is no time
    outside = np.flatnonzero((years <= _YEARS[0]) | (years >= _YEARS[1]))
    if len(outside):
        raise cells.error(
            int(outside[0]), f"expected a time after the year {_YEARS[0]} and before {_YEARS[1]}"
        )
    span = years.max() - years.min()
    if span >= _LONGEST:
        row = int(np.nanargmax(years))
        raise cells.error(
            row, f"expected times within {_LONGEST} years, got {span:.0f} years before this one"
        )
    return times.as_unit("ns")


def _more_even(
    first: pd.DatetimeIndex, second: pd.DatetimeIndex, cells: TimeCells
) -> pd.DatetimeIndex:
    """Of two readings of the same cells the one with far fewer gaps, if they differ."""
    different = np.flatnonzero(first != second)
    if not len(different):
        return first
    gaps = [_unevenness(times) for times in (first, second)]
    if max(gaps) < 2 * min(gaps):
        row = int(different[0])
        raise cells.error(
            row,
            f"expected times that can be read in one way only, not as {first[row]} or "
            f"{second[row]} (see --time-format)",
        )
    return first if gaps[0] < gaps[1] else second


def _unevenness(times: pd.DatetimeIndex) -> float:
    """The mean step in median steps: 1 where they are even, more where there are gaps."""
    steps = np.diff(times.asi8)
    return float(steps.mean() / max(1.0, float(np.median(steps))))


def require_ascending(times: pd.DatetimeIndex, cells: TimeCells) -> None:
    """Raise DataError, naming the row, where a time is not after the one before it."""
    steps = np.diff(times.asi8)
    if (steps > 0).all():
        return
    row = int(np.flatnonzero(steps <= 0)[0]) + 1
    if steps[row - 1] == 0:
        raise cells.error(
            row, f"expected each time once, but line {cells.lines[row - 1]} has it too"
        )
    raise cells.error(row, f"expected a time after {times[row - 1]} of the line before (sort them)")


def infer_frequency(times: pd.DatetimeIndex) -> str:
    """The spacing that most neighbours have: a fixed step, business days, or calendar months.

    Args:
        times: Two or more, ascending.
    """
    steps = pd.Series(times[1:] - times[:-1])
    step = steps.mode().iloc[0]
    months = round(steps.median() / (30.44 * _DAY))
    if months >= 1 and times[0].normalize() == times[0] and step >= 28 * _DAY:
        return _months(times, months)
    if step == _DAY and len(times) > 10 and (times.day_of_week < 5).all():
        return "B"
    if step == 7 * _DAY:
        return f"W-{times[0].strftime('%a').upper()}"
    if step % _DAY == pd.Timedelta(0):
        return f"{step // _DAY if step > _DAY else ''}D"
    return str(pd.tseries.frequencies.to_offset(step).freqstr)


def complete(times: pd.DatetimeIndex, cells: TimeCells) -> TimeAxis:
    """Find the spacing and the times missing from it.

    Args:
        times: Of the rows, ascending, two or more.
        cells: For errors.

    Raises:
        DataError: A time does not fit the spacing of the others; names it.
    """
    frequency = infer_frequency(times)
    _require_filled(times, frequency, cells)
    whole = pd.date_range(times[0], times[-1], freq=frequency).as_unit("ns")
    places = whole.get_indexer(times)
    if (places < 0).any():
        row = int(np.flatnonzero(places < 0)[0])
        raise cells.error(
            row, f"expected times every {frequency} (as most are) counted from {times[0]}"
        )
    return TimeAxis(whole, frequency, places)


def _require_filled(times: pd.DatetimeIndex, frequency: str, cells: TimeCells) -> None:
    """Raise DataError, naming the row behind the longest gap, where nearly all times are missing.

    Such a table would be filled with missing values, perhaps beyond all memory.
    """
    steps = np.diff(times.asi8)
    usual, counts = np.unique(steps, return_counts=True)
    needed = (times.asi8[-1] - times.asi8[0]) / usual[counts.argmax()] + 1
    allowed = max(_LEAST_STEPS, _LARGEST_GROWTH * len(times))
    if needed <= allowed:
        return
    row = int(steps.argmax()) + 1
    raise cells.error(
        row,
        f"expected a time not long after {times[row - 1]} of the line before: filling the gap "
        f"with steps of {frequency} would turn the {len(times):,} rows into "
        f"{needed:,.0f}, and at "
        f"most {allowed:,} may; correct the time, or leave out the rows on one side of the gap",
    )


def season_length(frequency: str) -> int:
    """Steps of the season most natural for a spacing: a day, a week, or a year.

    Hours and minutes repeat by the day, days by the week, weeks and months by the year; spacings
    below a minute by the hour.
    """
    plain = frequency.partition("-")[0]
    name = plain.lstrip("0123456789")
    count = int(plain.removesuffix(name) or 1)
    per_year = {"W": 52, "MS": 12, "ME": 12, "QS": 4, "QE": 4, "YS": 1, "YE": 1}
    if name in per_year:
        return max(1, round(per_year[name] / count))
    if name in ("D", "B"):
        return max(1, round((7 if name == "D" else 5) / count))
    step = pd.Timedelta(count, name)
    period = _DAY if step >= pd.Timedelta(minutes=1) else pd.Timedelta(hours=1)
    return max(1, round(float(period / step)))


def calendar_columns(times: pd.DatetimeIndex, frequency: str) -> dict[str, np.ndarray]:
    """Sine and cosine, (N,) each, of the cycles longer than the spacing, by column name."""
    step = (times[-1] - times[0]) / max(1, len(times) - 1)
    seconds = (times - times.normalize()) / _DAY
    cycles = {
        "day": (_DAY, seconds),
        "week": (7 * _DAY, (times.day_of_week + seconds) / 7),
        "year": (365 * _DAY, (times.day_of_year - 1 + seconds) / 365.25),
    }
    columns = {}
    for name, (length, phase) in cycles.items():
        if length >= 2 * step and not (frequency == "B" and name == "day"):
            angle = 2 * np.pi * np.asarray(phase, np.float64)
            columns[f"{name}_sin"], columns[f"{name}_cos"] = np.sin(angle), np.cos(angle)
    return columns


def _months(times: pd.DatetimeIndex, months: int) -> str:
    """Name of a spacing by whole months, from their first or last day."""
    last = bool(times.is_month_end.all())
    month = times[0].strftime("%b").upper()
    if months % 12 == 0:
        return f"{months // 12 if months > 12 else ''}Y{'E' if last else 'S'}-{month}"
    if months == 3:
        return f"Q{'E' if last else 'S'}-{month}"
    return f"{months if months > 1 else ''}M{'E' if last else 'S'}"
