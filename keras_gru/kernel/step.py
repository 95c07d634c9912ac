"""One time step of a GRU, forward and backward: the equations, and nothing else.

Numbers in parentheses are those of DERIVATION.md. Shapes: `h` and every gate (B, U); `x` is the
projected input, with the merged bias of `weights.merge_bias` in it. Forward, any leading axes that
broadcast will do in place of B. The products h·U are in `products`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from keras_gru.kernel.convention import DERIVATIVE_FROM_OUTPUT, Convention
from keras_gru.kernel.normalization import normalize_backward
from keras_gru.kernel.products import (
    candidate_product,
    candidate_product_backward,
    candidate_term,
    gate_products,
    gate_products_backward,
    gate_terms,
    joint_products,
    masked_states,
)
from keras_gru.kernel.weights import Gates, JointGates, StepWeights, by_gate

Tensor = Any


class Saved(NamedTuple):
    """What the backward step needs of the forward step; all (B, U).

    `q` is the recurrent part of the candidate before the reset gate (3a), or None when the reset
    gate is applied before the matmul. With layer normalisation there are instead the products with
    the recurrent kernels, `a_z`, `a_r` and `a_g`.
    """

    z: Tensor
    r: Tensor
    g: Tensor
    q: Tensor | None = None
    a_z: Tensor | None = None
    a_r: Tensor | None = None
    a_g: Tensor | None = None

    @staticmethod
    def needed(reset_after: bool, normalized: bool) -> tuple[str, ...]:
        """Names of the fields that `step_backward` reads."""
        if normalized:
            return "z", "r", "g", "a_z", "a_r", "a_g"
        return ("z", "r", "g", "q") if reset_after else ("z", "r", "g")


class StepGradients(NamedTuple):
    """Gradients of the loss with respect to what enters a step; all (B, U).

    `x` holds (δa_z, δa_r, δa_g). `q` is δq of (11a), or None. With layer normalisation there are
    also those of the products with the recurrent kernels, and of their gains, row by row.
    """

    h: Tensor
    x: Gates
    q: Tensor | None
    products: Gates | None = None
    gain: Gates | None = None


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
    products = gate_products(h, weights, convention.reset_after, recurrent_mask)
    a_z, a_r, q = gate_terms(products, weights)
    z = convention.recurrent_activation(x.z + a_z)  # (1)
    r = convention.recurrent_activation(x.r + a_r)  # (2)
    if convention.reset_after:
        g = convention.activation(x.g + r * q)  # (3a)
    else:
        reset_state = r * masked_states(h, recurrent_mask).g
        products = products._replace(g=candidate_product(reset_state, weights))
        g = convention.activation(x.g + candidate_term(products.g, weights))  # (3b)
    return _update(h, z, g, convention), Saved(z, r, g, q, *products)


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
    h: Tensor,
    weights: StepWeights,
    convention: Convention,
) -> Tensor:
    """G of (3a) or (3b), from the projected input, the reset gate, q, and the state; all (B, U)."""
    if convention.reset_after:
        return convention.activation(x_g + r * q)  # (3a)
    product_g = candidate_product(r * h, weights)
    return convention.activation(x_g + candidate_term(product_g, weights))  # (3b)


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
    """Carry the gradient back through one time step.

    Args:
        dh_new: δh′, gradient with respect to the new state, (B, U) (6).
        saved: Second result of `step`.
        h: Previous state, (B, U).
        weights: As given to `step`, `transposed`; with `centered_gain` if with any.
        convention: As given to `step`.
        recurrent_mask: As given to `step`.

    Returns:
        Gradients with respect to the previous state, the projected input, q, and with layer
        normalisation the products and their gains.

    Raises:
        ValueError: There is a mask, and not one recurrent kernel per gate.
    """
    z, r, g, q, *_ = saved
    normalized = weights.centered_gain is not None
    gain = by_gate(weights.centered_gain) if normalized else Gates(None, None, None)
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
    if convention.reset_after:
        if normalized:
            q = gate_terms(Gates(None, None, saved.a_g), weights).g
        dq = da_g * r  # (11a)
        da_r = da_g * q * gate_derivative(r)  # (12)
        into_g = _through(dq, saved.a_g, gain.g)
        multiplied_g = into_g[0]
    else:
        dq = multiplied_g = None
        into_g = _through(da_g, saved.a_g, gain.g)
        drh = candidate_product_backward(into_g[0], weights)  # (11b)
        da_r = drh * masked_states(h, recurrent_mask).g * gate_derivative(r)  # (12)
        dh_g = drh * r
        dh += dh_g if recurrent_mask is None else dh_g * recurrent_mask.g  # (13)
    into_z, into_r = _through(da_z, saved.a_z, gain.z), _through(da_r, saved.a_r, gain.r)
    deltas = Gates(into_z[0], into_r[0], multiplied_g)
    dh += gate_products_backward(deltas, weights, recurrent_mask)  # (13)
    back = StepGradients(dh, Gates(da_z, da_r, da_g), dq)
    if not normalized:
        return back
    products, gains = (Gates(*parts) for parts in zip(into_z, into_r, into_g, strict=True))
    return back._replace(products=products, gain=gains)


def _through(delta: Tensor, a: Tensor, gain: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Gradients of a product and of its gain; the same and none without layer normalisation."""
    return (delta, None) if gain is None else normalize_backward(delta, a, gain)
