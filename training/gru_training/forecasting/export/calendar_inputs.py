"""Inputs that follow from the time, in the graph, so that no caller makes them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from gru_training.data.calendar import HOLIDAY, Calendar
from gru_training.forecasting.export.input_checks import alike, shaped
from gru_training.forecasting.export.step_times import StepTimes, parts_of
from gru_training.forecasting.export.time_zone import TimeZone
from gru_training.forecasting.preprocessor import SeriesPreprocessor
from gru_training.forecasting.run import ForecastingRun


class CalendarInputs:
    """Puts the calendar beside a caller's inputs.

    Args:
        calendar: With one column at least.
        frequency: Of the steps.
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
            history: Of a caller.
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
        """That holidays and changes of clocks are known of all the years."""
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
    """What makes the columns of the calendar, of a run that has any."""
    calendar = run.series.calendar
    if not calendar.columns:
        return None
    ahead = [run.columns[column] for column in preprocessor.future_columns]
    made = any(name in calendar.columns for name in ahead)
    read = made or not run.config.model.channel_independent
    return CalendarInputs(calendar, run.frequency, read, ahead)


def calendar_card(calendar: Calendar) -> dict[str, Any]:
    """What a model card says of it."""
    return {
        "inputs": list(calendar.columns),
        "holidays": calendar.country,
        "timezone": calendar.timezone,
        "years": list(calendar.years),
    }
