"""Evenly spaced times: read, checked, and completed where some are missing."""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gru_training.data.problems import Problems, counted, lines_shown
from gru_training.errors import DataError

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
    """Evenly spaced times, and the places of a file's rows among them."""

    times: pd.DatetimeIndex
    """N times, without gap."""
    frequency: str
    """Pandas' name of the spacing."""
    places: np.ndarray
    """(rows,) int: the place of each row of the file."""


@dataclass(frozen=True)
class TimeCells:
    """The time column of a file, unchanged."""

    source: str
    column: str
    texts: Sequence[str]
    lines: Sequence[int]
    """Line of each, for errors."""
    unit: str = "line"
    """What those count, as `gru_training.data.problems.Problems.unit`."""

    def error(self, row: int, problem: str) -> DataError:
        """An error that names file, line, column and cell."""
        return DataError(
            f"{self.source}, {self.unit} {self.lines[row]}, column {self.column!r}: {problem}, "
            f"got {self.texts[row]!r}"
        )

    def note(self, problems: Problems, row: int, kind: str, problem: str) -> None:
        """Report a row that cannot be used; the cell is added to the message."""
        message = f"{problem}, got {self.texts[row]!r}"
        problems.bad_row(kind, self.lines[row], message, self.column)

    def chosen(self, rows: np.ndarray) -> "TimeCells":
        """Those of some rows."""
        return TimeCells(
            self.source,
            self.column,
            [self.texts[row] for row in rows],
            [self.lines[row] for row in rows],
            self.unit,
        )


def parse_times(
    cells: TimeCells, time_format: str | None = None, problems: Problems | None = None
) -> pd.DatetimeIndex:
    """Read times; offsets from UTC are applied and dropped.

    The month follows the year. Otherwise day and month may be in either order if only one of the
    two gives ascending times, or times that are far more even.

    Args:
        cells: Of the file.
        time_format: As for `strptime`; guessed by default.
        problems: Receives cells that are not times, which become NaT; by default they raise.

    Raises:
        DataError: A cell could be either of two times, or, without `problems`, is none; names it.
    """
    tries: list[dict[str, Any]] = [{"format": time_format} if time_format else {}]
    if not time_format and not all(map(_YEAR_FIRST.match, cells.texts)):
        tries.append({"dayfirst": True})
    parsed = []
    for options in tries:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # no common format: read cell by cell
            times = pd.to_datetime(pd.Series(cells.texts), errors="coerce", utc=True, **options)
        parsed.append(_in_nanoseconds(pd.DatetimeIndex(times).tz_localize(None), cells))
    ascending = [times for times in parsed if not times.hasnans and times.is_monotonic_increasing]
    if len(ascending) == 2:
        return _more_even(ascending[0], ascending[1], cells)
    if ascending:
        return ascending[0]
    best = min(parsed, key=lambda times: int(times.isna().sum()))
    if best.hasnans:
        found = problems or Problems(cells.source)
        expected = f"a time like {time_format}" if time_format else "a time"
        for row in np.flatnonzero(best.isna()):
            cells.note(found, int(row), "time", f"expected {expected} (see --time-format)")
        if problems is None:
            found.close_rows()
            found.raise_errors()
    return best


def _in_nanoseconds(times: pd.DatetimeIndex, cells: TimeCells) -> pd.DatetimeIndex:
    """The same times; raises DataError if one, or the span of all, exceeds int64."""
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
    """The one of two readings of the same cells that has far fewer gaps, if they differ."""
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


def in_order(times: pd.DatetimeIndex, cells: TimeCells, problems: Problems) -> np.ndarray:
    """The rows in order of time, with each time once.

    Args:
        times: Of the rows.
        cells: For messages.
        problems: Receives repeated times, of which the first is kept, and times out of order.
    """
    latest = np.maximum.accumulate(times.asi8)
    early = np.flatnonzero(times.asi8[1:] < latest[:-1]) + 1
    order = np.argsort(times.asi8, kind="stable")
    if len(early):
        first = int(early[0])
        more = counted(len(early) - 1, "more such row")
        lines = [cells.lines[int(row)] for row in early[1:]]
        also = f" (and {more}, {lines_shown(lines, cells.unit)})" if lines else ""
        problem = (
            f"expected a time after {pd.Timestamp(latest[first - 1])} of a {cells.unit} before"
        )
        if problems.sort_rows:
            rows = counted(len(early), "row")
            problems.note(
                f"rows sorted by time (--sort-rows): {rows} came after a later one, "
                f"{lines_shown([cells.lines[int(row)] for row in early], cells.unit)}"
            )
        else:
            problems.error(f"{cells.error(first, problem)}{also}; sort the rows", "--sort-rows")
    ordered = times.asi8[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    firsts = np.searchsorted(ordered, ordered[again])
    for row, other in zip(order[again], order[firsts], strict=True):
        message = (
            f"expected each time once, but {cells.unit} {cells.lines[int(other)]} has it too (see "
            "--duplicates, and --timezone where clocks were set back)"
        )
        cells.note(problems, int(row), "repeated", message)
    return np.delete(order, again)


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


def complete(
    times: pd.DatetimeIndex,
    cells: TimeCells,
    problems: Problems | None = None,
    frequency: str | None = None,
) -> TimeAxis:
    """Find the spacing and the times missing from it.

    Args:
        times: Of the rows, ascending, two or more where the spacing is not known.
        cells: For messages.
        problems: Receives times that do not fit the spacing, whose place is then -1; by default
            they raise.
        frequency: The spacing, where it is known.

    Raises:
        DataError: Nearly all times would be missing, or, without `problems`, one does not fit the
            spacing of the others; names it.
    """
    found = problems or Problems(cells.source)
    most = "" if frequency else " (as most are; --frequency moves them to the nearest step)"
    frequency = frequency or infer_frequency(times)
    if len(times) > 1:
        _require_filled(times, frequency, cells)
    whole = pd.date_range(times[0], times[-1], freq=frequency).as_unit("ns")
    places = whole.get_indexer(times)
    message = f"expected times every {frequency}{most} counted from {times[0]}"
    for row in np.flatnonzero(places < 0):
        cells.note(found, int(row), "spacing", message)
    if problems is None:
        found.close_rows()
        found.raise_errors()
    return TimeAxis(whole, frequency, places)


def gaps(axis: TimeAxis) -> list[tuple[int, int]]:
    """The gaps between rows: the place of the first missing time, and the number of them."""
    places = np.sort(axis.places[axis.places >= 0])
    steps = np.diff(places)
    return [(int(places[row]) + 1, int(steps[row]) - 1) for row in np.flatnonzero(steps > 1)]


def _require_filled(times: pd.DatetimeIndex, frequency: str, cells: TimeCells) -> None:
    """Raise DataError, naming the row after the longest gap, if nearly all times are missing.

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


def _months(times: pd.DatetimeIndex, months: int) -> str:
    """Name of a spacing by whole months, from their first or last day."""
    if months == 1:
        for name in ("BME", "BMS"):
            offset = pd.tseries.frequencies.to_offset(name)
            of_months = "ME" if name == "BME" else "MS"
            other = pd.tseries.frequencies.to_offset(of_months)
            if all(map(offset.is_on_offset, times)) and not all(map(other.is_on_offset, times)):
                return name
    last = bool(times.is_month_end.all())
    month = times[0].strftime("%b").upper()
    if months % 12 == 0:
        return f"{months // 12 if months > 12 else ''}Y{'E' if last else 'S'}-{month}"
    if months == 3:
        return f"Q{'E' if last else 'S'}-{month}"
    return f"{months if months > 1 else ''}M{'E' if last else 'S'}"
