"""The backward pass: the loop over each block of rows, then the large matrix products.

Numbers in parentheses are those of DERIVATION.md.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from keras_gru.kernel.backward_loop import Deltas, backward
from keras_gru.kernel.blocks import Extent
from keras_gru.kernel.forward_pass import (
    Constants,
    Operands,
    cut_rows,
    run_forward,
    runner,
    shared_by_rows,
)
from keras_gru.kernel.products import masked_states
from keras_gru.kernel.projection import project, wide
from keras_gru.kernel.recurrence import Trajectory, states_of, without_masked
from keras_gru.kernel.weights import Gates, split_gates, unmerge_bias

Tensor = Any


def gradients(
    operands: Operands,
    constants: Constants,
    extent: Extent,
    runs: list[Trajectory] | None,
    keep_outputs: bool,
    upstream: tuple[Tensor, ...],
) -> list[Tensor]:
    """Gradients in the order of the operands that are there."""
    blocks = _deltas(operands, constants, extent, runs, keep_outputs, upstream)
    narrow = operands.inputs.dtype
    kernels = [tf.transpose(kernel) for kernel in split_gates(operands.kernel)]
    d_kernel, d_recurrent, d_projected, d_candidate, d_inputs, d_initial = [], [], [], [], [], []
    d_gain = []
    whole = without_masked(operands.inputs, constants.mask)
    inputs = [tf.transpose(x, [1, 0, 2]) for x in extent.cut(whole)]
    masks = extent.cut(constants.input_mask)
    for x, input_mask, (deltas, multiplied) in zip(inputs, masks, blocks, strict=True):
        if deltas.reset_states is not None:
            multiplied = multiplied._replace(g=deltas.reset_states)
        into_inputs = deltas.x
        into_states = deltas.x if deltas.q is None else deltas.x._replace(g=deltas.q)
        if deltas.normalized is not None:
            into_inputs, into_states, *gains = deltas.normalized
            d_gain.append(tf.stack(gains))
        narrow_x = [tf.cast(delta, narrow) for delta in into_inputs]
        seen = masked_states(x, input_mask)
        pairs = zip(seen, narrow_x, strict=True)
        d_kernel.append(tf.concat([_outer_sum(*pair) for pair in pairs], -1))
        d_recurrent.append(  # (15)
            tf.concat(
                [
                    _outer_sum(tf.cast(h, narrow), tf.cast(delta, narrow))
                    for h, delta in zip(multiplied, into_states, strict=True)
                ],
                -1,
            )
        )
        d_projected.append(tf.concat([_row_sum(delta) for delta in deltas.x], -1))
        if deltas.q is not None:
            d_candidate.append(_row_sum(deltas.q))
        d_x = [project(d, kernel) for d, kernel in zip(narrow_x, kernels, strict=True)]
        if input_mask is not None:
            d_x = [d * wide(mask) for d, mask in zip(d_x, input_mask, strict=True)]
        d_inputs.append(tf.transpose(tf.add_n(d_x), [1, 0, 2]))
        d_initial.append(deltas.initial_state)
    gradients = [
        tf.cast(extent.join(d_inputs, timed=True), narrow),
        tf.cast(extent.join(d_initial), operands.initial_state.dtype),
        tf.cast(tf.add_n(d_kernel), operands.kernel.dtype),
        tf.cast(tf.add_n(d_recurrent), operands.recurrent_kernel.dtype),
    ]
    if operands.bias is not None:
        d_bias = unmerge_bias(tf.add_n(d_projected), tf.add_n(d_candidate) if d_candidate else None)
        gradients.append(tf.cast(d_bias, operands.bias.dtype))
    if operands.layer_norm_gain is not None:
        gradients.append(tf.cast(tf.add_n(d_gain), operands.layer_norm_gain.dtype))
    return gradients


def _deltas(
    operands: Operands,
    constants: Constants,
    extent: Extent,
    runs: list[Trajectory] | None,
    keep_outputs: bool,
    upstream: tuple[Tensor, ...],
) -> list[tuple[Deltas, Gates]]:
    """Per block of rows, what `backward` gives and the states that each gate's matmul saw.

    Differentiable in turn, through the same loops in plain operations.
    """
    present = [v for v in operands if v is not None]
    like = operands

    def compute(
        values: tuple[Tensor, ...], constants: Constants, runs: list[Trajectory] | None
    ) -> list[Any]:
        operands = like.filled(values)
        upstream = values[len(present) :]
        runs = runs or run_forward(operands, constants, extent, False, True)
        shared = shared_by_rows(operands, constants, extent)
        if shared.input_gain is None:
            shared = shared._replace(kernel=None, projection_bias=None)
        d_outputs = extent.cut(wide(upstream[0]) if keep_outputs else None, timed=True)
        d_final = extent.cut(wide(upstream[-1]))
        run = runner(constants.plan)
        results = []
        for rows, kept, d_out, d_last, steps in zip(
            cut_rows(operands, constants, extent),
            runs,
            d_outputs,
            d_final,
            extent.steps_by_block(),
            strict=True,
        ):
            shared = shared._replace(steps=steps)
            rows = rows._replace(inputs=None)
            before = states_of(kept.states, constants.mode.before)
            kept = kept._replace(final=None, outputs=None, states=None)
            tensors = (rows, shared, kept, before, d_out, d_last)
            deltas = run(backward, tensors, constants.loop_mode)
            deltas = deltas.of_each_step(extent.without_padded_steps)
            seen = masked_states(extent.without_padded_steps(before), rows.recurrent_mask)
            results.append((deltas, seen))
        return results

    structure: list[Any] = []

    @tf.custom_gradient
    def flat(*values: Tensor) -> Any:
        still = tuple(tf.stop_gradient(v) for v in values)
        results = compute(still, constants, runs)
        structure[:] = results

        def second(*upstream: Tensor) -> list[Tensor]:
            inline = constants._replace(plan=constants.plan.inline())
            with tf.GradientTape() as tape:
                tape.watch(values)
                again = tf.nest.flatten(compute(values, inline, None))
                again = [v for v in again if v is not None]
            seconds: list[Tensor] = tape.gradient(
                again, values, upstream, unconnected_gradients=tf.UnconnectedGradients.ZERO
            )
            return seconds

        return [v for v in tf.nest.flatten(results) if v is not None], second

    leaves = iter(flat(*present, *upstream))
    filled = [None if v is None else next(leaves) for v in tf.nest.flatten(structure)]
    result: list[Any] = tf.nest.pack_sequence_as(structure, filled)
    return result


def _outer_sum(a: Tensor, b: Tensor) -> Tensor:
    """Σ over time and batch of aᵀb: (T, B, U), (T, B, V) → (U, V), wide."""
    rows_a, rows_b = (tf.reshape(v, [-1, v.shape[-1]]) for v in (a, b))
    return wide(tf.matmul(rows_a, rows_b, transpose_a=True))


def _row_sum(values: Tensor) -> Tensor:
    """Σ over time and batch, as a matrix product: tf.reduce_sum is half as fast."""
    rows = tf.reshape(values, [-1, values.shape[-1]])
    return tf.linalg.matvec(rows, tf.ones_like(rows[:, 0]), transpose_a=True)
