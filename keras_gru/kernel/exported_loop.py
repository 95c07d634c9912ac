"""The forward loop of an export: one small loop, whatever the request.

Until it is warm, a server pays for every node of a graph, so there is one loop per layer and
direction, without conditionals, and one function for all of the same sizes: of either direction,
masked at its ends or within. Steps are skipped through data, not through control flow: time is
padded to whole iterations, and a masked or padded step lets no candidate in. Numbers in parentheses
are those of DERIVATION.md.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from keras_gru.kernel import execution
from keras_gru.kernel.blocks import run_block
from keras_gru.kernel.convention import Convention
from keras_gru.kernel.plain_loop import columns, normalized_columns
from keras_gru.kernel.products import joint_products
from keras_gru.kernel.projection import project, wide
from keras_gru.kernel.recurrence import Rows, Trajectory, batch_major
from keras_gru.kernel.step import candidate
from keras_gru.kernel.weights import (
    JointGates,
    StepWeights,
    joint_gain,
    merge_bias,
    split_joint,
)

Tensor = Any

# σ(−∞) = 0, and 1 − σ(a) = σ(−a).
_CLOSING = (keras.activations.sigmoid, keras.activations.hard_sigmoid)
# |φ| is finite, so that nothing of it passes a closed gate.
_BOUNDED = (*_CLOSING, keras.activations.tanh)


class _Pieces(NamedTuple):
    """What the iterations read, each of them `size` steps in the order of processing.

    Attributes:
        x: Inputs, (n, size, B, D).
        valid: bool, (n, size, B or 1, 1), or None. Where false the state is kept (5).
        taken: Share of the step that each unit takes, (n, size, B, U), a scalar, or None for all.
    """

    x: Tensor
    valid: Tensor | None
    taken: Tensor | None


class _Projection(NamedTuple):
    """Weights of the input projection: (D, 3U), and (3U,) or None each."""

    kernel: Tensor
    bias: Tensor | None
    gain: Tensor | None


def infer_exported(
    rows: Rows,
    kernel: Tensor,
    recurrent_kernel: Tensor,
    bias: Tensor | None,
    gains: tuple[Tensor | None, Tensor | None],
    convention: Convention,
    go_backwards: bool,
    keep_outputs: bool,
) -> Trajectory:
    """Run from the initial state over all steps.

    Args:
        rows: Of the whole batch, with inputs (B, T, D) and without a recurrent mask.
        kernel: (D, 3U).
        recurrent_kernel: (U, 3U).
        bias: See `weights.bias_shape`, or None.
        gains: `Operands.gains`.
        convention: Which GRU.
        go_backwards: Run from the last step to the first.
        keep_outputs: Whether the states of all steps are wanted.

    Raises:
        ValueError: There is a recurrent mask, for which this loop has no products.
    """
    if rows.recurrent_mask is not None:
        raise ValueError("`rows.recurrent_mask` of an exported loop must be None, got a mask")
    projection_bias, candidate_bias = merge_bias(bias, convention.reset_after)
    recurrent_kernel, h0 = wide(recurrent_kernel), rows.initial_state
    closes = _closes(convention)
    if closes and convention.update_gate == "keep":  # so that 1 − z comes out of the activation
        kernel, projection_bias, recurrent_kernel = (
            None if v is None else _with_opposite_gate(v)
            for v in (kernel, projection_bias, recurrent_kernel)
        )

    def sequence(values: Tensor) -> Tensor:
        """(B, T, …) as (T, B, …), in the order of processing, padded."""
        values = tf.transpose(values, [1, 0, *range(2, values.shape.rank)])
        values = tf.reverse(values, [0]) if go_backwards else values
        paddings = [[0, missing], *[[0, 0]] * (values.shape.rank - 1)]
        return tf.pad(values, paddings) if padded else values

    steps = rows.inputs.shape[1] or tf.shape(rows.inputs)[1]
    size = (
        min(execution.EXPORT_UNROLL, steps) if isinstance(steps, int) else execution.EXPORT_UNROLL
    )
    missing = -steps % size
    padded = not isinstance(missing, int) or missing > 0
    count = (steps + missing) // size
    valid = None
    if rows.mask is not None:
        valid = sequence(rows.mask)[..., tf.newaxis]
    elif padded:
        valid = tf.reshape(tf.range(steps + missing) < steps, [-1, 1, 1])

    def pieces(values: Tensor) -> Tensor:
        cut = tf.reshape(values, tf.concat([[count, size], tf.shape(values)[1:]], 0))
        cut.set_shape([None, size, *values.shape[1:]])
        return cut

    taken = None if rows.zoneout is None else 1 - rows.zoneout
    if taken is not None and taken.shape.rank:
        taken = pieces(sequence(taken))
    input_gain, recurrent_gain = gains
    if recurrent_gain is None:
        kernels = JointGates(*(columns(part) for part in split_joint(recurrent_kernel)))
    else:
        kernels = normalized_columns(recurrent_kernel, convention.reset_after)
    final, states = run_block(
        _run,
        (
            h0,
            _Pieces(pieces(sequence(rows.inputs)), None if valid is None else pieces(valid), taken),
            _Projection(kernel, projection_bias, input_gain),
            StepWeights(
                kernels,
                wide(candidate_bias),
                centered_gain=joint_gain(recurrent_gain, convention.reset_after),
            ),
        ),
        dataclasses.replace(convention, update_gate="replace") if closes else convention,
        keep_outputs,
        jit_compile=False,
    )
    if not keep_outputs:
        return Trajectory(final, None, None, ())
    states = tf.reshape(states, tf.concat([[count * size], tf.shape(h0)], 0))[:steps]
    states.set_shape([rows.inputs.shape[1], *h0.shape])
    return Trajectory(
        final, batch_major(tf.reverse(states, [0]) if go_backwards else states), None, ()
    )


def _run(
    h0: Tensor,
    pieces: _Pieces,
    projection: _Projection,
    weights: StepWeights,
    convention: Convention,
    keep_outputs: bool,
) -> tuple[Tensor, Tensor | None]:
    """The final state (B, U) and, if wanted, the states of all steps, (n, size, B, U)."""
    count, size = tf.shape(pieces.x)[0], pieces.x.shape[1]
    # Per row: TensorFlow would fuse a mere vector with the product, for oneDNN, which takes three
    # times as long with few rows.
    if weights.candidate_bias is not None:
        weights = weights._replace(candidate_bias=tf.zeros_like(h0) + weights.candidate_bias)
    steady = pieces.taken if pieces.taken is not None and not pieces.taken.shape.rank else None

    units, closes = h0.shape[-1], _closes(convention)
    closing = tf.constant([-float("inf")] * units + [0.0] * 2 * units, h0.dtype)

    def read(i: Tensor, values: Tensor | None) -> list[Any]:
        return [None] * size if values is None else tf.unstack(tf.gather(values, i), size)

    def projected(i: Tensor) -> Tensor:
        # Not of all steps at once: a large batch would go through memory again and again.
        x = project(
            tf.gather(pieces.x, i), projection.kernel, projection.bias, gain=projection.gain
        )
        if pieces.valid is None or not closes:
            return x
        return tf.where(tf.gather(pieces.valid, i), x, closing)

    def iteration(i: Tensor, h: Tensor, outputs: Any) -> Any:
        zr, g = (tf.unstack(v, size) for v in split_joint(projected(i)))
        shares = read(i, None if steady is not None else pieces.taken)
        states = []
        for x, valid, share in zip(
            zip(zr, g, strict=True), read(i, None if closes else pieces.valid), shares, strict=True
        ):
            h = take_step(JointGates(*x), h, valid, steady if share is None else share)
            states.append(h)
        return i + 1, h, tuple(array.write(i, tf.stack(states)) for array in outputs)

    def take_step(x: JointGates, h: Tensor, valid: Tensor | None, taken: Tensor | None) -> Tensor:
        a_zr, q = joint_products(h, weights, convention.reset_after)
        z, r = tf.split(convention.recurrent_activation(x.zr + a_zr), 2, axis=-1)  # (1), (2)
        g = candidate(x.g, r, q, h, weights, convention)  # (3a), (3b)
        let_in = z if convention.update_gate == "replace" else 1 - z
        change = (let_in if taken is None else taken * let_in) * (g - h)
        # (4b), or (4a) of 1 − z
        h_new = h + (change if valid is None else tf.where(valid, change, tf.zeros_like(h)))
        h_new.set_shape(h0.shape)
        return h_new

    shape = tf.TensorShape([size]).concatenate(h0.shape)
    array = tf.TensorArray(h0.dtype, size=count, element_shape=shape)
    _, final, kept = tf.while_loop(
        lambda i, *_: i < count,
        iteration,
        (tf.constant(0), h0, (array,) if keep_outputs else ()),
    )
    return final, kept[0].stack() if keep_outputs else None


def _closes(convention: Convention) -> bool:
    """Whether an infinite input closes the update gate, and nothing passes a closed one."""
    return convention.recurrent_activation in _CLOSING and convention.activation in _BOUNDED


def _with_opposite_gate(packed: Tensor) -> Tensor:
    """Weights (..., 3U) that give σ⁻¹(1 − z) in place of σ⁻¹(z)."""
    units = packed.shape[-1] // 3
    return packed * tf.constant([-1.0] * units + [1.0] * 2 * units, packed.dtype)
