"""One time step of a GRU, forward and backward: the equations, and nothing else.

Numbers in parentheses are those of DERIVATION.md. Shapes: `h` and every gate (B, U); `x` is the
projected input, with the merged bias of `weights.merge_bias` in it. Forward, any leading axes that
broadcast will do in place of B. The products h·U are in `products`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from keras_gru.kernel.convention import DERIVATIVE_FROM_OUTPUT, Convention
from keras_gru.kernel.products import (
    candidate_product,
    candidate_product_backward,
    gate_products,
    gate_products_backward,
    joint_products,
    masked_states,
)
from keras_gru.kernel.weights import Gates, JointGates, StepWeights

Tensor = Any


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
    x: Gates,
    h: Tensor,
    weights: StepWeights,
    convention: Convention,
    recurrent_mask: Gates | None = None,
) -> tuple[Tensor, Saved]:
    """Advance the state by one time step.

    Args:
        x: Projected input with its bias, one (B, U) per gate.
        h: Previous state, (B, U).
        weights: Recurrent kernels and the candidate's recurrent bias.
        convention: Reset placement, update convention, activations.
        recurrent_mask: Dropout masks, one (B, U) per gate, that scale `h` on its way into that
            gate's matmul (Gal & Ghahramani 2016), or None.

    Returns:
        The new state, (B, U), and what `step_backward` needs.

    Raises:
        ValueError: There is a mask, and not one recurrent kernel per gate.
    """
    a_z, a_r, q = gate_products(h, weights, convention.reset_after, recurrent_mask)
    z = convention.recurrent_activation(x.z + a_z)  # (1)
    r = convention.recurrent_activation(x.r + a_r)  # (2)
    g = candidate(x.g, r, q, masked_states(h, recurrent_mask).g, weights, convention)
    return _update(h, z, g, convention), Saved(z, r, g, q)


def joint_step(
    x: JointGates, h: Tensor, weights: StepWeights, convention: Convention
) -> tuple[Tensor, Saved]:
    """As `step`, with the update and the reset gate side by side until they part: fewer operations.

    Args:
        x: Projected input with its bias, (B, 2U) of the two gates and (B, U) of the candidate.
        h: Previous state, (B, U).
        weights: With fewer recurrent kernels than gates.
        convention: As for `step`.

    Raises:
        ValueError: There is one recurrent kernel per gate.
    """
    a_zr, q = joint_products(h, weights, convention.reset_after)
    zr = convention.recurrent_activation(x.zr + a_zr)  # (1), (2)
    z, r = tf.split(zr, 2, axis=-1)
    g = candidate(x.g, r, q, h, weights, convention)
    return _update(h, z, g, convention), Saved(z, r, g, q)


def candidate(
    x_g: Tensor,
    r: Tensor,
    q: Tensor | None,
    h_g: Tensor,
    weights: StepWeights,
    convention: Convention,
) -> Tensor:
    """G of (3a) or (3b), from the projected input, the reset gate, q, and the state; all (B, U)."""
    if convention.reset_after:
        return convention.activation(x_g + r * q)  # (3a)
    return convention.activation(x_g + candidate_product(r * h_g, weights))  # (3b)


def _update(h: Tensor, z: Tensor, g: Tensor, convention: Convention) -> Tensor:
    if convention.update_gate == "keep":
        return z * h + (1 - z) * g  # (4a)
    return (1 - z) * h + z * g  # (4b)


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
        saved: Second result of `step`.
        h: Previous state, (B, U).
        weights: As given to `step`, `transposed`.
        convention: As given to `step`.
        recurrent_mask: As given to `step`.

    Returns:
        Gradients with respect to the previous state, the projected input, and q.

    Raises:
        ValueError: There is a mask, and not one recurrent kernel per gate.
    """
    z, r, g, q = saved
    gate_derivative = DERIVATIVE_FROM_OUTPUT[convention.recurrent_activation]
    candidate_derivative = DERIVATIVE_FROM_OUTPUT[convention.activation]
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
    dq = None
    if convention.reset_after:
        dq = da_g * r  # (11a)
        da_r = da_g * q * gate_derivative(r)  # (12)
        dh += gate_products_backward(Gates(da_z, da_r, dq), weights, recurrent_mask)  # (13)
    else:
        drh = candidate_product_backward(da_g, weights)  # (11b)
        da_r = drh * masked_states(h, recurrent_mask).g * gate_derivative(r)  # (12)
        dh_g = drh * r
        dh += dh_g if recurrent_mask is None else dh_g * recurrent_mask.g  # (13)
        dh += gate_products_backward(Gates(da_z, da_r, None), weights, recurrent_mask)
    return StepGradients(dh, Gates(da_z, da_r, da_g), dq)
