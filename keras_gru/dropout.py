"""Dropout masks of a recurrent cell, drawn once per call and used at every step."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

# keras.layers.RNN draws masks before its loop only for subclasses of this class, which Keras does
# not export; and only its global state tells a cell whether the call around it is training.
from keras.src.backend.common import global_state
from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell

from keras_gru.weights import GATE_COUNT, Gates

Tensor = Any


class VariationalDropout(DropoutRNNCell):
    """Mixin of a recurrent cell: one input mask, and one recurrent mask per gate.

    The masks are those of Gal & Ghahramani 2016 (arXiv:1512.05287): the same at every time step.
    Unlike Keras' own mixin it draws nothing outside training, so that an inference graph holds no
    random operation and writes no seed.

    The cell has `dropout` and `recurrent_dropout`, rates in [0, 1), and `seed_generator`.
    """

    dropout: float
    recurrent_dropout: float
    seed_generator: keras.random.SeedGenerator
    _dropout_mask: Tensor | None = None
    _recurrent_dropout_mask: Gates[Tensor] | None = None

    def get_dropout_mask(self, step_input: Tensor) -> Tensor | None:
        """Mask of the inputs, shaped and typed like `step_input` (B, D); None if there is none."""
        if self._dropout_mask is None and _applies(self.dropout):
            self._dropout_mask = self._draw(tf.ones_like(step_input), self.dropout)
        return self._dropout_mask

    def get_recurrent_dropout_mask(self, step_input: Tensor) -> Gates[Tensor] | None:
        """Masks of the state, one per gate, each like `step_input` (B, U); None if none apply."""
        if self._recurrent_dropout_mask is None and _applies(self.recurrent_dropout):
            # One draw of (3, B, U): three draws would be three random ops.
            ones = tf.stack([tf.ones_like(step_input)] * GATE_COUNT)
            self._recurrent_dropout_mask = Gates(
                *tf.unstack(self._draw(ones, self.recurrent_dropout))
            )
        return self._recurrent_dropout_mask

    def _draw(self, ones: Tensor, rate: float) -> Tensor:
        return keras.random.dropout(ones, rate, seed=self.seed_generator)


def check_rate(name: str, rate: float) -> float:
    """Return a dropout rate, or raise ValueError unless it lies in [0, 1)."""
    if not 0 <= rate < 1:
        raise ValueError(f"Argument `{name}` must be a number in [0, 1). Received: {name}={rate!r}")
    return float(rate)


def _applies(rate: float) -> bool:
    context = global_state.get_global_attribute("current_call_ctx")
    return rate > 0 and bool(getattr(context, "training", False))
