"""Layout of a GRU's weights: the only place that knows gate order, shapes and bias rows.

A packed tensor holds the three gates side by side on its last axis, in Keras' order
`z | r | g` (update gate, reset gate, candidate):

====================  ==========================================================
`kernel`              (D, 3U)
`recurrent_kernel`    (U, 3U)
`bias`                (2, 3U) with `reset_after` (row 0 input, row 1 recurrent), else (3U,)
`layer_norm_gain`     (2, 3U), row 0 of the input projection, row 1 of the recurrent one
====================  ==========================================================
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

Tensor = Any  # a tf.Tensor; TensorFlow ships no complete types

GATE_COUNT = 3


class Gates(NamedTuple):
    """One value per gate: update gate, reset gate, candidate."""

    z: Any
    r: Any
    g: Any


class JointGates(NamedTuple):
    """As `Gates`, with the update and the reset gate side by side: (…, 2U) and (…, U)."""

    zr: Any
    g: Any


class StepWeights(NamedTuple):
    """What one time step needs beside its projected input.

    Attributes:
        recurrent: Recurrent kernels. `Gates`, one (U, U) each; or, for fewer matrix products,
            `JointGates`, (U, 2U) and (U, U), of which a forward step also takes each as a tuple of
            some columns; or packed, (U, 3U), with the reset gate after the matmul.
        candidate_bias: b′_g of equation (3a), (U,), or (B, U), one per row, or None. The other
            recurrent biases are added to the projected input, where they cost nothing per step.
        gain: With layer normalisation, the recurrent gains, one (U,) per gate, else None.
        centered_gain: The same of kernels that are `normalization.centered`, laid out as
            `recurrent` is; or None.
        bias: With a packed kernel, all recurrent biases as they are, (1, 3U), instead of
            `candidate_bias` and a merged bias of the projected input; or None.
    """

    recurrent: Gates | JointGates | Tensor
    candidate_bias: Tensor | None
    gain: Gates | None = None
    bias: Tensor | None = None
    centered_gain: Gates | JointGates | Tensor | None = None

    def transposed(self) -> StepWeights:
        """The same with each recurrent kernel transposed, as the backward step multiplies them."""
        return self._replace(recurrent=tf.nest.map_structure(tf.transpose, self.recurrent))


def positive_integer(name: str, value: Any) -> int:
    """The value as an int; ValueError naming the argument unless it is a positive whole number."""
    number = not isinstance(value, bool) and isinstance(
        value, int | float | np.integer | np.floating
    )
    if not (number and math.isfinite(value) and value > 0 and value == int(value)):
        raise ValueError(
            f"Argument `{name}` must be a positive integer. Received: {name}={value!r}"
        )
    return int(value)


def feature_count(name: str, input_shape: tuple[int | None, ...]) -> int:
    """Size D of the inputs' last axis; ValueError naming the layer where it is unknown."""
    features = input_shape[-1]
    if features is None:
        raise ValueError(
            f"The last axis of the inputs of {name!r} must be known. "
            f"Received: input_shape={tuple(input_shape)}"
        )
    return features


def kernel_shape(features: int, units: int) -> tuple[int, int]:
    """Shape of the packed input kernel."""
    return features, GATE_COUNT * units


def recurrent_kernel_shape(units: int) -> tuple[int, int]:
    """Shape of the packed recurrent kernel."""
    return units, GATE_COUNT * units


def bias_shape(units: int, reset_after: bool) -> tuple[int, ...]:
    """Shape of the packed bias; with `reset_after` it has a row for each matmul."""
    return (2, GATE_COUNT * units) if reset_after else (GATE_COUNT * units,)


def layer_norm_gain_shape(units: int) -> tuple[int, int]:
    """Shape of the packed gains of layer normalisation."""
    return 2, GATE_COUNT * units


def split_gates(packed: Tensor) -> Gates:
    """Cut a packed tensor (..., 3U) into its three gates (..., U)."""
    return Gates(*tf.split(packed, GATE_COUNT, axis=-1))


def split_joint(packed: Tensor) -> JointGates:
    """Cut a packed tensor (..., 3U) in two: the update and the reset gate, and the candidate."""
    units = packed.shape[-1] // GATE_COUNT
    return JointGates(*tf.split(packed, [2 * units, units], axis=-1))


def merge_bias(bias: Tensor | None, reset_after: bool) -> tuple[Tensor | None, Tensor | None]:
    """Fold the recurrent biases that commute with the input projection into it.

    Args:
        bias: Packed bias, (2, 3U) if `reset_after` else (3U,), or None.
        reset_after: Reset placement.

    Returns:
        The bias (3U,) of the input projection and the candidate's own recurrent bias (U,), which
        must stay inside the step because the reset gate scales it (3a). Either may be None.
    """
    if bias is None or not reset_after:
        return bias, None
    input_bias, recurrent_bias = tf.unstack(bias)
    z, r, g = split_gates(recurrent_bias)
    return input_bias + tf.concat([z, r, tf.zeros_like(g)], axis=-1), g


def unmerge_bias(d_projected: Tensor, d_candidate: Tensor | None) -> Tensor:
    """Gradient of the packed bias from those of the two that `merge_bias` gives.

    Args:
        d_projected: Gradient of the input projection's bias, (3U,).
        d_candidate: Gradient of the candidate's own bias, (U,), with `reset_after`, else None.

    Returns:
        (2, 3U) with `reset_after`, else (3U,).
    """
    if d_candidate is None:
        return d_projected
    z, r, _ = split_gates(d_projected)
    return tf.stack([d_projected, tf.concat([z, r, d_candidate], axis=-1)])


def step_weights(
    recurrent_kernel: Tensor, candidate_bias: Tensor | None, gain: Tensor | None = None
) -> StepWeights:
    """Split a packed recurrent kernel (U, 3U), and gain (3U,), by gate for use in a step."""
    gains = None if gain is None else split_gates(gain)
    return StepWeights(split_gates(recurrent_kernel), candidate_bias, gains)


def joint_recurrent(recurrent_kernel: Tensor, reset_after: bool) -> JointGates | Tensor:
    """The packed recurrent kernel (U, 3U) cut into as few products as a step can do with."""
    return recurrent_kernel if reset_after else split_joint(recurrent_kernel)


def joint_gain(gain: Tensor | None, reset_after: bool) -> JointGates | Tensor | None:
    """The packed recurrent gain (3U,) cut as `joint_recurrent` cuts the kernel."""
    return None if gain is None else joint_recurrent(gain, reset_after)


def by_gate(gain: Gates | JointGates | Tensor) -> Gates:
    """Gains in any layout of `StepWeights`, one (U,) per gate."""
    if isinstance(gain, Gates):
        return gain
    if isinstance(gain, JointGates):
        z, r = tf.split(gain.zr, 2)
        return Gates(z, r, gain.g)
    return split_gates(gain)
