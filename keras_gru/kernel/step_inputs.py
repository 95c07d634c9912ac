"""What one step needs, from packed weights: for cells, and where the states are known."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from keras_gru.kernel.normalization import normalize
from keras_gru.kernel.products import product
from keras_gru.kernel.weights import (
    Gates,
    JointGates,
    StepWeights,
    joint_recurrent,
    merge_bias,
    split_gates,
    split_joint,
    step_weights,
)

Tensor = Any


def step_inputs(
    inputs: Tensor | Gates,
    kernel: Tensor,
    recurrent_kernel: Tensor,
    bias: Tensor | None,
    layer_norm_gain: Tensor | None,
    reset_after: bool,
    separate: bool = True,
) -> tuple[Gates, StepWeights]:
    """What `step.step` needs.

    Args:
        inputs: (..., D); or one per gate.
        kernel: (D, 3U).
        recurrent_kernel: (U, 3U).
        bias: See `weights.bias_shape`, or None.
        layer_norm_gain: (2, 3U), or None without layer normalisation.
        reset_after: Reset placement.
        separate: One recurrent kernel per gate, as layer normalisation and dropout masks on the
            state need it; else as few as can be.

    Returns:
        The projected input and the weights of a step.
    """
    if isinstance(inputs, Gates):
        pairs = zip(inputs, split_gates(kernel), strict=True)
        projected = tf.concat([product(*pair) for pair in pairs], axis=-1)
    else:
        projected = product(inputs, kernel)
    projection_bias, candidate_bias = merge_bias(bias, reset_after)
    recurrent_gain = None
    if layer_norm_gain is not None:
        input_gain, recurrent_gain = tf.unstack(layer_norm_gain)
        projected = _normalize_gates(projected, input_gain)
    if projection_bias is not None:
        projected += projection_bias
    if separate:
        weights = step_weights(recurrent_kernel, candidate_bias, recurrent_gain)
    else:
        weights = StepWeights(joint_recurrent(recurrent_kernel, reset_after), candidate_bias)
    return split_gates(projected), weights


def joint_step_inputs(
    inputs: Tensor,
    kernel: Tensor,
    recurrent_kernel: Tensor,
    bias: Tensor | None,
    reset_after: bool,
) -> tuple[JointGates, StepWeights]:
    """What `step.joint_step` needs: as few operations as can be, at the price of more copying.

    Arguments as of `step_inputs`.
    """
    projected = product(inputs, kernel)
    recurrent_bias = None
    if bias is not None:
        # As rows: see `projection.project`.
        rows = tf.reshape(bias, [-1, bias.shape[-1]])
        bias, recurrent_bias = tf.split(rows, 2) if reset_after else (rows, None)
        projected += bias
    kernels = joint_recurrent(recurrent_kernel, reset_after)
    return split_joint(projected), StepWeights(kernels, None, bias=recurrent_bias)


def _normalize_gates(packed: Tensor, gain: Tensor) -> Tensor:
    """Layer normalisation of a packed projection (..., 3U), each gate over its own U features.

    Without the bias, which the projection gets afterwards anyway; `gain` is (3U,).
    """
    gates = [normalize(gate) for gate in split_gates(packed)]
    return tf.concat(gates, axis=-1) * gain
