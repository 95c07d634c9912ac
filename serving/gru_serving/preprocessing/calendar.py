"""Times and what follows from them, beside a caller's inputs.

All times are seconds since 1970, int64, of UTC or of some local time without change of clocks.
Dates are counted with Hinnant's algorithms ("chrono-compatible low-level date algorithms"), in
whole numbers, so that they are the calendar's of any year; they are the same for arrays and
tensors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gru_serving.preprocessing.checks import asserted, failed
from gru_serving.preprocessing.description import Step, Values
from gru_serving.preprocessing.series import JsonFile
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
    """Conversion of local time to UTC and back, by a table of the changes of clocks.

    Attributes:
        begin: Times in UTC from which each shift holds.
        shift: Seconds that clocks add to UTC.
    """

    begin: tuple[int, ...]
    shift: tuple[int, ...]

    def to_local(self, seconds: Any, look_up: Callable[..., Any]) -> Any:
        """Convert times in UTC, of any shape."""
        return seconds + look_up(np.array(self.begin[1:]), np.array(self.shift), seconds)

    def to_utc(self, seconds: Any, look_up: Callable[..., Any]) -> Any:
        """Convert local times; one that is there twice is the earlier one."""
        ends = np.array(self.begin[1:]) + np.array(self.shift[:-1])
        return seconds - look_up(ends, np.array(self.shift), seconds)


def _look_up(ends: np.ndarray, values: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """The value that holds at each time, each until its end."""
    found: np.ndarray = values[np.searchsorted(ends, seconds, side="right")]
    return found


def _graph_look_up(ends: np.ndarray, values: np.ndarray, seconds: Any) -> Any:
    import tensorflow as tf

    ends = ends.astype(np.int64)
    place = tf.searchsorted(tf.constant(ends), tf.reshape(seconds, [-1]), side="right")
    found = tf.gather(tf.constant(values.astype(np.int64)), place)
    return tf.reshape(found, tf.shape(seconds))


@dataclass(frozen=True)
class StepTimes:
    """The times of steps around the last one of a history.

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

    def steps(self, last: Any, offsets: Any, where: Callable[..., Any] = np.where) -> Any:
        """Return times (B, N), so many steps (N,) after times (B,)."""
        last = last[:, np.newaxis]
        if self.seconds:
            return last + self.seconds * offsets
        days = last // DAY
        rest = last - DAY * days
        if not self.months:
            monday = days + 3  # a weekend counts as its Friday
            week, place = monday // 7, monday % 7
            count = 5 * week + where(place > 4, 4 + 0 * place, place) + offsets
            return DAY * (7 * (count // 5) + count % 5 - 3) + rest
        year, month, _ = date_of(days, where)
        count = 12 * year + month - 1 + self.months * offsets + int(self.ends)
        first = days_of(count // 12, count % 12 + 1, 1, where)
        return DAY * (first - int(self.ends)) + rest


def parts_of(seconds: Any, where: Callable[..., Any] = np.where) -> dict[str, Any]:
    """Split times into their parts.

    Returns:
        `year`, `month` from 1, `day` since 1970, `second` of the day, `weekday` from 0 for Monday,
        and `day_of_year` from 0.
    """
    day = seconds // DAY
    year, month, _ = date_of(day, where)
    return {
        "year": year,
        "month": month,
        "day": day,
        "second": seconds - DAY * day,
        "weekday": (day + 3) % 7,
        "day_of_year": day - days_of(year, 1 + 0 * year, 1, where),
    }


def days_of(year: Any, month: Any, day: Any, where: Callable[..., Any] = np.where) -> Any:
    """Return days since 1970-01-01."""
    year = where(month <= 2, year - 1, year)  # of years that begin in March
    era = year // 400
    of_era = year - 400 * era
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = 365 * of_era + of_era // 4 - of_era // 100 + of_year
    return 146_097 * era + days - 719_468


def date_of(days: Any, where: Callable[..., Any] = np.where) -> tuple[Any, Any, Any]:
    """Return year, month (from 1) and day (from 1)."""
    days = days + 719_468
    era = days // 146_097
    of_era = days - 146_097 * era
    years = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * years + years // 4 - years // 100)
    march = (5 * of_year + 2) // 153
    day = of_year - (153 * march + 2) // 5 + 1
    month = where(march < 10, march + 3, march - 9)
    year = years + 400 * era
    return where(month <= 2, year + 1, year), month, day


@dataclass(frozen=True)
class CalendarTable(JsonFile):
    """What is made of times.

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
    nested = {"times": StepTimes, "zone": TimeZone}  # noqa: RUF012

    def numpy(self, name: str, texts: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Return columns (B, N, columns) float32, so many steps after times that a caller sent.

        Args:
            name: Name of the input, for messages.
            texts: Times (B,) as `2024-05-31 13:00:00`; an offset is subtracted, and without one
                they are of the zone.
            offsets: Steps (N,).

        Raises:
            InvalidArgument: A text is no time, or none of the spacing, or lies beyond `years`.
        """
        given = [text.decode("utf-8", "replace") for text in vector(texts).tolist()]
        found = [re.fullmatch(_FORM, text, re.ASCII) for text in given]
        written = [each or re.fullmatch(_FORM, _EPOCH) for each in found]
        fields = [[int(each[part] or 0) for part in range(1, 7)] for each in written if each]
        aheads = [_ahead(each[7]) for each in written if each]
        parts = np.array(fields, np.int64).reshape(-1, 6).T
        ahead = np.array([each or 0 for each in aheads], np.int64)
        bare = np.array([each is None for each in aheads], bool)
        valid, local = _counted(parts, np.where)
        valid &= np.array([each is not None for each in found], bool)
        utc = local if self.zone is None else self.zone.to_utc(local, _look_up)
        last = np.where(bare, utc, local - ahead)
        moved = self.times.steps(last, np.zeros(1, np.int64))[:, 0]
        for good, said in zip((valid, moved == last), self._said(name), strict=True):
            if not good.all():
                raise failed(f"{said}{given[int(np.argmin(good))]}")
        seconds = self.times.steps(last, offsets)
        if self.zone is not None:
            seconds = self.zone.to_local(seconds, _look_up)
        made = parts_of(seconds)
        if self.years:
            known = (made["year"] >= self.years[0]) & (made["year"] <= self.years[1])
            if not known.all():
                raise failed(f"{self._outside}{given[int(np.argmin(known.all(axis=1)))]}")
        columns = {column: made[column] for column in ("weekday", "month")}
        for column, phase in self._phases(made).items():
            wave = np.sin if column.endswith("_sin") else np.cos
            columns[column] = wave(2 * np.pi * phase)
        columns[HOLIDAY] = np.isin(made["day"], self.holidays)
        stacked = [columns[column].astype(np.float32) for column in self.columns]
        return np.stack(stacked, axis=-1)

    def graph(self, values: Values, name: str, offsets: Any) -> Any:
        """Return the same by operations of TensorFlow; what it refuses fails when they run.

        Args:
            values: Values that hold the texts.
            name: Name of the input.
            offsets: Steps (N,) int64.
        """
        import tensorflow as tf

        texts = values[name]
        form = tf.strings.regex_full_match(texts, _FORM)
        written = tf.where(form, texts, _EPOCH)
        parts = [_number(written, part) for part in range(1, 7)]
        offset = tf.strings.regex_replace(written, _FORM, r"\7")
        sign = tf.where(tf.equal(tf.strings.substr(offset, 0, 1), "-"), -1, 1)
        ahead = 3600 * _number(offset, 2, _OFFSET) + 60 * _number(offset, 3, _OFFSET)
        valid, local = _counted(parts, tf.where)
        utc = local if self.zone is None else self.zone.to_utc(local, _graph_look_up)
        last = tf.where(tf.equal(offset, ""), utc, local - ahead * tf.cast(sign, tf.int64))
        moved = self.times.steps(last, tf.zeros(1, tf.int64), tf.where)[:, 0]
        checked = {"last": last}
        for good, said in zip((form & valid, tf.equal(moved, last)), self._said(name), strict=True):
            bad = tf.concat([tf.boolean_mask(texts, ~good), [""]], 0)[0]
            asserted(checked, "last", tf.reduce_all(good), said, bad)
        seconds = self.times.steps(checked["last"], offsets, tf.where)
        if self.zone is not None:
            seconds = self.zone.to_local(seconds, _graph_look_up)
        checked["seconds"] = seconds
        if self.years:
            year = parts_of(seconds, tf.where)["year"]
            known = tf.reduce_all((year >= self.years[0]) & (year <= self.years[1]), axis=1)
            bad = tf.concat([tf.boolean_mask(texts, ~known), [""]], 0)[0]
            asserted(checked, "seconds", tf.reduce_all(known), self._outside, bad)
        made = parts_of(checked["seconds"], tf.where)
        floats = {part: tf.cast(of, tf.float64) for part, of in made.items()}
        columns = {column: floats[column] for column in ("weekday", "month")}
        for column, phase in self._phases(floats).items():
            wave = tf.sin if column.endswith("_sin") else tf.cos
            columns[column] = wave(2 * np.pi * phase)
        columns[HOLIDAY] = tf.cast(self._is_holiday(made["day"]), tf.float64)
        return tf.stack([tf.cast(columns[name], tf.float32) for name in self.columns], axis=-1)

    def _is_holiday(self, days: Any) -> Any:
        import tensorflow as tf

        dates = tf.constant([*self.holidays, np.iinfo(np.int64).max], tf.int64)
        flat = tf.reshape(days, [-1])
        found = tf.equal(tf.gather(dates, tf.searchsorted(dates, flat)), flat)
        return tf.reshape(found, tf.shape(days))

    @staticmethod
    def _phases(parts: dict[str, Any]) -> dict[str, Any]:
        """Phases, from 0 to 1, of the waves by column."""
        day = parts["second"] / DAY
        cycles = {
            "day": day,
            "week": (parts["weekday"] + day) / 7,
            "year": (parts["day_of_year"] + day) / 365.25,
        }
        return {f"{name}_{wave}": of for name, of in cycles.items() for wave in ("sin", "cos")}

    def _said(self, name: str) -> tuple[str, str]:
        return (
            f"{name}: expected a time such as 2024-05-31 13:00:00, got ",
            f"{name}: expected a time of the spacing {self.times.frequency}, got ",
        )

    @property
    def _outside(self) -> str:
        first, last = self.years
        return (
            f"timestamp: expected steps in the years {first} to {last}, of which holidays and "
            "changes of clocks are known; got "
        )


def _ahead(offset: str | None) -> int | None:
    """Seconds of an offset such as `+02:00`; None where there is none."""
    if not offset:
        return None
    found = re.fullmatch(_OFFSET, offset, re.ASCII)
    if found is None:  # Z
        return 0
    seconds = 3600 * int(found[2]) + 60 * int(found[3])
    return -seconds if found[1] == "-" else seconds


def _counted(parts: Iterable[Any], where: Callable[..., Any]) -> tuple[Any, Any]:
    """Whether dates and times are there, and their seconds, of year, month, day and so on."""
    year, month, day, hour, minute, second = parts
    days = days_of(year, month, day, where)
    back = date_of(days, where)
    valid = (back[0] == year) & (back[1] == month) & (back[2] == day)
    valid &= (hour < 24) & (minute < 60) & (second < 60)
    return valid, DAY * days + 3600 * hour + 60 * minute + second


def _number(texts: Any, group: int, form: str = _FORM) -> Any:
    import tensorflow as tf

    found = tf.strings.regex_replace(texts, form, rf"\{group}")
    digits = tf.strings.regex_full_match(found, r"\d+")
    return tf.strings.to_number(tf.where(digits, found, "0"), tf.int64)


@dataclass(frozen=True)
class AddCalendar(Step, kind="add_calendar"):
    """Histories with the columns of the calendar after their own.

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

    files = {"calendar": CalendarTable}  # noqa: RUF012

    def numpy(self, values: Values) -> None:
        """Make them."""
        history = values[self.source]
        rows, steps, _ = history.shape
        made = np.full((rows, steps, len(self.calendar.columns)), np.nan, np.float32)
        if self.timestamp is not None:
            offsets = np.arange(1 - steps, 1, dtype=np.int64)
            made = self.calendar.numpy(self.timestamp, values[self.timestamp], offsets)
        values[self.target] = np.concatenate([history, made], axis=-1)

    def graph(self, values: Values) -> None:
        """Make them."""
        import tensorflow as tf

        history = values[self.source]
        rows, steps = tf.unstack(tf.shape(history)[:2])
        if self.timestamp is None:
            made = tf.fill((rows, steps, len(self.calendar.columns)), float("nan"))
        else:
            offsets = tf.range(1 - tf.cast(steps, tf.int64), 1, dtype=tf.int64)
            made = self.calendar.graph(values, self.timestamp, offsets)
        values[self.target] = tf.concat([history, made], axis=-1)


@dataclass(frozen=True)
class AddFutureCalendar(Step, kind="add_future_calendar"):
    """Known inputs of the steps ahead, with those of the calendar among them.

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

    files = {"calendar": CalendarTable}  # noqa: RUF012

    def numpy(self, values: Values) -> None:
        """Make them."""
        offsets = np.arange(1, self.horizon + 1, dtype=np.int64)
        made = self.calendar.numpy(self.timestamp, values[self.timestamp], offsets)
        made = made[..., list(self.places)]
        if self.source is not None:
            made = np.concatenate([values[self.source], made], axis=-1)
        values[self.target] = made[..., list(self.order)]

    def graph(self, values: Values) -> None:
        """Make them."""
        import tensorflow as tf

        offsets = tf.range(1, self.horizon + 1, dtype=tf.int64)
        made = tf.gather(self.calendar.graph(values, self.timestamp, offsets), self.places, axis=-1)
        if self.source is not None:
            made = tf.concat([values[self.source], made], axis=-1)
        values[self.target] = tf.gather(made, self.order, axis=-1)
