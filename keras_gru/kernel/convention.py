"""Which of the published GRUs: placement of the reset gate, meaning of the update gate, σ and φ.

Numbers in parentheses are those of DERIVATION.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

Tensor = Any
Activation = Callable[[Tensor], Tensor]

UPDATE_GATES = ("keep", "replace")

# σ′ and φ′ of (9), (10) and (12) in terms of the activation's output, which the forward pass keeps.
DERIVATIVE_FROM_OUTPUT: dict[Activation, Activation] = {
    keras.activations.sigmoid: lambda y: y * (1 - y),
    keras.activations.hard_sigmoid: lambda y: tf.cast((y > 0) & (y < 1), y.dtype) / 6,
    keras.activations.tanh: lambda y: 1 - tf.square(y),
    keras.activations.relu: lambda y: tf.cast(y > 0, y.dtype),
    keras.activations.linear: tf.ones_like,
}


@dataclass(frozen=True)
class Convention:
    """Which of the published GRUs the equations describe.

    >>> Convention(reset_after=False, update_gate="replace").activation is keras.activations.tanh
    True

    Raises:
        ValueError: `update_gate` or the name of an activation is unknown.
    """

    reset_after: bool = True
    """(3a) if true, as in Keras, cuDNN and PyTorch; (3b) if false, as in Cho et al. 2014 v3."""

    update_gate: str = "keep"
    """`"keep"`: z keeps the old state (4a); `"replace"`: z lets the candidate in (4b)."""

    activation: Any = keras.activations.tanh
    """φ, of the candidate: a function, its Keras name, or None for the identity."""

    recurrent_activation: Any = keras.activations.sigmoid
    """σ, of the two gates: likewise."""

    def __post_init__(self) -> None:
        if self.update_gate not in UPDATE_GATES:
            raise ValueError(
                f"Argument `update_gate` must be one of {UPDATE_GATES}. "
                f"Received: update_gate={self.update_gate!r}"
            )
        for name in ("activation", "recurrent_activation"):
            object.__setattr__(self, name, keras.activations.get(getattr(self, name)))

    @property
    def differentiable_by_hand(self) -> bool:
        """Whether both activations have a derivative in `DERIVATIVE_FROM_OUTPUT`."""
        return (
            self.activation in DERIVATIVE_FROM_OUTPUT
            and self.recurrent_activation in DERIVATIVE_FROM_OUTPUT
        )
