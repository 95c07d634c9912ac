"""The answers of an exported forecaster: raw units in and out, the scaler in the graph."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from gru_training.forecasting.config import ForecasterConfig, ForecastShape
from gru_training.forecasting.export.inputs import (
    ColumnNames,
    alike,
    finite,
    input_specs,
    long_enough,
    numbers,
    one_series_specs,
    seen,
    shaped,
    some_value,
)
from gru_training.forecasting.export.one_series import OneSeries
from gru_training.forecasting.export.times import CalendarInputs
from gru_training.forecasting.intervals import MEDIAN, quantiles
from gru_training.forecasting.network import ForecasterSteps
from gru_training.forecasting.preprocessor import SeriesPreprocessor
from keras_gru import portable


class ForecastingSignatures(tf.Module):
    """A forecaster in raw units.

    B series, T steps, C columns read, F of them known of the steps ahead, H horizons, K columns
    forecast, Q levels, S the size of the streaming state, R GRUs side by side (K with
    `channel_independent`, else 1), U units.

    Args:
        model: Model from standardised windows to forecasts, (B, L, C) to (B, H, K, Q or 1).
        shown: The network, within it or itself, whose gates can be shown, and the shape that it
            was built with (`gru_training.forecasting.network.build_forecaster`); None: no
            network has a part in the forecasts.
        config: Settings of the network.
        shape: Shape of the model.
        preprocessor: Scale of the run.
        columns: The C names of the columns read, for error messages.
        levels: The Q levels, ascending, with .5.
        offsets: (H, K, Q) standardised, of
            `gru_training.forecasting.intervals.interval_offsets`.
        panel: Whether columns may be without any value in the steps read, as of a series that has
            ended: their forecasts are NaN then.
        one_series: Forecaster of series that the model never saw; None: there is no such signature.
        calendar: Calendar inputs, the last of the columns, which callers lack; None: they have all.
    """

    def __init__(
        self,
        model: keras.Model,
        shown: tuple[keras.Model, ForecastShape] | None,
        config: ForecasterConfig,
        shape: ForecastShape,
        preprocessor: SeriesPreprocessor,
        columns: Sequence[str],
        levels: Sequence[float],
        offsets: np.ndarray,
        panel: bool = False,
        one_series: OneSeries | None = None,
        calendar: CalendarInputs | None = None,
    ) -> None:
        super().__init__(name="forecasting")
        # Bare functions: of a model as attribute the writer would save Keras' own graphs too.
        self._model = partial(model, training=False)
        self._weights = [variable.value for variable in model.variables]
        self._streams = self.reads_all = shown is not None and config.streams
        self._opens = shown is not None and config.architecture != "seq2seq"
        self.state_size, self._width = 0, 1
        if shown is not None:
            steps = ForecasterSteps(shown[0], config, shown[1])
            self.state_size = steps.state_size if self._streams else 0
            self._width = steps.width
            self._sequence, self._advance = partial(steps.forecast), partial(steps.advance)
            self._open, self._forecasts = partial(steps.open), partial(steps.forecasts)
        self._targets = shape.targets
        self._lookback, self._channels = shape.lookback, shape.channels
        self.least_steps = 1 if self._streams else shape.lookback
        self._standardise, self._restore = preprocessor.standardise, preprocessor.restore
        self._calendar = calendar
        given = shape.channels - (calendar.count if calendar else 0)
        self._effects, self._ahead = preprocessor.effects, preprocessor.future_columns
        self.known = tuple(column for column in self._ahead if column < given)
        self._horizon, self._given = shape.horizon, given
        alone = shown is None or config.channel_independent
        read = sorted({*shape.targets, *self.known}) if self.known else shape.targets
        self.read = read if alone else tuple(range(given))
        columns = columns[:given]
        self._names = ColumnNames(columns, shape.targets, self.read, self.known)
        self._columns = tf.constant([columns[number] for number in self.read], tf.string)
        self._panel = panel
        self._one: Any = None
        if one_series is not None:
            self._one = partial(one_series.forecast)
            self._inputs = one_series.inputs.count if one_series.inputs else 0
            self._weights += [variable.value for variable in one_series.model.variables]
        self._levels, self._middle = tuple(levels), list(levels).index(MEDIAN)
        self._offsets = tf.constant(offsets, tf.float32)

    def concrete(self) -> dict[str, Any]:
        """The concrete functions by signature name.

        `gates` is for the architectures segment and one_shot, `step` for models that stream.
        """
        timed = self._calendar is not None and self._calendar.read
        inputs = input_specs(self._given, self._horizon, len(self.known), timed)
        if self._one is not None:
            inputs["one_series"] = one_series_specs(self._inputs, self._horizon)
        if not self._opens:
            del inputs["gates"]
        if self._streams:
            value, state = (None, self._channels), (None, self.state_size)
            inputs["step"] = {"value": numbers("value", *value), "state": numbers("state", *state)}
        # Not attributes of the module: the writer would trace and save those a second time.
        with portable():
            return {
                name: tf.function(getattr(self, name), autograph=False).get_concrete_function(**of)
                for name, of in inputs.items()
            }

    def serving_default(
        self, history: Any, future: Any = None, timestamp: Any = None
    ) -> dict[str, Any]:
        """Forecast.

        Args:
            history: (B, T, C) float32 in raw units, NaN = missing. A model that streams reads all
                of it; any other the last L steps, and needs so many.
            future: (B, H, F) float32 in raw units, the known inputs of the steps ahead, for a model
                that reads such; NaN = as in the step before.
            timestamp: (B,) texts, the time of the last step of each history as
                `2024-05-31 13:00:00`, for a model that reads the calendar.

        Returns:
            `forecast` (B, H, K) and `quantiles` (B, H, K, Q), float32, in raw units.
        """
        history = shaped("history", history)
        prepared, effects = self._prepared(history, timestamp), None
        if self.known:
            future = shaped("future", future)
            fits = finite("future", future), alike(history, "future", future)
            with tf.control_dependencies(fits):
                future = tf.ensure_shape(future, (None, self._horizon, len(self.known)))
        if self._ahead:
            whole = self._whole(history[:, -self._lookback :], timestamp)
            if self._calendar is not None:
                future = self._calendar.future(future, timestamp, self._horizon)
            effects = self._effects(whole, future)
        answers = self._answers(self._forecast(prepared), effects)
        if not self._panel:
            return answers
        read = tf.gather(history[:, -self._lookback :], self._targets, axis=-1)
        ended = tf.reduce_all(tf.math.is_nan(read), axis=1)[:, tf.newaxis]  # (B, 1, K)
        nan = float("nan")
        return {
            "forecast": tf.where(ended, nan, answers["forecast"]),
            "quantiles": tf.where(ended[..., tf.newaxis], nan, answers["quantiles"]),
        }

    def by_name(
        self,
        history: Any,
        columns: Any,
        future: Any = None,
        future_columns: Any = None,
        timestamp: Any = None,
    ) -> dict[str, Any]:
        """Forecast from columns in any order, among which there may be others.

        Args:
            history: (B, T, N) float32, as for `serving_default`.
            columns: Names of the columns of each row, (B, N) texts.
            future: (B, H, M) float32, as for `serving_default`, for a model that reads known
                inputs.
            future_columns: Names of the columns of `future`, (B, M) texts.
            timestamp: (B,) texts, as for `serving_default`.

        Returns:
            Outputs by name, those of `serving_default`.
        """
        history, columns = shaped("history", history), shaped("columns", columns)
        ordered = self._names.ordered(history, columns)
        if not self.known:
            return self.serving_default(ordered, timestamp=timestamp)
        named = shaped("future", future), shaped("future_columns", future_columns)
        return self.serving_default(ordered, self._names.ordered_future(*named), timestamp)

    def columns(self, names: Any) -> dict[str, Any]:
        """Say which columns the model reads, and where they stand among a caller's.

        See `gru_training.forecasting.export.inputs.ColumnNames.places`.
        """
        return self._names.places(shaped("names", names))

    def one_series(self, history: Any, past: Any = None, future: Any = None) -> dict[str, Any]:
        """Forecast series that the model never saw, each on the scale of its own history.

        See `gru_training.forecasting.export.one_series.OneSeries`.
        """
        history = shaped("history", history)
        sent = {"past": past, "future": future}
        given = {name: shaped(name, of) for name, of in sent.items() if of is not None}
        checks = [finite("history", history), seen(history)]
        for name, values in given.items():
            checks += [finite(name, values), alike(history, name, values)]
        with tf.control_dependencies(checks):
            history = tf.identity(history)
        return dict(self._one(history, **given))

    def gates(self, history: Any, timestamp: Any = None) -> dict[str, Any]:
        """Show what the gates did at each segment or step.

        Args:
            history: Histories as of `serving_default`.
            timestamp: Times as of `serving_default`.

        Returns:
            `update_gate`, `reset_gate` and `state` (B, N, R, U) float32 at each of the N
            segments or steps, and `end` (B, N) int32, the step of the history, from 0, with
            which each of them ends; `values` (B, T', K) of the columns forecast in the T' steps
            read, missing ones filled. With a model that streams also `forecast` (B, N, H, K),
            the answer after each step.
        """
        raw = shaped("history", history)
        length = tf.shape(raw)[1]
        history = self._prepared(raw, timestamp)
        shown = self._open(history)
        whole = self._whole(raw[:, -self._lookback :], timestamp)
        added = self._effects(whole) if self._ahead else None
        rows, count = tf.unstack(tf.shape(shown.state)[:2])
        end = length - 1 - self._width * tf.range(count - 1, -1, -1)
        answers = {
            "end": tf.broadcast_to(end, (rows, count)),
            "update_gate": shown.update_gate,
            "reset_gate": shown.reset_gate,
            "state": shown.state,
            "values": self._restore(tf.gather(history, self._targets, axis=-1), added),
        }
        if self._streams:
            forecasts = self._forecasts(history)  # (B, N, H, K, 1 or Q)
            point = forecasts[..., self._middle if forecasts.shape[-1] > 1 else 0]
            rows = tf.shape(point)
            flat = self._restore(tf.reshape(point, tf.concat([[-1], rows[2:]], 0)))
            answers["forecast"] = tf.reshape(flat, rows)
        return answers

    def step(self, value: Any, state: Any) -> dict[str, Any]:
        """Read on: the forecast after everything read so far. The caller keeps the state.

        Args:
            value: (B, C) float32, the next tick in raw units, NaN = missing: the last value seen
                counts again. Before a column's first value the training mean does; there
                `serving_default`, which sees the value that follows, answers differently.
            state: (B, S) float32, zeros at the beginning, then what the step before returned.

        Returns:
            `forecast` and `quantiles` as of `serving_default`, and the new `state`.
        """
        value = shaped("value", value)
        state = shaped("state", state)
        with tf.control_dependencies([finite("value", value)]):
            missing = tf.math.is_nan(value)
        known = self._standardise(tf.where(missing, tf.zeros_like(value), value)[:, tf.newaxis])
        standardised = tf.where(missing, value, known[:, 0])
        forecast, after = self._advance(standardised, state)
        return {**self._answers(forecast), "state": after}

    def _forecast(self, history: Any) -> Any:
        return self._sequence(history) if self._streams else self._model(history)

    def _whole(self, history: Any, timestamp: Any) -> Any:
        """A history of callers with the columns that are made of the times."""
        if self._calendar is None:
            return history
        return self._calendar.history(history, timestamp)

    def _prepared(self, history: Any, timestamp: Any) -> Any:
        """Prepare what the model reads: checked, cut, standardised and filled."""
        enough = long_enough(history, self.least_steps)
        with tf.control_dependencies([enough, finite("history", history)]):
            history = tf.identity(history)
        if not self._streams:
            history = history[:, -self._lookback :]
        complete = [] if self._panel else [some_value(history, self.read, self._columns)]
        with tf.control_dependencies(complete):
            history = self._standardise(self._whole(tf.identity(history), timestamp))
        if not self._streams:
            history = tf.ensure_shape(history, (None, self._lookback, self._channels))
        return history

    def _answers(self, forecasts: Any, effects: Any = None) -> dict[str, Any]:
        """Outputs for (B, H, K, 1) or (B, H, K, Q), standardised, and what known inputs add."""
        served = quantiles(forecasts, self._offsets, self._levels)
        raw = self._restore(served, effects)
        return {"forecast": raw[..., self._middle], "quantiles": raw}
