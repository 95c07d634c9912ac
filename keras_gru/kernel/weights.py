"""Layout of a GRU's weights: the only place that knows gate order, shapes and bias rows.

A packed tensor holds the three gates side by side on its last axis, in Keras' order
`z | r | g` (update gate, reset gate, candidate):

====================  ==========================================================
`kernel`              (D, 3U)
`recurrent_kernel`    (U, 3U)
`bias`                (2, 3U) with `reset_after` (row 0 input, row 1 recurrent), else (3U,)
`layer_norm_gain`     (2, 3U), row 0 of the input projection, row 1 of the recurrent one
====================  ==========================================================

The operands of a step's products and sums are cut into pieces: one for all gates (z | r | g), two
(z | r and g), or three, one per gate. Fewer pieces mean fewer matrix products and operations; three
allow values that differ between gates, such as dropout masks of the state.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import tensorflow as tf

Tensor = Any  # a tf.Tensor; TensorFlow ships no complete types
Pieces = tuple[Any, ...]

GATE_COUNT = 3
# Number of gates in each piece, by the number of pieces.
GATES_OF_PIECES = {1: (3,), 2: (2, 1), 3: (1, 1, 1)}

# In these dtypes, the matrix products outside of the loop use that precision, and the recurrence
# uses float32.
NARROW_DTYPES = (tf.bfloat16, tf.float16)

# Number of weights above which TensorFlow wakes other threads for a product, which takes several
# times as long as one thread does for few rows.
LARGE_PRODUCT = 250_000


class Gates(NamedTuple):
    """One value per gate: update gate, reset gate, candidate."""

    z: Any
    r: Any
    g: Any


class PackedWeights(NamedTuple):
    """All weights of a GRU, packed as above; the last two may be None.

    With `layer_norm_gain`, what the kernel's steps take are kernels that are `equations.centered`.
    """

    kernel: Tensor
    recurrent_kernel: Tensor
    bias: Tensor | None
    layer_norm_gain: Tensor | None


class Projection(NamedTuple):
    """Weights of the input projection."""

    kernel: Tensor
    """Packed input kernel, (D, 3U)."""
    bias: Tensor | None
    """Bias (3U,), with those recurrent biases in it that the reset gate does not scale, or None."""
    gain: Tensor | None
    """Gain γ of (38), (3U,), wide, with layer normalisation; else None."""


class StepWeights(NamedTuple):
    """Weights that one step needs beside its projected input; wide."""

    recurrent: Pieces
    """Recurrent kernels in one, two or three pieces (U, ·); with the reset gate before the matmul
    at least two. Each piece may be a tuple of its columns, see `columns`."""
    candidate_bias: Tensor | None
    """b′_g of equation (3a), (U,), or (B, U), one per row, or None."""
    gain: Pieces | None
    """Gain γ′ of (38) in the pieces of `recurrent`, whose kernels are `equations.centered`, with
    layer normalisation; else None."""


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


def in_pieces(given: Tensor | Pieces, count: int) -> Pieces:
    """Cut a packed tensor (..., 3U), or fewer pieces, into one, two or three pieces.

    None, in the place of the last piece, stays None.
    """
    pieces = given if isinstance(given, tuple) else (given,)
    if len(pieces) == count:
        return pieces
    if len(pieces) == 2:
        return (*tf.split(pieces[0], 2, -1), pieces[1])
    if count == GATE_COUNT:
        return tuple(tf.split(pieces[0], GATE_COUNT, -1))
    units = pieces[0].shape[-1] // GATE_COUNT
    return tuple(tf.split(pieces[0], [2 * units, units], -1))


def split_gates(packed: Tensor) -> Gates:
    """Cut a packed tensor (..., 3U) into its three gates (..., U)."""
    return Gates(*tf.split(packed, GATE_COUNT, axis=-1))


def split_weights(
    packed: PackedWeights, reset_after: bool, pieces: int | None = None
) -> tuple[Projection, StepWeights]:
    """Split packed weights into those before the loop and those of each step.

    The recurrent biases that commute with the input projection are folded into its bias, where they
    cost nothing per step. With `reset_after`, the candidate's own must stay inside the step: the
    reset gate scales it (3a). The recurrent kernel is cut into one, two or three pieces; by default
    as few as a step can do with.
    """
    kernel, recurrent_kernel, bias, gain = packed
    candidate_bias = input_gain = recurrent_gain = None
    if bias is not None and reset_after:
        input_bias, recurrent_bias = tf.unstack(bias)
        z, r, candidate_bias = split_gates(recurrent_bias)
        bias = input_bias + tf.concat([z, r, tf.zeros_like(candidate_bias)], axis=-1)
    if gain is not None:
        input_gain, recurrent_gain = tf.unstack(wide(gain))
    pieces = pieces or (1 if reset_after else 2)
    return Projection(kernel, bias, input_gain), StepWeights(
        in_pieces(wide(recurrent_kernel), pieces),
        wide(candidate_bias),
        None if recurrent_gain is None else in_pieces(recurrent_gain, pieces),
    )


def with_opposite_gate(packed: Tensor | None) -> Tensor | None:
    """Change weights (..., 3U) to give σ⁻¹(1 − z) in place of σ⁻¹(z): (4a) then is (4b).

    None stays None.
    """
    if packed is None:
        return None
    units = packed.shape[-1] // GATE_COUNT
    return packed * tf.constant([-1.0] * units + [1.0] * 2 * units, packed.dtype)


def columns(kernel: Tensor) -> Tensor | Pieces:
    """Cut a kernel into 2, 4, 8 … parts of its columns, as few as leave no product large.

    Three parts of 1,024 columns take longer than four: their widths are odd.
    """
    rows, width = kernel.shape
    count = 1 << (-(-rows * width // LARGE_PRODUCT) - 1).bit_length()
    if count == 1:
        return kernel
    ends = [width * part // count for part in range(count + 1)]
    return tuple(tf.split(kernel, [end - begin for begin, end in itertools.pairwise(ends)], -1))


def wide(values: Tensor) -> Tensor:
    """Cast values of one of `NARROW_DTYPES` to the recurrence's precision; None stays None."""
    narrow = values is not None and values.dtype in NARROW_DTYPES
    return tf.cast(values, tf.float32) if narrow else values
