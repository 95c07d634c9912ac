"""Evenly spaced times in the graph: read from text, and counted on from step to step."""

import re
from typing import Any

import pandas as pd
import tensorflow as tf

from gru_training.errors import ConfigError
from gru_training.forecasting.export.time_zone import TimeZone

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
            name: Of the input, for messages.
            texts: Whatever a caller sent.
            zone: Whose local time a text without an offset means; None: that of the series.
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
    """What times are made of, int64.

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
