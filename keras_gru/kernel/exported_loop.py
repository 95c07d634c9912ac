"""The forward loop of an export: one small loop, whatever the request.

Until it is warm, a server pays for every node of a graph, so there is one loop over the steps per
layer and direction, without conditionals, and one function for all of the same sizes: of either
direction, masked at its ends or within. Steps are skipped through data, not through control flow:
time is padded to whole iterations, and a masked or padded step lets no candidate in. A loop around
it runs once or, for a large batch, once per block of rows. Numbers in parentheses
are those of DERIVATION.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
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


class _Rows(NamedTuple):
    """What belongs to the rows, in the order of processing.

    Attributes:
        h0: (B, U).
        x: Inputs, (B, T, D).
        mask: bool (B, T), or None. Where false the state is kept (5).
        taken: Share of the step that each unit takes, (B, T, U), a scalar, or None for all.
    """

    h0: Tensor
    x: Tensor
    mask: Tensor | None
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
    recurrent_kernel = wide(recurrent_kernel)
    closes = _closes(convention)
    if closes and convention.update_gate == "keep":  # so that 1 − z comes out of the activation
        kernel, projection_bias, recurrent_kernel = (
            None if v is None else _with_opposite_gate(v)
            for v in (kernel, projection_bias, recurrent_kernel)
        )

    def sequence(values: Tensor | None) -> Tensor | None:
        """(B, T, …) in the order of processing; None and scalars stay."""
        backwards = go_backwards and values is not None and values.shape.rank > 0
        return tf.reverse(values, [1]) if backwards else values

    input_gain, recurrent_gain = gains
    if recurrent_gain is None:
        kernels = JointGates(*(columns(part) for part in split_joint(recurrent_kernel)))
    else:
        kernels = normalized_columns(recurrent_kernel, convention.reset_after)
    taken = None if rows.zoneout is None else 1 - rows.zoneout
    final, outputs = run_block(
        _run,
        (
            _Rows(rows.initial_state, *map(sequence, (rows.inputs, rows.mask, taken))),
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
    return Trajectory(final, sequence(outputs), None, ())


def _run(
    rows: _Rows,
    projection: _Projection,
    weights: StepWeights,
    convention: Convention,
    keep_outputs: bool,
) -> tuple[Tensor, Tensor | None]:
    """The final state (B, U) and, if wanted, the states of all steps (B, T, U)."""
    batch = rows.h0.shape[0] or tf.shape(rows.h0)[0]
    blocks = execution.exported_blocks(batch, rows.h0.shape[-1])
    if isinstance(blocks, int) and blocks == 1:
        return _run_rows(rows, projection, weights, convention, keep_outputs)
    size = -(-batch // blocks)

    def some_rows(k: Tensor, arrays: Any) -> Any:
        ends = tf.reshape(k * size, [1]), tf.reshape((k + 1) * size, [1])

        def cut(values: Tensor | None) -> Tensor | None:
            if values is None or values.shape.rank == 0:
                return values
            part = tf.strided_slice(values, *ends, [1])
            part.set_shape([None, *values.shape[1:]])
            return part

        part = _Rows(*map(cut, rows))
        results = _run_rows(part, projection, weights, convention, keep_outputs)
        return k + 1, tuple(array.write(k, v) for array, v in zip(arrays, results, strict=False))

    # Blocks need nothing of each other, so the iterations of this loop run side by side.
    arrays = tuple(
        tf.TensorArray(rows.h0.dtype, size=blocks, infer_shape=False)
        for _ in range(1 + keep_outputs)
    )
    _, arrays = tf.while_loop(lambda k, _: k < blocks, some_rows, (tf.constant(0), arrays))
    final, *outputs = (array.concat() for array in arrays)
    final.set_shape(rows.h0.shape)
    if not keep_outputs:
        return final, None
    outputs[0].set_shape([*rows.x.shape[:2], rows.h0.shape[-1]])
    return final, outputs[0]


def _run_rows(
    rows: _Rows,
    projection: _Projection,
    weights: StepWeights,
    convention: Convention,
    keep_outputs: bool,
) -> tuple[Tensor, Tensor | None]:
    """As `_run`, for a block of rows."""
    h0, closes = rows.h0, _closes(convention)
    steps = rows.x.shape[1] or tf.shape(rows.x)[1]
    size = execution.EXPORT_UNROLL
    size = min(size, steps) if isinstance(steps, int) else size
    missing = -steps % size
    padded = not isinstance(missing, int) or missing > 0
    count = (steps + missing) // size

    def pieces(values: Tensor) -> Tensor:
        """(B, T, …) as (count, size, B, …), padded."""
        values = tf.transpose(values, [1, 0, *range(2, values.shape.rank)])
        if padded:
            values = tf.pad(values, [[0, missing], *[[0, 0]] * (values.shape.rank - 1)])
        cut = tf.reshape(values, tf.concat([[count, size], tf.shape(values)[1:]], 0))
        cut.set_shape([None, size, *values.shape[1:]])
        return cut

    x = pieces(rows.x)
    valid = None
    if rows.mask is not None:
        valid = pieces(rows.mask)
    elif padded:
        valid = tf.reshape(tf.range(steps + missing) < steps, [-1, size, 1])
    steady = rows.taken if rows.taken is not None and rows.taken.shape.rank == 0 else None
    shares = None if rows.taken is None or steady is not None else pieces(rows.taken)
    # Per row: TensorFlow would fuse a mere vector with the product, for oneDNN, which takes three
    # times as long with few rows.
    if weights.candidate_bias is not None:
        weights = weights._replace(candidate_bias=tf.zeros_like(h0) + weights.candidate_bias)
    project_piece = _projector(x, valid if closes else None, projection, h0)

    def read(i: Tensor, values: Tensor | None) -> list[Any]:
        return [None] * size if values is None else tf.unstack(tf.gather(values, i), size)

    def iteration(i: Tensor, h: Tensor, outputs: Any) -> Any:
        zr, g = (tf.unstack(v, size) for v in split_joint(project_piece(i)))
        kept_where, states = read(i, None if closes else valid), []
        for x_t, valid_t, share in zip(
            zip(zr, g, strict=True), kept_where, read(i, shares), strict=True
        ):
            h = take_step(JointGates(*x_t), h, valid_t, steady if share is None else share)
            states.append(h)
        return i + 1, h, tuple(array.write(i, tf.stack(states)) for array in outputs)

    def take_step(x: JointGates, h: Tensor, valid: Tensor | None, taken: Tensor | None) -> Tensor:
        a_zr, q = joint_products(h, weights, convention.reset_after)
        z, r = tf.split(convention.recurrent_activation(x.zr + a_zr), 2, axis=-1)  # (1), (2)
        g = candidate(x.g, r, q, h, weights, convention)  # (3a), (3b)
        let_in = z if convention.update_gate == "replace" else 1 - z
        change = (let_in if taken is None else taken * let_in) * (g - h)
        if valid is not None:
            change = tf.where(valid[:, tf.newaxis], change, tf.zeros_like(h))
        h_new = h + change  # (4b), or (4a) of 1 − z
        h_new.set_shape(h0.shape)
        return h_new

    shape = tf.TensorShape([size]).concatenate(h0.shape)
    array = tf.TensorArray(h0.dtype, size=count, element_shape=shape)
    _, final, kept = tf.while_loop(
        lambda i, *_: i < count,
        iteration,
        (tf.constant(0), h0, (array,) if keep_outputs else ()),
    )
    if not keep_outputs:
        return final, None
    states = tf.reshape(kept[0].stack(), tf.concat([[count * size], tf.shape(h0)], 0))
    states = states[:steps] if padded else states
    return final, batch_major(states)


def _projector(
    x: Tensor, valid: Tensor | None, projection: _Projection, h0: Tensor
) -> Callable[[Tensor], Tensor]:
    """Projected inputs of iteration i, (size, B, 3U), which close the gate where not valid.

    Not of all iterations at once: a large batch would go through memory again and again.

    Args:
        x: (count, size, B, D).
        valid: bool (count, size, B), or (count, size, 1) if it is the same for all rows, or None.
        projection: Its weights.
        h0: (B, U).
    """
    kernel, bias, gain = projection
    if valid is None:
        return lambda i: project(tf.gather(x, i), kernel, bias, gain=gain)
    units = h0.shape[-1]
    closing = tf.constant([-float("inf")] * units + [0.0] * 2 * units, h0.dtype)
    if valid.shape[-1] == 1 and gain is None:  # padded inputs are zero
        bias = tf.zeros_like(closing) if bias is None else wide(bias)
        biases = tf.where(valid[..., tf.newaxis], bias, closing)
        return lambda i: project(tf.gather(x, i), kernel) + tf.gather(biases, i)
    width = 3 * units
    closed = tf.zeros_like(tf.tile(h0, [x.shape[1], 3])) + closing
    valid = tf.reshape(tf.broadcast_to(valid, tf.shape(x)[:3]), [tf.shape(x)[0], -1])

    def projected(i: Tensor) -> Tensor:
        piece = tf.gather(x, i)
        flat = tf.reshape(project(piece, kernel, bias, gain=gain), [-1, width])
        # Of rows: tf.where with a condition to be broadcast takes several times as long.
        chosen = tf.raw_ops.Select(condition=tf.gather(valid, i), x=flat, y=closed)
        return tf.reshape(chosen, tf.concat([tf.shape(piece)[:2], [width]], 0))

    return projected


def _closes(convention: Convention) -> bool:
    """Whether an infinite input closes the update gate, and nothing passes a closed one."""
    return convention.recurrent_activation in _CLOSING and convention.activation in _BOUNDED


def _with_opposite_gate(packed: Tensor) -> Tensor:
    """Weights (..., 3U) that give σ⁻¹(1 − z) in place of σ⁻¹(z)."""
    units = packed.shape[-1] // 3
    return packed * tf.constant([-1.0] * units + [1.0] * 2 * units, packed.dtype)
