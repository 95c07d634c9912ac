"""A trained forecaster opened: its gates over the past, and tick by tick with a state.

Everything here is plain graph operations on the weights of a trained model, for exports. All
values are standardised. R is the number of GRUs that run side by side: the K targets of a model
with `channel_independent`, else one.
"""

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from gru_training.forecasting.network.config import ForecasterConfig, ForecastShape
from keras_gru import functional


class Opened(NamedTuple):
    """Every step of the top GRU over a history: N segments or ticks, U units; (B, N, R, U)."""

    update_gate: Any
    """z; near 1 it keeps the state."""
    reset_gate: Any
    """r."""
    state: Any
    """After the step."""


class ForecasterSteps:
    """A trained forecaster, opened.

    Args:
        model: Of `gru_training.forecasting.network.model.build_forecaster`.
        config: That it was built with.
        shape: That it was built with.
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
        """Steps of the history for each step of the GRU."""
        segment = self._config.segment if self._config.architecture == "segment" else 1
        assert segment is not None
        return segment

    @property
    def streams(self) -> bool:
        """Whether the model can answer tick by tick."""
        return self._config.streams

    @property
    def state_size(self) -> int:
        """Size S of the state that `advance` carries.

        The states of all GRUs, the last value seen of each column, and whether there was one.
        Zeros are a new beginning.
        """
        layers = self._config.layers
        return layers * self._rows * self._config.units + 2 * self._shape.channels

    def open(self, history: Any) -> Opened:
        """Gates and states of the encoder.

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
        """The answer after each tick of (B, T, C), (B, T, H, K, Q); for models that stream."""
        states = self._inputs(history)
        for cell in self._cells:
            states = self._run(cell, states, return_sequences=True).states
        levels = history if self._config.normalisation == "difference" else None
        return self._answer(self._by_row(states), levels)

    def forecast(self, history: Any) -> Any:
        """The model's answer (B, H, K, Q) to all of (B, T, C), T >= 1; for models that stream."""
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
        """(B, T, C) as the GRU reads it, (B·R, T, D)."""
        if not self._config.channel_independent:
            return x
        x = tf.transpose(tf.gather(x, self._shape.targets, axis=-1), (0, 2, 1))
        return tf.reshape(x, (-1, tf.shape(x)[-1], 1))

    def _by_row(self, x: Any) -> Any:
        """(B·R, N, U) as (B, N, R, U)."""
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
        """(B, N, R, U) to (B, N, H, K, Q), on the level of a history (B, N, C) if one is given."""
        assert self._head is not None
        K, H = len(self._shape.targets), self._shape.horizon
        # As a matrix: one product, and none over rank 4, which TensorFlow's may not survive.
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
