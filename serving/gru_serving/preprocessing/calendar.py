"""Times, and the columns of the calendar that follow from them.

All times are seconds since 1970, int64, of UTC or of a local time without clock changes. Dates are
computed with Hinnant's algorithms ("chrono-compatible low-level date algorithms") in whole numbers,
so they are right for any year; the code is the same for arrays and tensors.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gru_serving.preprocessing.description import JsonFile, SharedStep, Values
from gru_serving.preprocessing.operations import Arrays
from gru_serving.preprocessing.texts import vector

DAY = 86_400
HOLIDAY = "holiday"
_BLANKS = r"[\t\n\f\r ]*"
_FORM = (
    rf"{_BLANKS}(\d{{4}})-(\d{{2}})-(\d{{2}})"
    r"(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?)?"
    rf"{_BLANKS}(Z|[+-]\d{{2}}:?\d{{2}})?{_BLANKS}"
)
_OFFSET = r"([+-])(\d{2}):?(\d{2})"
_EPOCH = "1970-01-01"


@dataclass(frozen=True)
class TimeZone:
    """Conversion of local time to UTC and back by a table of clock changes.

    Attributes:
        begin: Times in UTC from which each shift holds.
        shift: Seconds that clocks add to UTC.
    """

    begin: tuple[int, ...]
    shift: tuple[int, ...]

    def to_local(self, seconds: Any, ops: Any = Arrays) -> Any:
        """Convert times in UTC, of any shape."""
        return seconds + ops.searched(np.array(self.begin[1:]), np.array(self.shift), seconds)

    def to_utc(self, seconds: Any, ops: Any = Arrays) -> Any:
        """Convert local times; of a local time that occurs twice, the earlier is meant."""
        ends = np.array(self.begin[1:]) + np.array(self.shift[:-1])
        return seconds - ops.searched(ends, np.array(self.shift), seconds)


@dataclass(frozen=True)
class StepTimes:
    """The times of steps relative to the last one of a history.

    Attributes:
        frequency: Pandas' name of the spacing, for messages.
        seconds: Seconds of a step; 0 where steps have no fixed length.
        months: Months of a step; 0 where it is no number of months. Without either steps are
            business days.
        ends: Whether a step of months is at their last day.
    """

    frequency: str
    seconds: int
    months: int
    ends: bool

    def steps(self, last: Any, offsets: Any, ops: Any = Arrays) -> Any:
        """Return times (B, N), this many steps (N,) after times (B,)."""
        last = last[:, np.newaxis]
        if self.seconds:
            return last + self.seconds * offsets
        days = last // DAY
        rest = last - DAY * days
        if not self.months:
            monday = days + 3  # a weekend counts as its Friday
            week, place = monday // 7, monday % 7
            count = 5 * week + ops.where(place > 4, 4 + 0 * place, place) + offsets
            return DAY * (7 * (count // 5) + count % 5 - 3) + rest
        year, month, _ = date_of(days, ops)
        count = 12 * year + month - 1 + self.months * offsets + int(self.ends)
        first = days_of(count // 12, count % 12 + 1, 1, ops)
        return DAY * (first - int(self.ends)) + rest


def parts_of(seconds: Any, ops: Any = Arrays) -> dict[str, Any]:
    """Split times into calendar parts.

    Returns:
        `year`, `month` from 1, `day` since 1970, `second` of the day, `weekday` from 0 for Monday,
        and `day_of_year` from 0.
    """
    day = seconds // DAY
    year, month, _ = date_of(day, ops)
    return {
        "year": year,
        "month": month,
        "day": day,
        "second": seconds - DAY * day,
        "weekday": (day + 3) % 7,
        "day_of_year": day - days_of(year, 1 + 0 * year, 1, ops),
    }


def days_of(year: Any, month: Any, day: Any, ops: Any = Arrays) -> Any:
    """Return the days since 1970-01-01."""
    year = ops.where(month <= 2, year - 1, year)  # of years that begin in March
    era = year // 400
    of_era = year - 400 * era
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = 365 * of_era + of_era // 4 - of_era // 100 + of_year
    return 146_097 * era + days - 719_468


def date_of(days: Any, ops: Any = Arrays) -> tuple[Any, Any, Any]:
    """Return year, month (from 1) and day (from 1)."""
    days = days + 719_468
    era = days // 146_097
    of_era = days - 146_097 * era
    years = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * years + years // 4 - years // 100)
    march = (5 * of_year + 2) // 153
    day = of_year - (153 * march + 2) // 5 + 1
    month = ops.where(march < 10, march + 3, march - 9)
    year = years + 400 * era
    return ops.where(month <= 2, year + 1, year), month, day


@dataclass(frozen=True)
class CalendarTable(JsonFile):
    """The columns that are computed from times.

    Attributes:
        columns: Names of the columns that are made.
        times: Spacing of the steps.
        zone: Zone in whose local time days and hours are counted; None: that of the times.
        holidays: Dates of the holidays as days since 1970, ascending.
        years: First and last year of which holidays or changes of clocks are known; empty for all.
    """

    columns: tuple[str, ...]
    times: StepTimes
    zone: TimeZone | None = None
    holidays: tuple[int, ...] = ()
    years: tuple[int, ...] = ()

    file = "calendar.json"

    def made(self, values: Values, name: str, first: int, stop: Any, ops: Any) -> Any:
        """Compute columns (B, N, columns) float32 for steps after the times that a caller sent.

        Texts that are no times, or off the spacing, or outside of `years`, are refused.

        Args:
            values: Values that hold the times, texts (B,) as `2024-05-31 13:00:00`; an offset is
                subtracted, and without one they are of the zone.
            name: Name of the input.
            first: First step after the times.
            stop: Step behind the last one.
            ops: Operations of the runtime.
        """
        texts = values[name]
        form, parts, ahead, bare = _read(texts) if ops is Arrays else _graph_read(texts)
        valid, local = _counted(parts, ops)
        utc = local if self.zone is None else self.zone.to_utc(local, ops)
        checked = {"last": ops.where(bare, utc, local - ahead)}
        moved = self.times.steps(checked["last"], ops.range(0, 1), ops)[:, 0]
        spacing = f"of the spacing {self.times.frequency}"
        for good, said in (
            (form & valid, "such as 2024-05-31 13:00:00"),
            (moved == checked["last"], spacing),
        ):
            _require(checked, good, f"{name}: expected a time {said}, got ", texts, ops)
        seconds = self.times.steps(checked["last"], ops.range(first, stop), ops)
        if self.zone is not None:
            seconds = self.zone.to_local(seconds, ops)
        if self.years:
            year, checked["last"] = parts_of(seconds, ops)["year"], seconds
            known = ops.all((year >= self.years[0]) & (year <= self.years[1]), axis=1)
            said = (
                f"{name}: expected steps in the years {self.years[0]} to {self.years[1]}, of which "
                "holidays and changes of clocks are known; got "
            )
            _require(checked, known, said, texts, ops)
            seconds = checked["last"]
        of = parts_of(seconds, ops)
        columns = {column: of[column] for column in ("weekday", "month")}
        floats = {part: ops.cast(value, "float64") for part, value in of.items()}
        for column, phase in self._phases(floats).items():
            wave = ops.sin if column.endswith("_sin") else ops.cos
            columns[column] = wave(2 * np.pi * phase)
        dates = np.array([*self.holidays, np.iinfo(np.int64).max], np.int64)
        before = np.array([np.iinfo(np.int64).min, *dates[:-1]], np.int64)
        columns[HOLIDAY] = ops.searched(dates[:-1], before, of["day"]) == of["day"]
        return ops.stack([ops.cast(columns[name], "float32") for name in self.columns], axis=-1)

    @staticmethod
    def _phases(parts: dict[str, Any]) -> dict[str, Any]:
        """Return the phases, from 0 to 1, of the waves by column."""
        day = parts["second"] / DAY
        cycles = {
            "day": day,
            "week": (parts["weekday"] + day) / 7,
            "year": (parts["day_of_year"] + day) / 365.25,
        }
        return {f"{name}_{wave}": of for name, of in cycles.items() for wave in ("sin", "cos")}


def _require(checked: Values, good: Any, said: str, texts: Any, ops: Any) -> None:
    """Refuse the first text (B,) for which the condition (B,) is false."""
    ops.require(
        checked, "last", ops.all(good), lambda: [said, ops.take(texts, ops.first(~good)[0])]
    )


def _read(texts: np.ndarray) -> tuple[Any, Any, Any, Any]:
    """Parse texts (B,): whether they are times, parts, seconds, whether an offset is missing."""
    given = [text.decode("utf-8", "replace") for text in vector(texts).tolist()]
    found = [re.fullmatch(_FORM, text, re.ASCII) for text in given]
    written = [each[0] if each else _EPOCH for each in found]
    groups = [re.fullmatch(_FORM, text, re.ASCII).groups() for text in written]  # type: ignore[union-attr]
    parts = np.array([[int(part or 0) for part in each[:6]] for each in groups], np.int64)
    offsets = [_ahead(each[6]) for each in groups]
    return (
        np.array([each is not None for each in found], bool),
        parts.reshape(-1, 6).T,
        np.array([each or 0 for each in offsets], np.int64),
        np.array([each is None for each in offsets], bool),
    )


def _graph_read(texts: Any) -> tuple[Any, Any, Any, Any]:
    import tensorflow as tf

    def number(of: Any, group: int, form: str = _FORM) -> Any:
        found = tf.strings.regex_replace(of, form, rf"\{group}")
        digits = tf.strings.regex_full_match(found, r"\d+")
        return tf.strings.to_number(tf.where(digits, found, "0"), tf.int64)

    form = tf.strings.regex_full_match(texts, _FORM)
    written = tf.where(form, texts, _EPOCH)
    offset = tf.strings.regex_replace(written, _FORM, r"\7")
    minus = tf.equal(tf.strings.substr(offset, 0, 1), "-")
    ahead = 3600 * number(offset, 2, _OFFSET) + 60 * number(offset, 3, _OFFSET)
    parts = [number(written, part) for part in range(1, 7)]
    return form, parts, tf.where(minus, -ahead, ahead), tf.equal(offset, "")


def _ahead(offset: str | None) -> int | None:
    """Return the seconds of an offset such as `+02:00`; None if there is none."""
    if not offset:
        return None
    found = re.fullmatch(_OFFSET, offset, re.ASCII)
    if found is None:  # Z
        return 0
    seconds = 3600 * int(found[2]) + 60 * int(found[3])
    return -seconds if found[1] == "-" else seconds


def _counted(parts: Iterable[Any], ops: Any) -> tuple[Any, Any]:
    """Check year, month, day and so on, and convert them to seconds."""
    year, month, day, hour, minute, second = parts
    days = days_of(year, month, day, ops)
    back = date_of(days, ops)
    valid = (back[0] == year) & (back[1] == month) & (back[2] == day)
    valid &= (hour < 24) & (minute < 60) & (second < 60)
    return valid, DAY * days + 3600 * hour + 60 * minute + second


@dataclass(frozen=True)
class AddCalendar(SharedStep, kind="add_calendar"):
    """Adds the columns of the calendar to histories, after their own.

    Attributes:
        source: Histories (B, T, C).
        target: Histories with these columns.
        timestamp: Texts (B,), the times of the last steps; None: the columns are missing values.
        calendar: Columns that are made.
    """

    source: str
    target: str
    timestamp: str | None
    calendar: CalendarTable

    def do(self, values: Values, ops: Any) -> None:
        """Add the columns."""
        history = values[self.source]
        rows, steps, _ = ops.shape(history)
        if self.timestamp is None:
            made = ops.full([rows, steps, len(self.calendar.columns)], float("nan"))
        else:
            made = self.calendar.made(values, self.timestamp, 1 - steps, 1, ops)
        values[self.target] = ops.concat([history, made], axis=-1)


@dataclass(frozen=True)
class AddFutureCalendar(SharedStep, kind="add_future_calendar"):
    """Adds the columns of the calendar to the known inputs of the steps ahead.

    Attributes:
        source: Inputs (B, H, F) of a caller; None: it has none.
        target: Inputs with those of the calendar, in the order of the model.
        timestamp: Texts (B,), the times of the last steps.
        horizon: H.
        places: Places of the calendar's columns that are read.
        order: Place of each input among those of the caller and these behind them.
        calendar: Columns that are made.
    """

    source: str | None
    target: str
    timestamp: str
    horizon: int
    places: tuple[int, ...]
    order: tuple[int, ...]
    calendar: CalendarTable

    def do(self, values: Values, ops: Any) -> None:
        """Add the columns."""
        made = self.calendar.made(values, self.timestamp, 1, self.horizon + 1, ops)
        made = ops.take(made, self.places)
        if self.source is not None:
            made = ops.concat([values[self.source], made], axis=-1)
        values[self.target] = ops.take(made, self.order)
