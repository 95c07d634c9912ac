"""Times, time zones and calendars in the graph, so that no caller makes them."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import tensorflow as tf

from gru_training.data.calendar import HOLIDAY, Calendar
from gru_training.errors import ConfigError
from gru_training.forecasting.export.inputs import alike, shaped
from gru_training.forecasting.preprocessor import SeriesPreprocessor
from gru_training.forecasting.run import ForecastingRun


class TimeZone:
    """Conversion of local time to UTC and back, by a table of the changes of clocks.

    All times are seconds since 1970, int64.

    Args:
        name: Name of the zone, as `Europe/Berlin`.
        first: The first year of which changes are known.
        last: The last one.
    """

    def __init__(self, name: str, first: int, last: int) -> None:
        utc = pd.date_range(f"{first}-01-01", f"{last + 1}-01-02", freq="30min", tz="UTC")
        local = utc.tz_convert(name).tz_localize(None)
        shift = (local - utc.tz_localize(None)).total_seconds().to_numpy().astype(np.int64)
        changed = np.flatnonzero(np.diff(shift, prepend=shift[0] + 1))
        self._begin, self._shift = utc.as_unit("s").asi8[changed], shift[changed]

    def to_local(self, seconds: Any) -> Any:
        """Convert times in UTC, of any shape."""
        return seconds + self._shifts(self._begin[1:], seconds)

    def to_utc(self, seconds: Any) -> Any:
        """Convert local times; one that is there twice is the earlier one."""
        return seconds - self._shifts(self._begin[1:] + self._shift[:-1], seconds)

    def _shifts(self, ends: np.ndarray, seconds: Any) -> Any:
        """Look up what clocks add to UTC, each shift until its end."""
        place = tf.searchsorted(tf.constant(ends), tf.reshape(seconds, [-1]), side="right")
        return tf.reshape(tf.gather(tf.constant(self._shift), place), tf.shape(seconds))


_DAY = 86_400
_FORM = (
    r"\s*(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?)?"
    r"\s*(Z|[+-]\d{2}:?\d{2})?\s*"
)
_OFFSET = r"([+-])(\d{2}):?(\d{2})"
_MONTHS = {"M": 1, "Q": 3, "Y": 12}


class StepTimes:
    """The times of steps around the last one of a history.

    Times are seconds since 1970, of UTC or of some local time without change of clocks. Dates are
    counted with Hinnant's algorithms ("chrono-compatible low-level date algorithms"), in whole
    numbers, so that they are the calendar's of any year.

    Args:
        frequency: Pandas' name of the spacing: a fixed one of whole seconds, business days (`B`),
            or months, quarters or years by their first or last day.

    Raises:
        ConfigError: The spacing is another.
    """

    def __init__(self, frequency: str) -> None:
        found = re.fullmatch(r"(\d*)([A-Za-z]+)(-[A-Z]+)?", frequency)
        count, name = (int(found[1] or 1), found[2]) if found else (0, "")
        self._seconds = self._months = 0
        self._ends = name.endswith("E")
        if name == "W":
            self._seconds = 7 * _DAY * count
        elif name == "D":
            self._seconds = _DAY * count
        elif len(name) == 2 and name[0] in _MONTHS and name[1] in "SE":
            self._months = _MONTHS[name[0]] * count
        elif name in ("h", "min", "s"):
            self._seconds = int(pd.Timedelta(count, name).total_seconds())
        elif name != "B" or count != 1:
            raise ConfigError(
                "--calendar and --holidays need steps of whole seconds, business days, months, "
                f"quarters or years, got {frequency}"
            )
        self._frequency = frequency

    def read(self, name: str, texts: Any, zone: TimeZone | None = None) -> Any:
        """Seconds (B,) int64 of texts (B,) as `2024-05-31 13:00:00`; an offset is subtracted.

        The graph fails, naming the text, where one is no such time or none of the spacing.

        Args:
            name: Name of the input, for messages.
            texts: Texts that a caller sent.
            zone: Zone of texts without an offset; None: that of the series.
        """
        form = tf.strings.regex_full_match(texts, _FORM)
        written = tf.where(form, texts, "1970-01-01")
        year, month, day, hour, minute, second = (_number(written, part) for part in range(1, 7))
        offset = tf.strings.regex_replace(written, _FORM, r"\7")
        sign = tf.where(tf.equal(tf.strings.substr(offset, 0, 1), "-"), -1, 1)
        ahead = 3600 * _number(offset, 2, _OFFSET) + 60 * _number(offset, 3, _OFFSET)
        ahead *= tf.cast(sign, tf.int64)
        days = _days(year, month, day)
        whole = tf.reduce_all(
            tf.stack([a == b for a, b in zip(_date(days), (year, month, day), strict=True)]), axis=0
        )
        usual = (hour < 24) & (minute < 60) & (second < 60)
        seconds = _DAY * days + 3600 * hour + 60 * minute + second
        bare = seconds if zone is None else zone.to_utc(seconds)
        seconds = tf.where(tf.equal(offset, ""), bare, seconds - ahead)
        moved = self.steps(seconds, tf.zeros(1, tf.int64))[:, 0]
        checks = (
            (form & whole & usual, "expected a time such as 2024-05-31 13:00:00, got "),
            (tf.equal(moved, seconds), f"expected a time of the spacing {self._frequency}, got "),
        )
        asserts = [_every(good, texts, f"{name}: {said}") for good, said in checks]
        with tf.control_dependencies(asserts):
            return tf.identity(seconds)

    def steps(self, last: Any, offsets: Any) -> Any:
        """Times (B, N) int64, so many steps (N,) int64 after times (B,)."""
        last = last[:, tf.newaxis]
        if self._seconds:
            return last + self._seconds * offsets
        days = tf.math.floordiv(last, _DAY)
        rest = last - _DAY * days
        if not self._months:
            return _DAY * _business(days, offsets) + rest
        year, month, _ = _date(days)
        count = 12 * year + month - 1 + self._months * offsets
        if self._ends:
            count += 1
        first = _days(tf.math.floordiv(count, 12), tf.math.floormod(count, 12) + 1, 1)
        return _DAY * (first - 1 if self._ends else first) + rest


def parts_of(seconds: Any) -> dict[str, Any]:
    """Split times into their parts, int64.

    Returns:
        `year`, `month` from 1, `day` since 1970, `second` of the day, `weekday` from 0 for Monday,
        and `day_of_year` from 0.
    """
    day = tf.math.floordiv(seconds, _DAY)
    year, month, _ = _date(day)
    return {
        "year": year,
        "month": month,
        "day": day,
        "second": seconds - _DAY * day,
        "weekday": tf.math.floormod(day + 3, 7),
        "day_of_year": day - _days(year, 1, 1),
    }


def _every(good: Any, texts: Any, said: str) -> Any:
    bad = tf.boolean_mask(texts, tf.logical_not(good))
    message = tf.strings.join([said, tf.concat([bad, [""]], 0)[0]])
    return tf.debugging.Assert(tf.reduce_all(good), [message], name="times")


def _number(texts: Any, group: int, form: str = _FORM) -> Any:
    found = tf.strings.regex_replace(texts, form, rf"\{group}")
    digits = tf.strings.regex_full_match(found, r"\d+")
    return tf.strings.to_number(tf.where(digits, found, "0"), tf.int64)


def _business(days: Any, offsets: Any) -> Any:
    """So many weekdays after days; a weekend counts as its Friday."""
    monday = days + 3
    week = tf.math.floordiv(monday, 7)
    count = 5 * week + tf.minimum(monday - 7 * week, 4) + offsets
    return 7 * tf.math.floordiv(count, 5) + tf.math.floormod(count, 5) - 3


def _days(year: Any, month: Any, day: Any) -> Any:
    """Days since 1970-01-01."""
    year, month = tf.convert_to_tensor(year), tf.convert_to_tensor(month, tf.int64)
    year = tf.where(month <= 2, year - 1, year)  # of years that begin in March
    era = tf.math.floordiv(year, 400)
    of_era = year - 400 * era
    month = tf.math.floormod(month + 9, 12)
    of_year = tf.math.floordiv(153 * month + 2, 5) + day - 1
    days = 365 * of_era + tf.math.floordiv(of_era, 4) - tf.math.floordiv(of_era, 100) + of_year
    return 146_097 * era + days - 719_468


def _date(days: Any) -> tuple[Any, Any, Any]:
    """Year, month (from 1) and day (from 1)."""
    days = days + 719_468
    era = tf.math.floordiv(days, 146_097)
    of_era = days - 146_097 * era
    years = tf.math.floordiv(
        of_era
        - tf.math.floordiv(of_era, 1460)
        + tf.math.floordiv(of_era, 36_524)
        - tf.math.floordiv(of_era, 146_096),
        365,
    )
    of_year = of_era - (365 * years + tf.math.floordiv(years, 4) - tf.math.floordiv(years, 100))
    march = tf.math.floordiv(5 * of_year + 2, 153)
    day = of_year - tf.math.floordiv(153 * march + 2, 5) + 1
    month = tf.where(march < 10, march + 3, march - 9)
    year = years + 400 * era + tf.cast(month <= 2, tf.int64)
    return year, month, day


class CalendarInputs:
    """Puts the calendar beside a caller's inputs.

    Args:
        calendar: Calendar with one column at least.
        frequency: Spacing of the steps.
        read: Whether a forecast depends on the calendar; else its columns are missing values.
        ahead: Names of the inputs read of the steps ahead, in the order of the model.
    """

    def __init__(
        self, calendar: Calendar, frequency: str, read: bool, ahead: Sequence[str] = ()
    ) -> None:
        self._calendar, self.read, self.count = calendar, read, len(calendar.columns)
        self._times = StepTimes(frequency)
        made = [name for name in ahead if name in calendar.columns]
        given = [name for name in ahead if name not in calendar.columns]
        self._made = [calendar.columns.index(name) for name in made]
        self._order = [[*given, *made].index(name) for name in ahead]
        zone = calendar.timezone
        self._zone = None if zone is None else TimeZone(zone, *calendar.years)

    def history(self, history: Any, timestamp: Any) -> Any:
        """Histories (B, T, C) with the columns of the calendar after their own.

        Args:
            history: (B, T, C) as a caller sends it.
            timestamp: (B,) texts, the times of the last steps.
        """
        rows, steps = tf.unstack(tf.shape(history)[:2])
        if not self.read:
            made = tf.fill((rows, steps, len(self._calendar.columns)), float("nan"))
            return tf.concat([history, made], axis=-1)
        timestamp = shaped("timestamp", timestamp)
        with tf.control_dependencies([alike(history, "timestamp", timestamp)]):
            timestamp = tf.identity(timestamp)
        offsets = tf.range(1 - tf.cast(steps, tf.int64), 1, dtype=tf.int64)
        return tf.concat([history, self._columns(timestamp, offsets)], axis=-1)

    def future(self, future: Any, timestamp: Any, horizon: int) -> Any:
        """Inputs (B, H, F) of a caller, or None, with those of the calendar among them."""
        made = self._columns(timestamp, tf.range(1, horizon + 1, dtype=tf.int64))
        made = tf.gather(made, self._made, axis=-1)
        joined = made if future is None else tf.concat([future, made], axis=-1)
        return tf.gather(joined, self._order, axis=-1)

    def _columns(self, timestamp: Any, offsets: Any) -> Any:
        """(B, N, columns) float32, so many steps after the times."""
        last = self._times.read("timestamp", timestamp, self._zone)
        seconds = self._times.steps(last, offsets)
        if self._zone is not None:
            seconds = self._zone.to_local(seconds)
        parts = parts_of(seconds)
        with tf.control_dependencies(self._known(parts["year"], timestamp)):
            parts = {name: tf.identity(value) for name, value in parts.items()}
        day = tf.cast(parts["second"], tf.float64) / 86_400
        cycles = {
            "day": day,
            "week": (tf.cast(parts["weekday"], tf.float64) + day) / 7,
            "year": (tf.cast(parts["day_of_year"], tf.float64) + day) / 365.25,
        }
        made = {name: tf.cast(parts[name], tf.float32) for name in ("weekday", "month")}
        for name, phase in cycles.items():
            for wave, function in (("sin", tf.sin), ("cos", tf.cos)):
                made[f"{name}_{wave}"] = tf.cast(function(2 * np.pi * phase), tf.float32)
        if HOLIDAY in self._calendar.columns:
            made[HOLIDAY] = self._holiday(parts["day"])
        return tf.stack([made[name] for name in self._calendar.columns], axis=-1)

    def _holiday(self, days: Any) -> Any:
        dates = tf.constant([*self._calendar.holidays, np.iinfo(np.int64).max], tf.int64)
        flat = tf.reshape(days, [-1])
        found = tf.equal(tf.gather(dates, tf.searchsorted(dates, flat)), flat)
        return tf.reshape(tf.cast(found, tf.float32), tf.shape(days))

    def _known(self, year: Any, timestamp: Any) -> list[Any]:
        """Assert that holidays and changes of clocks are known of all the years."""
        if not self._calendar.years:
            return []
        first, last = self._calendar.years
        good = tf.reduce_all((year >= first) & (year <= last), axis=1)
        text = tf.concat([tf.boolean_mask(timestamp, tf.logical_not(good)), [""]], 0)[0]
        message = tf.strings.join(
            [
                f"timestamp: expected steps in the years {first} to {last}, of which holidays and "
                "changes of clocks are known; got ",
                text,
            ]
        )
        return [tf.debugging.Assert(tf.reduce_all(good), [message], name="known_years")]


def calendar_inputs(run: ForecastingRun, preprocessor: SeriesPreprocessor) -> CalendarInputs | None:
    """Make the inputs of the calendar, for a run that has any."""
    calendar = run.series.calendar
    if not calendar.columns:
        return None
    ahead = [run.columns[column] for column in preprocessor.future_columns]
    made = any(name in calendar.columns for name in ahead)
    read = made or not run.config.model.channel_independent
    return CalendarInputs(calendar, run.frequency, read, ahead)


def calendar_card(calendar: Calendar) -> dict[str, Any]:
    """Describe the calendar for a model card."""
    return {
        "inputs": list(calendar.columns),
        "holidays": calendar.country,
        "timezone": calendar.timezone,
        "years": list(calendar.years),
    }
