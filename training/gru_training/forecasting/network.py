"""The forecasting networks, from windows of standardised values to their forecasts.

All are GRUs of this project between a normalisation of the window and a dense layer. With
`channel_independent`, the K targets of a window become K rows of one column each.

`ForecasterSteps` exposes a trained network for exports: its gates over the past, and its answers
tick by tick with a state, in plain graph operations on its weights. R is the number of parallel
GRUs: the K targets of a model with `channel_independent`, otherwise one.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from gru_training.forecasting.config import ForecasterConfig, ForecastShape
from gru_training.forecasting.layers import SegmentGRU, TensorSum, WindowNormalisation
from keras_gru import GRU, functional

MEDIAN = 0.5


class Channels(NamedTuple):
    """The channels that correspond to the rows of a network."""

    known: int
    """Number K of known channels."""
    unknown: bool
    """Whether unknown channels are distinguished from the K."""
    ids: Any = None
    """(R,) number of each row's channel; None: K consecutive channels of each window."""


def build_forecaster(
    config: ForecasterConfig,
    shape: ForecastShape,
    levels: Sequence[float] = (MEDIAN,),
    residual: bool = False,
    name: str | None = None,
    ids: int | None = None,
) -> keras.Model:
    """Build a functional model from standardised windows to standardised forecasts.

    Args:
        config: Architecture, sizes, normalisation and loss.
        shape: Look-back L, horizon H, columns C, and the K target columns.
        levels: Levels of the quantiles, ascending and with .5; read only with the loss `quantile`.
        residual: Answer with what to add to another forecast, zero at the beginning; without
            `linear_skip`.
        name: Name of the model; by default made from the architecture.
        ids: K, with `channel_embedding`, where unknown channels have a learned vector beside the K
            (`SegmentGRU`). If only one column is forecast, it is one of the K, and the last column
            says which: its number, or K where it is to be taken for an unknown one.

    Returns:
        A model from `history` (B, L, C) float32 without NaN to (B, H, K, Q) float32: Q is the
        number of levels with the loss `quantile`, else 1.

    Raises:
        ConfigError: A segment is longer than the look-back.
        ValueError: The levels are no ascending probabilities with .5 among them.
    """
    config = config.for_series(shape.lookback, shape.lookback, len(shape.targets))
    outputs = 1
    if config.loss == "quantile":
        _require_levels(levels)
        outputs = len(levels)
    history = keras.Input((shape.lookback, shape.channels), dtype="float32", name="history")
    normalised, level, spread = WindowNormalisation(config.normalisation, name="normalisation")(
        history
    )
    K = len(shape.targets)
    channels = Channels(ids or K, ids is not None)
    if ids is not None and K == 1:
        channels = channels._replace(ids=ops.cast(history[:, -1, -1], "int32"))
    if config.channel_independent:
        rows = ops.reshape(
            ops.transpose(_columns(normalised, shape.targets), (0, 2, 1)), (-1, shape.lookback, 1)
        )
        per_row = _network(config, shape, rows, 1, outputs, residual, channels)  # (B·K, H, 1, Q)
        answers = ops.reshape(per_row, (-1, K, shape.horizon, outputs))
        answers = ops.transpose(answers, (0, 2, 1, 3))
    else:
        answers = _network(config, shape, normalised, K, outputs, residual, channels)
    answers *= ops.expand_dims(_columns(spread, shape.targets), -1)
    if config.linear_skip:
        last = _columns(history[:, -1:], shape.targets)  # (B, 1, K)
        rows = ops.transpose(_columns(history, shape.targets) - last, (0, 2, 1))
        linear = keras.layers.Dense(shape.horizon, kernel_initializer="zeros", name="linear")(rows)
        ahead = TensorSum(name="linear_level")(ops.transpose(linear, (0, 2, 1)), last)
        answers = TensorSum(name="linear_sum")(answers, ops.expand_dims(ahead, -1))
    elif not residual:
        level = ops.expand_dims(_columns(level, shape.targets), -1)
        answers = TensorSum(name="level_sum")(answers, level)
    return keras.Model(history, answers, name=name or f"{config.architecture}_forecaster")


def initialise_linear(model: keras.Model, coefficients: np.ndarray) -> None:
    """Set the linear skip, for instance to the solution of the ridge baseline.

    Args:
        model: Model that was built with `linear_skip`.
        coefficients: (L, H), from windows with their last value subtracted to forecasts likewise.

    Raises:
        ValueError: The shape does not fit, or the model has no linear skip.
    """
    layer = model.get_layer("linear")
    kernel, bias = layer.get_weights()
    if coefficients.shape != kernel.shape:
        raise ValueError(f"coefficients must have shape {kernel.shape}, got {coefficients.shape}")
    layer.set_weights([coefficients, np.zeros_like(bias)])


def _require_levels(levels: Sequence[float]) -> None:
    ascending = all(low < high for low, high in itertools.pairwise(levels))
    if not ascending or MEDIAN not in levels or not 0 < levels[0] <= levels[-1] < 1:
        raise ValueError(
            f"levels must ascend, lie between 0 and 1 and contain {MEDIAN}, got {tuple(levels)}"
        )


def _columns(x: Any, targets: tuple[int, ...]) -> Any:
    """Select the target columns of (B, T, C)."""
    if targets == tuple(range(x.shape[-1])):
        return x
    return ops.take(x, np.array(targets, np.int32), axis=-1)


def _network(
    config: ForecasterConfig,
    shape: ForecastShape,
    x: Any,
    values: int,
    outputs: int,
    residual: bool,
    channels: Channels,
) -> Any:
    """Build the network from (R, L, D) to (R, H, values, outputs), on normalised values."""
    config = replace(config, linear_skip=config.linear_skip or residual)  # for the last layer
    if config.architecture == "segment":
        return _segment(config, shape, x, values, outputs, channels)
    return _one_shot(config, shape, x, values, outputs)


def _segment(
    config: ForecasterConfig,
    shape: ForecastShape,
    x: Any,
    values: int,
    outputs: int,
    channels: Channels,
) -> Any:
    w = config.segment
    assert w is not None
    config.require_lookback(shape.lookback)
    inputs, made = shape.lookback // w, math.ceil(shape.horizon / w)
    independent = bool(config.channel_independent and config.channel_embedding)
    x = ops.reshape(x[:, -inputs * w :], (-1, inputs, w * x.shape[-1]))
    x = _lower_layers(config, keras.layers.Dense(config.units, "relu", name="embedding")(x))
    gru = SegmentGRU(
        config.units,
        made,
        channels.known if independent else 1,
        channels.unknown and independent,
        name="segment_gru",
    )
    states = gru(x) if channels.ids is None or not independent else gru(x, channels.ids)
    answers = _head(config, w * values * outputs)(_dropout(config)(states))
    return ops.reshape(answers, (-1, made * w, values, outputs))[:, : shape.horizon]


def _one_shot(
    config: ForecasterConfig, shape: ForecastShape, x: Any, values: int, outputs: int
) -> Any:
    state = GRU(config.units, name="gru")(_lower_layers(config, x))
    answers = _head(config, shape.horizon * values * outputs)(_dropout(config)(state))
    return ops.reshape(answers, (-1, shape.horizon, values, outputs))


def _lower_layers(config: ForecasterConfig, x: Any) -> Any:
    """Compute the input of the top GRU: (R, N, D), or outputs (R, N, U) of those below it."""
    for number in range(1, config.layers):
        x = GRU(config.units, return_sequences=True, name=f"gru_{number}")(x)
        x = keras.layers.Dropout(config.dropout, name=f"dropout_{number}")(x)
    return x


def _dropout(config: ForecasterConfig) -> keras.layers.Layer:
    return keras.layers.Dropout(config.dropout, name="dropout")


def _head(config: ForecasterConfig, size: int) -> keras.layers.Layer:
    """Apply the last layer.

    Beside a linear skip it starts at zero, so the sum starts at the ridge regression.
    """
    initial = "zeros" if config.linear_skip else "glorot_uniform"
    return keras.layers.Dense(size, kernel_initializer=initial, name="head")


class Opened(NamedTuple):
    """Every step of the top GRU over a history: N segments or ticks, U units; (B, N, R, U)."""

    update_gate: Any
    """Update gate z; near 1 it keeps the state."""
    reset_gate: Any
    """Reset gate r."""
    state: Any
    """State after the step."""


class ForecasterSteps:
    """A trained forecaster with access to its gates and states.

    Args:
        model: Model of `build_forecaster`.
        config: Settings that it was built with.
        shape: Shape that it was built with.
    """

    def __init__(self, model: keras.Model, config: ForecasterConfig, shape: ForecastShape):
        config = config.for_series(shape.lookback, shape.lookback, len(shape.targets))
        self._config, self._shape = config, shape
        self._normalisation = model.get_layer("normalisation")
        segment = config.architecture == "segment"
        self._embedding = model.get_layer("embedding") if segment else None
        top = model.get_layer("segment_gru").encoder if segment else model.get_layer("gru")
        lower = (model.get_layer(f"gru_{number}") for number in range(1, config.layers))
        self._cells = [gru.cell for gru in (*lower, top)]
        self._head = model.get_layer("head") if config.architecture == "one_shot" else None
        self._rows = len(shape.targets) if config.channel_independent else 1

    @property
    def width(self) -> int:
        """The steps of the history per step of the GRU."""
        segment = self._config.segment if self._config.architecture == "segment" else 1
        assert segment is not None
        return segment

    @property
    def streams(self) -> bool:
        """True if the model can answer tick by tick."""
        return self._config.streams

    @property
    def state_size(self) -> int:
        """The size S of the state that `advance` carries.

        It holds the states of all GRUs, the last valid value of each column, and whether there was
        one. Zeros are a new beginning.
        """
        layers = self._config.layers
        return layers * self._rows * self._config.units + 2 * self._shape.channels

    def open(self, history: Any) -> Opened:
        """Compute gates and states of the encoder.

        Args:
            history: (B, T, C) without NaN, of which a model that does not stream reads the last
                L steps.
        """
        if not self.streams:
            history = history[:, -self._shape.lookback :]
        x = self._inputs(history)
        if self._embedding is not None:
            w = self._config.segment
            assert w is not None
            count = self._shape.lookback // w
            x = self._embedding(tf.reshape(x[:, -count * w :], (-1, count, w * x.shape[-1])))
        *lower, top = self._cells
        for cell in lower:
            x = self._run(cell, x, return_sequences=True).states
        run = self._run(top, x, return_sequences=True, return_gates=True)
        assert run.gates is not None
        return Opened(*(self._by_row(v) for v in (run.gates.z, run.gates.r, run.states)))

    def forecasts(self, history: Any) -> Any:
        """Compute the answer after each tick of (B, T, C), (B, T, H, K, Q).

        For models that stream.
        """
        states = self._inputs(history)
        for cell in self._cells:
            states = self._run(cell, states, return_sequences=True).states
        levels = history if self._config.normalisation == "difference" else None
        return self._answer(self._by_row(states), levels)

    def forecast(self, history: Any) -> Any:
        """Compute the answer (B, H, K, Q) to all of (B, T, C), T >= 1; for models that stream."""
        *lower, top = self._cells
        x = self._inputs(history)
        for cell in lower:
            x = self._run(cell, x, return_sequences=True).states
        final = self._run(top, x).final
        levels = history[:, -1:] if self._config.normalisation == "difference" else None
        return self._answer(self._by_row(final[:, tf.newaxis]), levels)[:, 0]

    def advance(self, value: Any, state: Any) -> tuple[Any, Any]:
        """Read one tick; for models that stream.

        Args:
            value: (B, C), NaN where missing: then the last value seen counts again, and before
                there was one, zero.
            state: (B, S), zeros at the beginning.

        Returns:
            The forecast (B, H, K, Q) after everything read so far, and the state after it (B, S).
        """
        channels, width = self._shape.channels, self._rows * self._config.units
        *before, last, seen = tf.split(
            state, [*[width] * len(self._cells), channels, channels], axis=-1
        )
        known = tf.logical_not(tf.math.is_nan(value))
        value = tf.where(known, value, last)
        difference = self._config.normalisation == "difference"
        read = tf.where(seen > 0, value - last, tf.zeros_like(value)) if difference else value
        x = self._by_target(read[:, tf.newaxis])  # (B·R, 1, D)
        states = []
        for cell, h in zip(self._cells, before, strict=True):
            h = self._run(cell, x, tf.reshape(h, (-1, self._config.units))).final
            states.append(tf.reshape(h, (-1, width)))
            x = h[:, tf.newaxis]
        forecast = self._answer(
            self._by_row(h[:, tf.newaxis]), value[:, tf.newaxis] if difference else None
        )[:, 0]
        seen = tf.maximum(seen, tf.cast(known, seen.dtype))
        after = tf.concat([*states, value, seen], axis=-1)
        return forecast, after

    def _inputs(self, history: Any) -> Any:
        normalised, _, _ = self._normalisation(history)
        return self._by_target(normalised)

    def _by_target(self, x: Any) -> Any:
        """Arrange (B, T, C) as the GRU reads it, (B·R, T, D)."""
        if not self._config.channel_independent:
            return x
        x = tf.transpose(tf.gather(x, self._shape.targets, axis=-1), (0, 2, 1))
        return tf.reshape(x, (-1, tf.shape(x)[-1], 1))

    def _by_row(self, x: Any) -> Any:
        """Reshape (B·R, N, U) to (B, N, R, U)."""
        x = tf.reshape(x, (-1, self._rows, tf.shape(x)[1], self._config.units))
        return tf.transpose(x, (0, 2, 1, 3))

    @staticmethod
    def _run(
        cell: Any,
        x: Any,
        h: Any = None,
        return_sequences: bool = False,
        return_gates: bool = False,
    ) -> functional.Sequence:
        return functional.sequence(
            x,
            h,
            cell.kernel,
            cell.recurrent_kernel,
            cell.bias,
            cell.convention,
            path="plain",
            return_sequences=return_sequences,
            return_gates=return_gates,
        )

    def _answer(self, states: Any, history: Any) -> Any:
        """Convert (B, N, R, U) to (B, N, H, K, Q), on the level of a history (B, N, C) if given."""
        assert self._head is not None
        K, H = len(self._shape.targets), self._shape.horizon
        # This is done as one matrix product of rank 4 at most, beyond which TensorFlow's may crash.
        answers = self._head(tf.reshape(states, (-1, self._config.units)))  # (B·N·R, H·K/R·Q)
        values = K // self._rows  # of each GRU
        shape = tf.shape(states)
        answers = tf.reshape(
            answers, (shape[0], shape[1], self._rows, H, values, answers.shape[-1] // (H * values))
        )
        answers = tf.transpose(answers, (0, 1, 3, 2, 4, 5))  # one of R and `values` is 1
        answers = tf.reshape(answers, (shape[0], shape[1], H, K, answers.shape[-1]))
        if history is None:
            return answers
        return answers + tf.gather(history, self._shape.targets, axis=-1)[:, :, tf.newaxis, :, None]


def sequence_of(
    shown: tuple[keras.Model, ForecastShape] | None, config: ForecasterConfig
) -> Callable[[Any], Any] | None:
    """Return the function that answers histories of any length, for a model that streams.

    Args:
        shown: Network and the shape that it was built with; None: there is none.
        config: Settings of the network.
    """
    if shown is None or not config.streams:
        return None
    return ForecasterSteps(shown[0], config, shown[1]).forecast
