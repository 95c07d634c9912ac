"""The forward loop for runtimes other than TensorFlow's: ONNX Runtime, TensorFlow Lite.

Their converters read one `While` without functions or conditionals in it, in which every iteration
writes one state, the first iteration the first. So a step is an iteration, and going backwards
means to read from the end. Numbers in parentheses are those of DERIVATION.md.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from keras_gru.kernel.projection import project, wide
from keras_gru.kernel.recurrence import Mode, Rows, Trajectory, batch_major, kept_in_part
from keras_gru.kernel.step import joint_step
from keras_gru.kernel.weights import (
    StepWeights,
    joint_gain,
    joint_recurrent,
    merge_bias,
    split_joint,
)

Tensor = Any


def scan_rows(
    rows: Rows,
    kernel: Tensor,
    recurrent_kernel: Tensor,
    bias: Tensor | None,
    gains: tuple[Tensor | None, Tensor | None],
    mode: Mode,
    keep_outputs: bool,
    in_tensor: bool,
) -> Trajectory:
    """Run from the initial state over all steps.

    Args:
        rows: Of the whole batch, with inputs (B, T, D) and without a recurrent mask.
        kernel: (D, 3U).
        recurrent_kernel: (U, 3U).
        bias: See `weights.bias_shape`, or None.
        gains: `Operands.gains`.
        mode: How to run; `unroll` is not read.
        keep_outputs: Whether the states of all steps are wanted.
        in_tensor: Whether to write them into one tensor instead of an array, which TensorFlow Lite
            has only for states of a known size.
    """
    reset_after, backwards = mode.convention.reset_after, mode.go_backwards
    projection_bias, candidate_bias = merge_bias(bias, reset_after)
    input_gain, recurrent_gain = gains
    weights = StepWeights(
        joint_recurrent(wide(recurrent_kernel), reset_after),
        wide(candidate_bias),
        centered_gain=joint_gain(recurrent_gain, reset_after),
    )
    h0 = rows.initial_state
    inputs = batch_major(rows.inputs)  # its own inverse
    steps = inputs.shape[0] or tf.shape(inputs)[0]
    projected = project(inputs, kernel, projection_bias, gain=input_gain)
    valid = None if rows.mask is None else tf.expand_dims(tf.transpose(rows.mask), -1)
    by_step = rows.zoneout is not None and rows.zoneout.shape.rank > 0
    shares = batch_major(rows.zoneout) if by_step else None

    def take_step(i: Tensor, h: Tensor, outputs: Any) -> Any:
        t = steps - 1 - i if backwards else i
        h_new, _ = joint_step(split_joint(tf.gather(projected, t)), h, weights, mode.convention)
        share = rows.zoneout if shares is None else tf.gather(shares, t)
        h = kept_in_part(h, h_new, None if valid is None else tf.gather(valid, t), share)
        h.set_shape(h0.shape)
        return i + 1, h, tuple(write(output, i, h) for output in outputs)

    def write(output: Any, i: Tensor, h: Tensor) -> Any:
        if not in_tensor:
            return output.write(i, h)
        return tf.tensor_scatter_nd_update(output, [[i]], h[tf.newaxis])

    if in_tensor:
        outputs = tf.zeros(tf.concat([[steps], tf.shape(h0)], 0), h0.dtype)
        outputs.set_shape([None, *h0.shape])
    else:
        outputs = tf.TensorArray(h0.dtype, size=steps, element_shape=h0.shape)
    _, final, kept = tf.while_loop(
        lambda i, *_: i < steps,
        take_step,
        (tf.constant(0), h0, (outputs,) if keep_outputs else ()),
    )
    if not keep_outputs:
        return Trajectory(final, None, None, ())
    states = kept[0] if in_tensor else kept[0].stack()
    states = batch_major(tf.reverse(states, [0]) if backwards else states)
    return Trajectory(final, states, None, ())
