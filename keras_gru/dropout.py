"""Dropout masks of a recurrent cell, drawn once per call and used at every step."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

# keras.layers.RNN draws masks before its loop only for subclasses of this class, which Keras does
# not export; and only its global state tells a cell whether the call around it is training.
from keras.src.backend.common import global_state
from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell

from keras_gru.kernel.weights import GATE_COUNT, Gates

Tensor = Any


class VariationalDropout(DropoutRNNCell):
    """Mixin of a recurrent cell: random masks that stay the same at every time step.

    One mask of the state per gate, and of the inputs (Gal & Ghahramani 2016, arXiv:1512.05287),
    and one of the recurrent kernel (DropConnect; Wan et al. 2013, on recurrent weights Merity et
    al. 2017, arXiv:1708.02182). Unlike Keras' own mixin it draws nothing outside training, so
    that an inference graph holds no random operation and writes no seed.

    The cell has the rates `dropout`, `recurrent_dropout` and `dropconnect`, a `recurrent_kernel`
    and a `seed_generator`.
    """

    dropout: float
    recurrent_dropout: float
    dropconnect: float
    recurrent_kernel: Any
    seed_generator: keras.random.SeedGenerator
    _dropout_mask: Tensor | Gates | None = None
    _recurrent_dropout_mask: Gates | None = None
    _dropconnect_mask: Tensor | None = None

    def get_dropout_mask(self, step_input: Tensor) -> Tensor | Gates | None:
        """Mask of the inputs, shaped and typed like `step_input` (B, D); None if none applies.

        With `recurrent_dropout` one per gate, as `keras.layers.GRU` draws them.
        """
        if self._dropout_mask is None and in_training_call(self.dropout):
            draw = self._draw_gates if self.recurrent_dropout else self._draw
            self._dropout_mask = draw(tf.ones_like(step_input), self.dropout)
        return self._dropout_mask

    def get_recurrent_dropout_mask(self, step_input: Tensor) -> Gates | None:
        """Masks of the state, one per gate, each like `step_input` (B, U); None if none apply."""
        self.get_dropconnect_mask()  # keras.layers.RNN asks for masks before its loop only here
        if self._recurrent_dropout_mask is None and in_training_call(self.recurrent_dropout):
            ones = tf.ones_like(step_input)
            self._recurrent_dropout_mask = self._draw_gates(ones, self.recurrent_dropout)
        return self._recurrent_dropout_mask

    def get_dropconnect_mask(self) -> Tensor | None:
        """Mask of the recurrent kernel, (U, 3U); None if none applies."""
        if self._dropconnect_mask is None and in_training_call(self.dropconnect):
            ones = tf.ones_like(tf.convert_to_tensor(self.recurrent_kernel))
            self._dropconnect_mask = self._draw(ones, self.dropconnect)
        return self._dropconnect_mask

    def reset_recurrent_dropout_mask(self) -> None:
        """Forget the masks of the state and of the recurrent kernel."""
        super().reset_recurrent_dropout_mask()
        self._dropconnect_mask = None

    def _draw_gates(self, ones: Tensor, rate: float) -> Gates:
        """One mask per gate, drawn one by one: by the same seed those of Keras' own layer."""
        return Gates(*(self._draw(ones, rate) for _ in range(GATE_COUNT)))

    def _draw(self, ones: Tensor, rate: float) -> Tensor:
        return keras.random.dropout(ones, rate, seed=self.seed_generator)


def check_rate(name: str, rate: float) -> float:
    """Return a dropout rate, or raise ValueError unless it lies in [0, 1)."""
    if not (isinstance(rate, int | float | np.number) and 0 <= rate < 1):
        raise ValueError(f"Argument `{name}` must be a number in [0, 1). Received: {name}={rate!r}")
    return float(rate)


def in_training_call(rate: float) -> bool:
    """Whether something of this rate applies: it is above zero, in a call with training=True."""
    context = global_state.get_global_attribute("current_call_ctx")
    return rate > 0 and bool(getattr(context, "training", False))
