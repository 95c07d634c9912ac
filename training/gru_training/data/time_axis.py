"""Evenly spaced times: read, checked, and completed where some are missing.

Times are NumPy's, in nanoseconds. Pandas, whose import takes longer than all else that a check of a
series does, reads only what is no date of ISO 8601, and counts only steps that NumPy does not know.
"""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gru_training.data.problems import Problems, counted, lines_shown
from gru_training.errors import DataError

DAY = 86_400_000_000_000
"""Nanoseconds of a day."""
UNITS = {
    "h": 3_600_000_000_000,
    "min": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}
"""Nanoseconds in the units of a spacing below a day, by pandas' names of them."""
_WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_LARGEST_GROWTH = 100
"""Largest ratio of the steps of a file to its rows."""
_LEAST_STEPS = 10_000
"""Number of steps that any file may have."""
_YEARS, _LONGEST = (1677, 2262), 290
"""Years that nanoseconds reach, and the longest distance of two times, in years."""
_YEAR_FIRST = re.compile(r"\s*\d{4}")
_ISO = re.compile(r"\d{4}-\d\d(-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?)?")
_SPACING = re.compile(r"(\d*)([A-Za-z]+)(?:-([A-Z]{3}))?")

_EVERY = {
    "h": "hourly", "D": "daily", "W": "weekly", "MS": "monthly", "ME": "monthly",
    "QS": "quarterly", "QE": "quarterly", "YS": "yearly", "YE": "yearly",
}  # fmt: skip


@dataclass(frozen=True)
class TimeAxis:
    """Evenly spaced times, and the places of a file's rows among them."""

    times: np.ndarray
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
    """Unit of the line numbers, see `gru_training.data.problems.Problems.unit`."""

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
        """Cells of some rows."""
        return TimeCells(
            self.source,
            self.column,
            [self.texts[row] for row in rows],
            [self.lines[row] for row in rows],
            self.unit,
        )


def time_text(time: np.datetime64) -> str:
    """Write a time for people, as `2024-05-31 13:00:00`, with a fraction of the second if any."""
    whole, _, fraction = np.datetime_as_string(time, "ns").replace("T", " ").partition(".")
    fraction = fraction.removesuffix("000")
    return f"{whole}.{fraction}" if fraction.strip("0") else whole


def rows_at(frequency: str, count: int) -> str:
    """Write a number of rows with their frequency, such as `675 daily rows`.

    Args:
        frequency: Frequency in pandas' form, such as `D`.
        count: Number of rows.
    """
    found = _SPACING.fullmatch(frequency)
    word = _EVERY.get(found[2]) if found is not None and not found[1] else None
    return f"{count:,} {word} rows" if word else f"{count:,} rows every {frequency}"


def nanoseconds(times: np.ndarray) -> np.ndarray:
    """Nanoseconds since 1970, int64."""
    return times.astype("M8[ns]").astype(np.int64)


def parse_times(
    cells: TimeCells, time_format: str | None = None, problems: Problems | None = None
) -> np.ndarray:
    """Read times; offsets from UTC are applied and dropped.

    The month follows the year. Otherwise day and month may be in either order if only one of the
    two gives ascending times, or times that are far more even.

    Args:
        cells: Cells of the file.
        time_format: Format as for `strptime`; guessed by default.
        problems: Collector of cells that are not times, which become NaT; by default they raise.

    Returns:
        Times in nanoseconds, one for each cell.

    Raises:
        DataError: A cell could be either of two times, or, without `problems`, is none; names it.
    """
    parsed = [_in_nanoseconds(times, cells) for times in _readings(cells.texts, time_format)]
    ascending = [times for times in parsed if _ascends(times)]
    if len(ascending) == 2:
        return _more_even(ascending[0], ascending[1], cells)
    if ascending:
        return ascending[0]
    best = min(parsed, key=lambda times: int(np.isnat(times).sum()))
    if np.isnat(best).any():
        found = problems or Problems(cells.source)
        expected = f"a time like {time_format}" if time_format else "a time"
        for row in np.flatnonzero(np.isnat(best)):
            cells.note(found, int(row), "time", f"expected {expected} (see --time-format)")
        if problems is None:
            found.close_rows()
            found.raise_errors()
    return best


def _readings(texts: Sequence[str], time_format: str | None) -> list[np.ndarray]:
    """The times that texts may mean, in microseconds or as pandas has them."""
    stripped = [text.strip() for text in texts]
    alike = len(set(map(len, stripped))) == 1 and all(map(_ISO.fullmatch, stripped))
    if time_format is None and alike:
        try:
            return [np.array(stripped, "M8[us]")]
        except ValueError:  # no such day
            pass
    import pandas as pd

    tries: list[dict[str, Any]] = [{"format": time_format} if time_format else {}]
    if not time_format and not all(map(_YEAR_FIRST.match, texts)):
        tries.append({"dayfirst": True})
    found = []
    for options in tries:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # no common format: read cell by cell
            times = pd.to_datetime(pd.Series(texts), errors="coerce", utc=True, **options)
        found.append(np.asarray(times.dt.tz_localize(None)))
    return found


def _ascends(times: np.ndarray) -> bool:
    return not np.isnat(times).any() and bool((times[1:] >= times[:-1]).all())


def _in_nanoseconds(times: np.ndarray, cells: TimeCells) -> np.ndarray:
    """The same times; raises DataError if one, or the span of all, exceeds int64."""
    seen = np.flatnonzero(~np.isnat(times))
    years = times[seen].astype("M8[Y]").astype(np.int64) + 1970
    outside = seen[(years <= _YEARS[0]) | (years >= _YEARS[1])]
    if len(outside):
        raise cells.error(
            int(outside[0]), f"expected a time after the year {_YEARS[0]} and before {_YEARS[1]}"
        )
    if len(seen) and (span := int(years.max() - years.min())) >= _LONGEST:
        raise cells.error(
            int(seen[years.argmax()]),
            f"expected times within {_LONGEST} years, got {span} years before this one",
        )
    return times.astype("M8[ns]")


def _more_even(first: np.ndarray, second: np.ndarray, cells: TimeCells) -> np.ndarray:
    """The one of two readings of the same cells that has far fewer gaps, if they differ."""
    different = np.flatnonzero(first != second)
    if not len(different):
        return first
    gaps = [_unevenness(times) for times in (first, second)]
    if max(gaps) < 2 * min(gaps):
        row = int(different[0])
        raise cells.error(
            row,
            f"expected times that can be read in one way only, not as {time_text(first[row])} or "
            f"{time_text(second[row])} (see --time-format)",
        )
    return first if gaps[0] < gaps[1] else second


def _unevenness(times: np.ndarray) -> float:
    """The mean step in median steps: 1 where they are even or none, more where there are gaps."""
    steps = np.diff(nanoseconds(times))
    if not len(steps):
        return 1.0
    return float(steps.mean() / max(1.0, float(np.median(steps))))


def in_order(times: np.ndarray, cells: TimeCells, problems: Problems) -> np.ndarray:
    """The rows in order of time, with each time once.

    Args:
        times: Times of the rows.
        cells: Cells of these times, for messages.
        problems: Collector of repeated times, of which the first is kept, and times out of order.
    """
    latest = np.maximum.accumulate(times)
    early = np.flatnonzero(times[1:] < latest[:-1]) + 1
    order = np.argsort(times, kind="stable")
    if len(early):
        first = int(early[0])
        more = counted(len(early) - 1, "more such row")
        lines = [cells.lines[int(row)] for row in early[1:]]
        also = f" (and {more}, {lines_shown(lines, cells.unit)})" if lines else ""
        problem = f"expected a time after {time_text(latest[first - 1])} of a {cells.unit} before"
        if problems.sort_rows:
            rows = counted(len(early), "row")
            problems.note(
                f"rows sorted by time (--sort-rows): {rows} came after a later one, "
                f"{lines_shown([cells.lines[int(row)] for row in early], cells.unit)}"
            )
        else:
            problems.error(f"{cells.error(first, problem)}{also}; sort the rows", "--sort-rows")
    ordered = times[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    firsts = np.searchsorted(ordered, ordered[again])
    for row, other in zip(order[again], order[firsts], strict=True):
        message = (
            f"expected each time once, but {cells.unit} {cells.lines[int(other)]} has it too (see "
            "--duplicates, and --timezone where clocks were set back)"
        )
        cells.note(problems, int(row), "repeated", message)
    return np.delete(order, again)


def infer_frequency(times: np.ndarray) -> str:
    """The spacing that most neighbours have: a fixed step, business days, or calendar months.

    Args:
        times: Times of two or more rows, ascending.
    """
    steps = np.diff(nanoseconds(times))
    values, counts = np.unique(steps, return_counts=True)
    step = int(values[counts.argmax()])
    months = round(float(np.median(steps)) / (30.44 * DAY))
    if months >= 1 and step >= 28 * DAY and not nanoseconds(times[:1])[0] % DAY:
        return _months(times.astype("M8[D]"), months)
    days = times.astype("M8[D]")
    if step == DAY and len(times) > 10 and np.is_busday(days).all():
        return "B"
    if step == 7 * DAY:
        return f"W-{_WEEKDAYS[_weekday(days[0])]}"
    units = {"D": DAY, **UNITS}
    name = "D" if step % DAY == 0 else next(name for name in UNITS if step % UNITS[name] == 0)
    return f"{step // units[name] if step > units[name] else ''}{name}"


def _weekday(day: np.datetime64) -> int:
    """Number of the weekday, 0 for Monday."""
    return int(day.astype(np.int64) + 3) % 7


def _months(days: np.ndarray, months: int) -> str:
    """Name of a spacing by whole months, from their first or last day."""
    begin = days.astype("M8[M]")
    firsts, nexts = begin.astype("M8[D]"), (begin + 1).astype("M8[D]")
    first, last = bool((days == firsts).all()), bool((days == nexts - 1).all())
    if months == 1:
        if not last and (days == np.busday_offset(nexts, -1, roll="forward")).all():
            return "BME"
        if not first and (days == np.busday_offset(firsts, 0, roll="forward")).all():
            return "BMS"
    month, end = _MONTHS[int(begin[0].astype(np.int64)) % 12], "E" if last else "S"
    if months % 12 == 0:
        return f"{months // 12 if months > 12 else ''}Y{end}-{month}"
    if months == 3:
        return f"Q{end}-{month}"
    return f"{months if months > 1 else ''}M{end}"


def evenly(first: np.datetime64, last: np.datetime64, frequency: str) -> np.ndarray:
    """All times of a spacing from the first to the last at most.

    Args:
        first: Time to begin with, or just before the first of the spacing.
        last: Time to end with, or after the last of the spacing.
        frequency: Pandas' name of the spacing.
    """
    found = _SPACING.fullmatch(frequency)
    count, name, anchor = (int(found[1] or 1), found[2], found[3]) if found else (1, "", None)
    begin, day = first.astype("M8[ns]"), first.astype("M8[D]")
    weekly = name == "W" and anchor == _WEEKDAYS[_weekday(day)]
    if weekly or (name in ("D", *UNITS) and anchor is None):
        step = count * (7 * DAY if weekly else UNITS.get(name, DAY))
        return np.arange(begin, last + np.timedelta64(1, "ns"), np.timedelta64(step, "ns"))
    if name == "B" and count == 1 and np.is_busday(day):
        days = np.arange(day, last.astype("M8[D]") + 1)
        times = days[np.is_busday(days)].astype("M8[ns]") + (begin - day)
        return np.asarray(times[times <= last])
    if name in ("MS", "ME", "QS", "QE", "YS", "YE") and begin == day:
        months = count * {"M": 1, "Q": 3, "Y": 12}[name[0]]
        after = int(name[1] == "E")
        month = day.astype("M8[M]")
        fits = day == (month + after).astype("M8[D]") - after
        away = 0 if anchor is None else int(month.astype(np.int64)) - _MONTHS.index(anchor)
        if fits and away % (1 if name[0] == "M" else 12 if name[0] == "Y" else 3) == 0:
            firsts = np.arange(month, last.astype("M8[M]") + 1, months) + after
            times = (firsts.astype("M8[D]") - after).astype("M8[ns]")
            return np.asarray(times[times <= last])
    import pandas as pd

    return np.asarray(pd.date_range(first, last, freq=frequency).as_unit("ns"))


def complete(
    times: np.ndarray,
    cells: TimeCells,
    problems: Problems | None = None,
    frequency: str | None = None,
) -> TimeAxis:
    """Find the spacing and the times missing from it.

    Args:
        times: Times of the rows, ascending, two or more where the spacing is not known.
        cells: Cells of these times, for messages.
        problems: Collector of times that do not fit the spacing, whose place is then -1; by default
            they raise.
        frequency: The spacing, where it is known.

    Raises:
        DataError: The times would nearly all be missing, or, without `problems`, one does not fit
            the spacing of the others; the message names it.
    """
    found = problems or Problems(cells.source)
    most = "" if frequency else " (as most are; --frequency moves them to the nearest step)"
    frequency = frequency or infer_frequency(times)
    if len(times) > 1:
        _require_filled(times, frequency, cells)
    whole = evenly(times[0], times[-1], frequency)
    places = np.minimum(np.searchsorted(whole, times), max(0, len(whole) - 1))
    fits = whole[places] == times if len(whole) else np.zeros(len(times), bool)
    places = np.where(fits, places, -1)
    message = f"expected times every {frequency}{most} counted from {time_text(times[0])}"
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


def _require_filled(times: np.ndarray, frequency: str, cells: TimeCells) -> None:
    """Raise DataError, naming the row after the longest gap, if nearly all times are missing.

    Such a table would be filled with missing values, perhaps beyond all memory.
    """
    since = nanoseconds(times)
    steps = np.diff(since)
    usual, counts = np.unique(steps, return_counts=True)
    needed = (since[-1] - since[0]) / usual[counts.argmax()] + 1
    allowed = max(_LEAST_STEPS, _LARGEST_GROWTH * len(times))
    if needed <= allowed:
        return
    row = int(steps.argmax()) + 1
    raise cells.error(
        row,
        f"expected a time not long after {time_text(times[row - 1])} of the line before: filling "
        f"the gap with steps of {frequency} would turn the {len(times):,} rows into "
        f"{needed:,.0f}, and at "
        f"most {allowed:,} may; correct the time, or leave out the rows on one side of the gap",
    )
