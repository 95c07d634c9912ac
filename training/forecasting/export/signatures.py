"""What an exported forecaster answers: raw units in and out, the scaler in the graph."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_gru import portable
from training.forecasting.export.column_names import ColumnNames
from training.forecasting.export.one_series import OneSeries
from training.forecasting.network.config import ForecasterConfig, ForecastShape
from training.forecasting.network.steps import ForecasterSteps
from training.forecasting.preprocessor import SeriesPreprocessor
from training.forecasting.scores.conformal import MEDIAN, quantiles


class ForecastingSignatures(tf.Module):
    """A forecaster in raw units.

    B series, T steps, C columns read, H horizons, K columns forecast, Q levels, S the size of the
    streaming state, R GRUs side by side (K with `channel_independent`, else 1), U units.

    Args:
        model: From standardised windows to forecasts, (B, L, C) to (B, H, K, Q or 1).
        shown: The network, within it or itself, whose gates can be shown, and the shape that it
            was built with (`training.forecasting.network.model.build_forecaster`); None: no
            network has a part in the forecasts.
        config: Of the network.
        shape: Of the model.
        preprocessor: Of the run.
        columns: The C names of the columns read, for error messages.
        levels: The Q levels, ascending, with .5.
        offsets: (H, K, Q) standardised, of
            `training.forecasting.scores.conformal.interval_offsets`.
        panel: Whether columns may be without any value in the steps read, as of a series that has
            ended: their forecasts are NaN then.
        one_series: For series that the model never saw; None: there is no such signature.
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
        alone = shown is None or config.channel_independent
        self.read = shape.targets if alone else tuple(range(shape.channels))
        self._names = ColumnNames(columns, shape.targets, self.read)
        self._columns = tf.constant([columns[number] for number in self.read], tf.string)
        self._panel = panel
        self._one: Any = None
        if one_series is not None:
            self._one = partial(one_series.forecast)
            self._weights += [variable.value for variable in one_series.model.variables]
        self._levels, self._middle = tuple(levels), list(levels).index(MEDIAN)
        self._offsets = tf.constant(offsets, tf.float32)

    def concrete(self) -> dict[str, Any]:
        """The concrete functions by signature name.

        `gates` is for the architectures segment and one_shot, `step` for models that stream.
        """
        # Not attributes of the module: the writer would trace and save those a second time.
        names = tf.TensorSpec((None, None), tf.string, "names")
        theirs = tf.TensorSpec((None, None, None), tf.float32, "history")
        called = tf.TensorSpec((None, None), tf.string, "columns")
        history = tf.TensorSpec((None, None, self._channels), tf.float32, "history")
        value = tf.TensorSpec((None, self._channels), tf.float32, "value")
        state = tf.TensorSpec((None, self.state_size), tf.float32, "state")
        with portable():
            signatures = {
                "serving_default": tf.function(self.serving_default).get_concrete_function(history)
            }
            signatures["by_name"] = tf.function(self.by_name).get_concrete_function(theirs, called)
            signatures["columns"] = tf.function(self.columns).get_concrete_function(names)
            if self._one is not None:
                single = tf.TensorSpec((None, None), tf.float32, "history")
                signatures["one_series"] = tf.function(self.one_series).get_concrete_function(
                    single
                )
            if self._opens:
                signatures["gates"] = tf.function(self.gates).get_concrete_function(history)
            if self._streams:
                signatures["step"] = tf.function(self.step).get_concrete_function(value, state)
        return signatures

    def serving_default(self, history: Any) -> dict[str, Any]:
        """Forecast.

        Args:
            history: (B, T, C) float32 in raw units, NaN = missing. A model that streams reads all
                of it; any other the last L steps, and needs so many.

        Returns:
            `forecast` (B, H, K) and `quantiles` (B, H, K, Q), float32, in raw units.
        """
        history = _shaped("history", history)
        answers = self._answers(self._forecast(self._prepared(history)))
        if not self._panel:
            return answers
        read = tf.gather(history[:, -self._lookback :], self._targets, axis=-1)
        ended = tf.reduce_all(tf.math.is_nan(read), axis=1)[:, tf.newaxis]  # (B, 1, K)
        nan = float("nan")
        return {
            "forecast": tf.where(ended, nan, answers["forecast"]),
            "quantiles": tf.where(ended[..., tf.newaxis], nan, answers["quantiles"]),
        }

    def by_name(self, history: Any, columns: Any) -> dict[str, Any]:
        """Forecast from columns in any order, among which there may be others.

        Args:
            history: (B, T, N) float32 as of `serving_default`.
            columns: (B, N) texts, what the columns of each row are called.

        Returns:
            As of `serving_default`.
        """
        history, columns = _shaped("history", history), _shaped("columns", columns)
        return self.serving_default(self._names.ordered(history, columns))

    def columns(self, names: Any) -> dict[str, Any]:
        """Say which columns the model reads, and where they stand among a caller's.

        See `training.forecasting.export.column_names.ColumnNames.places`.
        """
        return self._names.places(_shaped("names", names))

    def one_series(self, history: Any) -> dict[str, Any]:
        """Forecast series that the model never saw, each on the scale of its own history.

        See `training.forecasting.export.one_series.OneSeries`.
        """
        assert self._one is not None
        history = _shaped("history", history)
        empty = tf.reduce_all(tf.math.is_nan(history), axis=1)
        row = tf.argmax(tf.cast(empty, tf.int32), output_type=tf.int32)
        message = tf.strings.join(
            ["history: row ", tf.strings.as_string(row), " has no value; expected at least one"]
        )
        known = tf.debugging.Assert(tf.logical_not(tf.reduce_any(empty)), [message], name="known")
        with tf.control_dependencies([known, _finite("history", history)]):
            history = tf.identity(history)
        answer: dict[str, Any] = self._one(history)
        return answer

    def gates(self, history: Any) -> dict[str, Any]:
        """Show what the gates did at each segment or step.

        Args:
            history: As of `serving_default`.

        Returns:
            `update_gate`, `reset_gate` and `state` (B, N, R, U) float32 at each of the N
            segments or steps, and `end` (B, N) int32, the step of the history, from 0, with
            which each of them ends; `values` (B, T', K) of the columns forecast in the T' steps
            read, missing ones filled. With a model that streams also `forecast` (B, N, H, K),
            the answer after each step.
        """
        history = _shaped("history", history)
        length = tf.shape(history)[1]
        history = self._prepared(history)
        shown = self._open(history)
        rows, count = tf.unstack(tf.shape(shown.state)[:2])
        end = length - 1 - self._width * tf.range(count - 1, -1, -1)
        answers = {
            "end": tf.broadcast_to(end, (rows, count)),
            "update_gate": shown.update_gate,
            "reset_gate": shown.reset_gate,
            "state": shown.state,
            "values": self._restore(tf.gather(history, self._targets, axis=-1)),
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
        value = _shaped("value", value)
        state = _shaped("state", state)
        with tf.control_dependencies([_finite("value", value)]):
            missing = tf.math.is_nan(value)
        known = self._standardise(tf.where(missing, tf.zeros_like(value), value)[:, tf.newaxis])
        standardised = tf.where(missing, value, known[:, 0])
        forecast, after = self._advance(standardised, state)
        return {**self._answers(forecast), "state": after}

    def _forecast(self, history: Any) -> Any:
        return self._sequence(history) if self._streams else self._model(history)

    def _prepared(self, history: Any) -> Any:
        """What the model reads: checked, cut, standardised and filled."""
        with tf.control_dependencies([self._long_enough(history), _finite("history", history)]):
            history = tf.identity(history)
        if not self._streams:
            history = history[:, -self._lookback :]
        complete = [] if self._panel else [self._some_value(history)]
        with tf.control_dependencies(complete):
            history = self._standardise(tf.identity(history))
        if not self._streams:
            history = tf.ensure_shape(history, (None, self._lookback, self._channels))
        return history

    def _long_enough(self, history: Any) -> Any:
        length = tf.shape(history)[1]
        needed = f"history: expected at least {self.least_steps} steps, got "
        message = tf.strings.join([needed, tf.strings.as_string(length)])
        return tf.debugging.Assert(length >= self.least_steps, [message], name="long_enough")

    def _some_value(self, history: Any) -> Any:
        """That each column read has a value in each row of (B, T, C)."""
        read = tf.gather(history, self.read, axis=-1)
        empty = tf.reduce_all(tf.math.is_nan(read), axis=1)  # (B, columns read)
        row, column = tf.unstack(tf.concat([tf.where(empty), tf.zeros((1, 2), tf.int64)], 0)[0])
        message = tf.strings.join(
            [
                "history: row ",
                tf.strings.as_string(row),
                " has no value of column ",
                tf.gather(self._columns, column),
                " in the steps read, the last ",
                tf.strings.as_string(tf.shape(history)[1]),
                "; expected at least one that is not NaN",
            ]
        )
        filled = tf.logical_not(tf.reduce_any(empty))
        return tf.debugging.Assert(filled, [message], name="some_value")

    def _answers(self, forecasts: Any) -> dict[str, Any]:
        """Outputs for (B, H, K, 1) or (B, H, K, Q), standardised."""
        served = quantiles(forecasts, self._offsets, self._levels)
        raw = self._restore(served)
        return {"forecast": raw[..., self._middle], "quantiles": raw}


def _shaped(name: str, values: Any) -> Any:
    """The values, if they have as many dimensions and as wide a last one as their signature says.

    Servers do not compare the two, and a single column would be spread over all.
    """
    expected = ["?" if size is None else str(size) for size in values.shape]
    # Hide the shape from graph optimizers, which would otherwise fold the check to true.
    fed = tf.shape(tf.raw_ops.PlaceholderWithDefault(input=values, shape=tf.TensorShape(None)))
    fits = tf.equal(tf.size(fed), len(expected))
    if values.shape[-1] is not None:
        fits = tf.logical_and(fits, tf.reduce_all(tf.equal(fed[-1:], values.shape[-1])))
    got = tf.strings.reduce_join(tf.strings.as_string(fed), separator=", ")
    needed = f"{name}: expected shape [{', '.join(expected)}], got ["
    message = tf.strings.join([needed, got, "]"])
    with tf.control_dependencies([tf.debugging.Assert(fits, [message], name="shaped")]):
        return tf.identity(values)


def _finite(name: str, values: Any) -> Any:
    message = f"{name}: expected finite numbers, or NaN where missing, got infinity"
    finite = tf.logical_not(tf.reduce_any(tf.math.is_inf(values)))
    return tf.debugging.Assert(finite, [message], name="finite")
