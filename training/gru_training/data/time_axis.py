"""Evenly spaced times: reading, checking, and completing them.

Times are NumPy's, in nanoseconds. Pandas, whose import takes longer than everything else in the
check of a series, reads only what is not an ISO 8601 date, and counts only steps that NumPy does
not have.
"""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gru_training.data.problems import Problems, counted, lines_shown
from gru_training.data.time_forms import (
    STEPS,
    UNITS_SINCE_1970,
    first_days,
    has_offset,
    has_year,
    read_as,
    read_form,
    require_format,
    with_whole_year,
)
from gru_training.data.time_options import UNITS, nearest_frequency
from gru_training.errors import DataError

DAY = 86_400_000_000_000
"""Nanoseconds of a day."""
_WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_LARGEST_GROWTH = 100
"""Largest ratio of the number of steps to the rows of a file."""
_LEAST_STEPS = 10_000
"""Number of steps that any file may have."""
_YEARS, _LONGEST = (1677, 2262), 290
"""Years that nanoseconds can represent, and the longest distance of two times, in years."""
_MONTH_LENGTH = len("2005-01")
_LONGEST_TIME = 100
"""Number of characters beyond which a text is no time; the patterns of times take the square."""
_YEAR_FIRST = re.compile(r"\s*\d{4}")
_HOUR_24 = re.compile(r"([ T])24(?=:00(:00(\.0+)?)?(?![:.\d]))")
_FULL_YEAR = re.compile(r"(?<!\d)(\d{4}|\d{7,})(?!\d)")
_ISO = re.compile(r"\d{4}-\d\d(-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?)?")
_PLAIN_NUMBER = re.compile(
    r"\s*[+-]?(\d*|\d{1,3}([., \u00a0\u202f']\d{3})+)([.,]\d+)?([eE][+-]?\d+)?\s*"
)
_SPACING = re.compile(r"(\d*)([A-Za-z]+)(?:-([A-Z]{3}))?")

_FREQUENCY_WORDS = {
    "h": "hourly", "D": "daily", "W": "weekly", "MS": "monthly", "ME": "monthly",
    "QS": "quarterly", "QE": "quarterly", "YS": "yearly", "YE": "yearly",
}  # fmt: skip


@dataclass(frozen=True)
class TimeAxis:
    """Evenly spaced times, with the positions of a file's rows among them."""

    times: np.ndarray
    """N times without gaps."""
    frequency: str
    """Pandas' name of the spacing."""
    places: np.ndarray
    """(rows,) int: the position of each row of the file."""


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
    way: str = " (see --time-format)"
    """End of the description of what was expected, with the way out."""

    def error(self, row: int, problem: str) -> DataError:
        """Make an error that names file, line, column and cell."""
        return DataError(
            f"{self.source}, {self.unit} {self.lines[row]}, column {self.column!r}: {problem}, "
            f"got {self.texts[row]!r}"
        )

    def note(self, problems: Problems, row: int, kind: str, problem: str) -> None:
        """Report a row that cannot be used; the cell is added to the message."""
        message = f"{problem}, got {self.texts[row]!r}"
        problems.bad_row(kind, self.lines[row], message, self.column)

    def chosen(self, rows: np.ndarray) -> "TimeCells":
        """Return the cells of some rows."""
        return TimeCells(
            self.source,
            self.column,
            [self.texts[row] for row in rows],
            [self.lines[row] for row in rows],
            self.unit,
            self.way,
        )


def time_text(time: np.datetime64) -> str:
    """Write a time for display, such as `2024-05-31 13:00:00`, with any fraction of a second."""
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
    word = _FREQUENCY_WORDS.get(found[2]) if found is not None and not found[1] else None
    if frequency.endswith("ns"):
        return f"{count:,} rows"
    return f"{count:,} {word} rows" if word else f"{count:,} rows every {frequency}"


def nanoseconds(times: np.ndarray) -> np.ndarray:
    """Convert times to nanoseconds since 1970, int64."""
    return times.astype("M8[ns]").astype(np.int64)


class ParsedTimes(NamedTuple):
    """The times in cells."""

    times: np.ndarray
    """Nanoseconds, one per cell; in UTC if `zoned`."""
    zoned: bool = False
    """Whether the cells have offsets from UTC, or count since 1970."""
    note: str | None = None
    """Note on the form of times that are not dates."""


def parse_times(
    cells: TimeCells,
    time_format: str | None = None,
    problems: Problems | None = None,
    ordered: bool = True,
) -> ParsedTimes:
    """Read times; offsets from UTC are applied and removed.

    The month follows a year of four digits. Otherwise day and month may be in either order, if only
    one order gives ascending or descending times, or times that are far more even; a year of two
    digits is first if only that brings the times in order, or makes them far more even. It is from
    1969 to 2068, or a century earlier if only that brings the times in order.

    Args:
        cells: Cells of the file.
        time_format: Format as for `strptime`, or one that `gru_training.data.time_forms` names;
            guessed by default.
        problems: Collector of cells that are not times, which become NaT; by default they raise.
        ordered: Whether the rows are expected in the order of time.

    Raises:
        DataError: A cell could be either of two times, or, without `problems`, is none; names it.
    """
    if time_format is not None:
        require_format(time_format)
    readings, form = _readings(cells.texts, time_format)
    parsed = [_in_nanoseconds(times, cells) for times in readings]
    if ordered and not any(map(_in_one_order, parsed)):
        earlier = [_with_earlier_century(times, cells) for times in parsed]
        if any(map(_in_one_order, earlier)):
            parsed, form = earlier, form or "days in the order of the rows"
    orderly = [times for times in parsed if ordered and _ascends(times)]
    orderly = orderly or [times for times in parsed if ordered and _in_one_order(times)]
    whole = [times for times in parsed if not np.isnat(times).any()]
    year_first = None if any(map(_in_one_order, parsed)) else _with_year_first(cells)
    if len(orderly) == 1:
        best = orderly[0]
    elif year_first is not None and (
        _in_one_order(year_first)
        or all(2 * _unevenness(year_first) <= _unevenness(times) for times in parsed)
    ):
        best = year_first
    elif len(whole) == 2:
        best = _more_even(whole[0], whole[1], cells)
    else:
        best = min(parsed, key=lambda times: int(np.isnat(times).sum()))
    lacking = np.flatnonzero(np.isnat(best))
    if len(lacking):
        found = problems or Problems(cells.source)
        expected = "a time with its year" if len(lacking) == len(best) else "a time"
        expected = f"a time like {time_format}" if time_format else expected
        expected = "the number of a step" if time_format == STEPS else expected
        for row in lacking:
            cells.note(found, int(row), "time", f"expected {expected}{cells.way}")
        if problems is None:
            found.close_rows()
            found.raise_errors()
    zoned = "since 1970" in (form or "") or "%Z" in (time_format or "")
    zoned = zoned or any(map(has_offset, cells.texts))
    return ParsedTimes(best, zoned, _note_of_form(form, best, cells))


def _note_of_form(form: str | None, times: np.ndarray, cells: TimeCells) -> str | None:
    """Describe the form of times that are not dates; None for dates."""
    seen = np.flatnonzero(~np.isnat(times))
    if form is None or form == "days" or not len(seen):
        return None
    text, time = cells.texts[seen[0]], time_text(times[seen[0]]).removesuffix(" 00:00:00")
    if form == STEPS:
        return (
            f"times are numbers of steps from {text} on; no season is known of them: see "
            "--set season=STEPS and --horizon, and --time-format if they are times"
        )
    return f"times are read as {form}: {text!r} is {time} (--time-format reads others)"


def _readings(texts: Sequence[str], time_format: str | None) -> tuple[list[np.ndarray], str | None]:
    """Return the possible times of texts, in microseconds or as in pandas, and their form."""
    texts = [text if len(text) <= _LONGEST_TIME else "" for text in texts]
    stripped = [text.strip() for text in texts]
    if _HOUR_24.search("\n".join(stripped)):
        late = np.array([_HOUR_24.search(text) is not None for text in stripped])
        readings, form = _readings(
            [_HOUR_24.sub(r"\g<1>00", text) for text in stripped], time_format
        )
        return [times + late.astype("m8[D]") for times in readings], form
    if (firsts := first_days(stripped)) is not None:
        return _readings(firsts, time_format)[0], "periods, by their first days"
    alike = all(map(_ISO.fullmatch, stripped))
    if time_format is None and not (alike and min(map(len, stripped)) > _MONTH_LENGTH):
        read = read_form(stripped)
        if read is not None:
            return [read.times], read.name
    if time_format is None and alike:
        try:
            return [np.array(stripped, "M8[us]")], None
        except ValueError:  # no such day
            pass
    if time_format is not None and (times := read_as(stripped, time_format)) is not None:
        return [times], f"{time_format} since 1970" if time_format in UNITS_SINCE_1970 else None
    import pandas as pd

    tries: list[dict[str, Any]] = [{"format": time_format} if time_format else {}]
    if not time_format:
        year_first = 2 * sum(map(bool, map(_YEAR_FIRST.match, texts))) > len(texts)
        tries.append({"format": "ISO8601"} if year_first else {"dayfirst": True})
    # A text without a year would be read as a time of today.
    yearless = [time_format is None and not has_year(text) for text in texts]
    found = []
    for options in tries:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # no common format: read cell by cell
            cells = pd.Series(
                texts, dtype=object
            )  # text of pandas may not hold half a surrogate pair
            times = pd.to_datetime(cells, errors="coerce", utc=True, **options)
        naive = np.array(times.dt.tz_localize(None))
        naive[yearless] = np.datetime64("NaT")
        found.append(naive)
    return found, None


def _with_year_first(cells: TimeCells) -> np.ndarray | None:
    """Read times with a year of two digits first, as `24-03-31`; None for others."""
    texts = [with_whole_year(text) for text in cells.texts]
    if not all(map(_YEAR_FIRST.match, texts)) or texts == [text.strip() for text in cells.texts]:
        return None
    times = _in_nanoseconds(_readings(texts, None)[0][0], cells)
    if np.isnat(times).any():
        return None
    return times if _in_one_order(times) else _with_earlier_century(times, cells)


def _with_earlier_century(times: np.ndarray, cells: TimeCells) -> np.ndarray:
    """Move years of two digits that are after the last row a century back, if that gives order.

    So `Jan-60` is of 1960 in a file that ends with `Dec-09`.
    """
    if np.isnat(times).any() or any(map(_FULL_YEAR.search, cells.texts)):
        return times
    for way in (slice(None), slice(None, None, -1)):
        rows = times[way]
        months = rows.astype("M8[M]")
        before = (months - 1200).astype("M8[ns]") + (rows - months.astype("M8[ns]"))
        rows = np.where(rows > rows[-1], before, rows)
        if _ascends(rows) and _unevenness(rows) < 2:
            return rows[way]
    return times


def are_times(texts: Sequence[str]) -> bool:
    """Tell whether texts, which are not all plain numbers, can all be read as times."""
    if not texts or max(map(len, texts)) > _LONGEST_TIME:
        return False
    if all(map(_PLAIN_NUMBER.fullmatch, texts)):
        return False
    return any(not np.isnat(times).any() for times in _readings(texts, None)[0])


def _ascends(times: np.ndarray) -> bool:
    return not np.isnat(times).any() and bool((times[1:] >= times[:-1]).all())


def _in_one_order(times: np.ndarray) -> bool:
    """Tell whether times ascend or descend."""
    return _ascends(times) or _ascends(times[::-1])


def _in_nanoseconds(times: np.ndarray, cells: TimeCells) -> np.ndarray:
    """Convert times to nanoseconds; raises DataError if one, or their span, exceeds int64."""
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
    """Choose the one of two readings of the same cells that has far fewer gaps, if they differ."""
    different = np.flatnonzero(first != second)
    if not len(different):
        return first
    gaps = [_unevenness(times) for times in (first, second)]
    if max(gaps) < 2 * min(gaps):
        row = int(different[0])
        raise cells.error(
            row,
            f"expected times that can be read in one way only, not as {time_text(first[row])} or "
            f"{time_text(second[row])}{cells.way}",
        )
    return first if gaps[0] < gaps[1] else second


def _unevenness(times: np.ndarray) -> float:
    """Compute the mean step in median steps: 1 for even times or none, more with gaps."""
    steps = np.diff(nanoseconds(np.unique(times[~np.isnat(times)])))
    return float(steps.mean() / max(1.0, float(np.median(steps)))) if len(steps) > 1 else 1.0


def in_order(times: np.ndarray, cells: TimeCells, problems: Problems) -> np.ndarray:
    """Return the rows in order of time, with each time once.

    Args:
        times: Times of the rows.
        cells: Cells of these times, for messages.
        problems: Collector of repeated times, of which the first is kept, and times out of order.
    """
    latest = np.maximum.accumulate(times)
    early = np.flatnonzero(times[1:] < latest[:-1]) + 1
    order = np.argsort(times, kind="stable")
    ordered = times[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    falls = np.flatnonzero(times[1:] < times[:-1]) + 1
    if len(falls) and (times[falls] == times[0]).all() and times[0] == times.min():
        problem = (
            f"expected ascending times, but they begin again {counted(len(falls), 'time')}; give "
            "numbers of weeks or months their year, and several series a column of names"
        )
        problems.error(str(cells.error(int(falls[0]), problem)))
        return np.delete(order, again)
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
    firsts = np.searchsorted(ordered, ordered[again])
    for row, other in zip(order[again], order[firsts], strict=True):
        message = (
            f"expected each time once, but {cells.unit} {cells.lines[int(other)]} has it too (see "
            "--duplicates, and --timezone where clocks were set back)"
        )
        cells.note(problems, int(row), "repeated", message)
    return np.delete(order, again)


def infer_frequency(times: np.ndarray) -> str:
    """Infer the spacing of most neighbours: a fixed step, business days, or calendar months.

    Args:
        times: Times of two or more rows, ascending.
    """
    steps = np.diff(nanoseconds(times))
    values, counts = np.unique(steps, return_counts=True)
    step = int(values[counts.argmax()])
    months = round(float(np.median(steps)) / (30.44 * DAY))
    days = times.astype("M8[D]")
    of_month = days - days.astype("M8[M]").astype("M8[D]")
    even = not (steps % step).any() and bool((of_month != of_month[0]).any())  # as every 28 days
    if months >= 1 and step >= 28 * DAY and not even and not nanoseconds(times[:1])[0] % DAY:
        return _months(days, months)
    if step == DAY and len(times) > 10 and np.is_busday(days).all():
        return "B"
    if step == 7 * DAY:
        return f"W-{_WEEKDAYS[_weekday(days[0])]}"
    units = {"D": DAY, **UNITS}
    name = "D" if step % DAY == 0 else next(name for name in UNITS if step % UNITS[name] == 0)
    return f"{step // units[name] if step > units[name] else ''}{name}"


def _weekday(day: np.datetime64) -> int:
    """Return the number of the weekday, 0 for Monday."""
    return int(day.astype(np.int64) + 3) % 7


def _months(days: np.ndarray, months: int) -> str:
    """Return the name of a spacing by whole months, from their first or last day."""
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


def month_starts(times: np.ndarray) -> tuple[np.ndarray, str | None]:
    """Move times on the same day of months, such as the 15th or the 30th, to the first day.

    Args:
        times: Times of the rows, ascending.

    Returns:
        Times and a note on the move; unchanged times and None if the days are the first or the last
        of their months, or differ.
    """
    days = times.astype("M8[D]")
    months = days.astype("M8[M]")
    lengths = ((months + 1).astype("M8[D]") - months.astype("M8[D]")).astype(np.int64)
    of_month = (days - months.astype("M8[D]")).astype(np.int64) + 1
    usual = int(of_month.max())
    alike = (of_month == np.minimum(usual, lengths)).all() and (days == times).all()
    if not alike or usual == 1 or (of_month == lengths).all() or (np.diff(months) < 1).any():
        return times, None
    note = (
        f"times are day {usual} of months, and are read as months: forecasts have their first day"
    )
    return months.astype("M8[ns]"), note


def evenly(first: np.datetime64, last: np.datetime64, frequency: str) -> np.ndarray:
    """Return all times of a spacing from the first to the last at most.

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
    guessed = frequency is None
    frequency = frequency or infer_frequency(times)
    if len(times) > 1:
        _require_filled(times, frequency, cells)
    whole = evenly(times[0], times[-1], frequency)
    places = np.minimum(np.searchsorted(whole, times), max(0, len(whole) - 1))
    fits = whole[places] == times if len(whole) else np.zeros(len(times), bool)
    places = np.where(fits, places, -1)
    off = np.flatnonzero(places < 0)
    advice = ""
    if guessed and len(off):
        step, alone = nearest_frequency(times, frequency)
        most = "as most are; " if 2 * len(off) < len(times) else ""
        way = f"--frequency {step} moves all to the nearest step"
        if not alone:
            way = f"--frequency {step} --resample mean makes means of such steps"
        advice = f" ({most}{way}; or number the rows from 1, if each is one step)"
    message = f"expected times every {frequency}{advice} counted from {time_text(times[0])}"
    for row in off:
        cells.note(found, int(row), "spacing", message)
    if problems is None:
        found.close_rows()
        found.raise_errors()
    return TimeAxis(whole, frequency, places)


def gaps(axis: TimeAxis) -> list[tuple[int, int]]:
    """Find the gaps between rows: the position of the first missing time, and their number."""
    places = np.sort(axis.places[axis.places >= 0])
    steps = np.diff(places)
    return [(int(places[row]) + 1, int(steps[row]) - 1) for row in np.flatnonzero(steps > 1)]


def _require_filled(times: np.ndarray, frequency: str, cells: TimeCells) -> None:
    """Raise DataError, naming the row after the longest gap, if nearly all times are missing.

    Such a table would be filled with missing values, possibly beyond the memory.
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
