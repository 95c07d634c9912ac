"""One time step of a GRU, forward and backward: the equations, and nothing else.

Numbers in parentheses are those of DERIVATION.md. Shapes: `h` and every gate (B, U); `x` is the
projected input, one (B, U) per gate, with the merged bias of `weights.merge_bias` in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from keras_gru.weights import (
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
Activation = Callable[[Tensor], Tensor]

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
    """Which of the published GRUs the equations describe."""

    reset_after: bool = True
    """(3a) if true, as in Keras, cuDNN and PyTorch; (3b) if false, as in Cho et al. 2014 v3."""

    update_gate: str = "keep"
    """`"keep"`: z keeps the old state (4a); `"replace"`: z lets the candidate in (4b)."""

    activation: Activation = keras.activations.tanh
    """φ, of the candidate."""

    recurrent_activation: Activation = keras.activations.sigmoid
    """σ, of the two gates."""

    @property
    def differentiable_by_hand(self) -> bool:
        """Whether both activations have a derivative in `DERIVATIVE_FROM_OUTPUT`."""
        return (
            self.activation in DERIVATIVE_FROM_OUTPUT
            and self.recurrent_activation in DERIVATIVE_FROM_OUTPUT
        )


class Saved(NamedTuple):
    """What the backward step needs of the forward step; all (B, U).

    `q` is the recurrent part of the candidate before the reset gate (3a), or None when the reset
    gate is applied before the matmul.
    """

    z: Tensor
    r: Tensor
    g: Tensor
    q: Tensor | None


class StepGradients(NamedTuple):
    """Gradients of the loss with respect to what enters a step; all (B, U).

    `x` holds (δa_z, δa_r, δa_g). `q` is δq of (11a), or None.
    """

    h: Tensor
    x: Gates
    q: Tensor | None


def step(
    x: Gates | JointGates,
    h: Tensor,
    weights: StepWeights,
    convention: Convention,
    recurrent_mask: Gates | None = None,
) -> tuple[Tensor, Saved]:
    """Advance the state by one time step.

    Args:
        x: projected input with its bias, one (B, U) per gate; or, with fewer recurrent kernels
            than gates, the update and the reset gate side by side.
        h: previous state, (B, U).
        weights: recurrent kernels and the candidate's recurrent bias.
        convention: reset placement, update convention, activations.
        recurrent_mask: dropout masks, one (B, U) per gate, that scale `h` on its way into that
            gate's matmul (Gal & Ghahramani 2016), or None.

    Returns:
        The new state, (B, U), and what `step_backward` needs.
    """
    states = masked_states(h, recurrent_mask)
    U = weights.recurrent
    q = None
    if isinstance(x, JointGates):
        if len(U) == 1:
            product = _product(h, U[0])
            a_zr, q = split_joint(product if weights.bias is None else product + weights.bias)
        else:
            a_zr = _product(h, U[0])
            q = _product(h, U[1]) if convention.reset_after else None
        zr = convention.recurrent_activation(x.zr + a_zr)  # (1), (2)
        z, r = tf.split(zr, 2, axis=-1)
    else:
        if convention.reset_after:
            a_z, a_r, q = _products(states, U, weights.gain)
        else:
            a_z, a_r = _products(states[:2], U[:-1], weights.gain)
        z = convention.recurrent_activation(x.z + a_z)  # (1)
        r = convention.recurrent_activation(x.r + a_r)  # (2)
    if q is not None and weights.candidate_bias is not None:
        q += weights.candidate_bias
    if convention.reset_after:
        g = convention.activation(x.g + r * q)  # (3a)
    else:
        (a_g,) = _products((r * states.g,), U[-1:], weights.gain and weights.gain[2:])
        g = convention.activation(x.g + a_g)  # (3b)
    if convention.update_gate == "keep":
        h_new = z * h + (1 - z) * g  # (4a)
    else:
        h_new = (1 - z) * h + z * g  # (4b)
    return h_new, Saved(z, r, g, q)


def step_backward(
    dh_new: Tensor,
    saved: Saved,
    h: Tensor,
    weights: StepWeights,
    convention: Convention,
    recurrent_mask: Gates | None = None,
) -> StepGradients:
    """Carry the gradient back through one time step without layer normalisation.

    Args:
        dh_new: δh′, gradient with respect to the new state, (B, U) (6).
        saved: second result of `step`.
        h: previous state, (B, U).
        weights: as given to `step`, `transposed`.
        convention: as given to `step`.
        recurrent_mask: as given to `step`.

    Returns:
        Gradients with respect to the previous state, the projected input, and q.
    """
    z, r, g, q = saved
    gate_derivative = DERIVATIVE_FROM_OUTPUT[convention.recurrent_activation]
    candidate_derivative = DERIVATIVE_FROM_OUTPUT[convention.activation]
    U = weights.recurrent
    if convention.update_gate == "keep":
        dz = dh_new * (h - g)  # (7)
        dg = dh_new * (1 - z)  # (8)
        dh = dh_new * z  # (13), direct path
    else:
        dz = dh_new * (g - h)
        dg = dh_new * z
        dh = dh_new * (1 - z)
    da_z = dz * gate_derivative(z)  # (9)
    da_g = dg * candidate_derivative(g)  # (10)
    masks = recurrent_mask or (None, None, None)
    dq = None
    if convention.reset_after:
        dq = da_g * r  # (11a)
        da_r = da_g * q * gate_derivative(r)  # (12)
        dh += _products_backward((da_z, da_r, dq), U, masks)  # (13)
    else:
        drh = _products_backward((da_g,), U[-1:], (None,))  # (11b)
        da_r = drh * masked_states(h, recurrent_mask).g * gate_derivative(r)  # (12)
        dh_g = drh * r
        dh += dh_g if recurrent_mask is None else dh_g * recurrent_mask.g  # (13)
        dh += _products_backward((da_z, da_r), U[:-1], masks[:2])
    return StepGradients(dh, Gates(da_z, da_r, da_g), dq)


def masked_states(h: Tensor, recurrent_mask: Gates | None) -> Gates:
    """The state (..., U) as each gate's matmul sees it."""
    if recurrent_mask is None:
        return Gates(h, h, h)
    return Gates(*(h * mask for mask in recurrent_mask))


def step_inputs(
    inputs: Tensor,
    kernel: Tensor,
    recurrent_kernel: Tensor,
    bias: Tensor | None,
    layer_norm_gain: Tensor | None,
    reset_after: bool,
    joint: bool = False,
) -> tuple[Gates | JointGates, StepWeights]:
    """What `step` needs, from packed weights.

    Args:
        inputs: (B, D).
        kernel: (D, 3U).
        recurrent_kernel: (U, 3U).
        bias: see `weights.bias_shape`, or None.
        layer_norm_gain: (2, 3U), or None without layer normalisation.
        reset_after: reset placement.
        joint: use as few operations as can be, at the price of more copying, unless layer
            normalisation forbids it. Not with dropout masks on the state.

    Returns:
        The projected input and the weights of a step.
    """
    projected = tf.matmul(inputs, kernel)
    if joint and layer_norm_gain is None:
        return _joint_inputs(projected, recurrent_kernel, bias, reset_after)
    projection_bias, candidate_bias = merge_bias(bias, reset_after)
    recurrent_gain = None
    if layer_norm_gain is not None:
        input_gain, recurrent_gain = tf.unstack(layer_norm_gain)
        projected = normalize_gates(projected, input_gain)
    if projection_bias is not None:
        projected += projection_bias
    weights = step_weights(recurrent_kernel, candidate_bias, recurrent_gain)
    return split_gates(projected), weights


def _joint_inputs(
    projected: Tensor, recurrent_kernel: Tensor, bias: Tensor | None, reset_after: bool
) -> tuple[JointGates, StepWeights]:
    recurrent_bias = None
    if bias is not None:
        # As rows: see `projection.project`.
        rows = tf.reshape(bias, [-1, bias.shape[-1]])
        bias, recurrent_bias = tf.split(rows, 2) if reset_after else (rows, None)
        projected += bias
    kernels = joint_recurrent(recurrent_kernel, reset_after)
    return split_joint(projected), StepWeights(kernels, None, bias=recurrent_bias)


def normalize_gates(packed: Tensor, gain: Tensor) -> Tensor:
    """Layer normalisation of a packed projection (..., 3U), each gate over its own U features.

    Ba et al. 2016 (arXiv:1607.06450), equations (3) and (4) without the bias, which the
    projection gets afterwards anyway; `gain` is (3U,).
    """
    gates = [_normalize(gate) for gate in split_gates(packed)]
    return tf.concat(gates, axis=-1) * gain


def _products(
    states: Sequence[Tensor], kernels: Sequence[Tensor], gain: Sequence[Tensor] | None
) -> list[Tensor]:
    """h·U of some gates: gate by gate, or all in one product where there is only one kernel."""
    if len(kernels) == len(states):
        products = [_product(h, U) for h, U in zip(states, kernels, strict=True)]
    else:
        products = tf.split(_product(states[0], kernels[0]), len(states), axis=-1)
    if gain is None:
        return products
    return [_normalize(a) * k for a, k in zip(products, gain, strict=False)]


def _product(h: Tensor, kernel: Tensor | tuple[Tensor, ...]) -> Tensor:
    """h·U of one kernel, whole or in columns."""
    if isinstance(kernel, tuple):
        return tf.concat([tf.matmul(h, columns) for columns in kernel], -1)
    return tf.matmul(h, kernel)


def _products_backward(
    deltas: Sequence[Tensor], kernels: Sequence[Tensor], masks: Sequence[Tensor | None]
) -> Tensor:
    """Gradient with respect to the state of what `_products` computes; kernels transposed."""
    if len(kernels) < len(deltas):
        deltas = (tf.concat(deltas, axis=-1),)
    parts = [tf.matmul(d, U) for d, U in zip(deltas, kernels, strict=True)]
    return tf.add_n([d if m is None else d * m for d, m in zip(parts, masks, strict=False)])


def _normalize(a: Tensor, epsilon: float = 1e-3) -> Tensor:
    mean, variance = tf.nn.moments(a, axes=[-1], keepdims=True)
    return (a - mean) * tf.math.rsqrt(variance + epsilon)
