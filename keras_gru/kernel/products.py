"""The matrix products of one step with the recurrent kernel, forward and backward.

How many there are is up to the layout of `StepWeights.recurrent`: one per gate, which is what
dropout masks on the state need; or as few as can be. `gate_terms` and `candidate_term` say what
enters the gates: the products themselves or, with layer normalisation, what it makes of them.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from keras_gru.kernel.normalization import inverse_deviation, normalize, normalize_gates
from keras_gru.kernel.weights import (
    Gates,
    JointGates,
    StepWeights,
    by_gate,
    split_gates,
    split_joint,
)

Tensor = Any


def gate_products(
    h: Tensor, weights: StepWeights, reset_after: bool, recurrent_mask: Gates | None
) -> Gates:
    """h·U of each gate; the candidate's is None with the reset gate before the matmul.

    Args:
        h: State (..., U).
        weights: Of a step.
        reset_after: Reset placement. If false, see `candidate_product`.
        recurrent_mask: See `step.step`.
    """
    U = weights.recurrent
    if isinstance(U, Gates):
        states = masked_states(h, recurrent_mask)
        q = product(states.g, U.g) if reset_after else None
        return Gates(product(states.z, U.z), product(states.r, U.r), q)
    _refuse_gate_by_gate(weights, recurrent_mask)
    if isinstance(U, JointGates):
        zr, q = product(h, U.zr), product(h, U.g) if reset_after else None
        z, r = tf.split(zr, 2, axis=-1)
        return Gates(z, r, q)
    return split_gates(_packed(h, weights))


def gate_terms(products: Gates, weights: StepWeights) -> Gates:
    """What (1), (2) and (3a) add of `gate_products`, the last of it q; None where those are."""
    z, r, q = (_normalized(a, weights, gate) for gate, a in enumerate(products))
    return Gates(z, r, _with_bias(q, weights))


def joint_products(
    h: Tensor, weights: StepWeights, reset_after: bool
) -> tuple[Tensor, Tensor | None]:
    """As `gate_terms`, with those of the two gates side by side, (..., 2U)."""
    _refuse_gate_by_gate(weights, None)
    if isinstance(weights.recurrent, Gates):
        raise ValueError(
            "`weights.recurrent` of a joint step must be a JointGates or one packed kernel, got "
            "one kernel per gate"
        )
    U, gain = weights.recurrent, weights.centered_gain
    if isinstance(U, JointGates):
        zr, q = product(h, U.zr), product(h, U.g) if reset_after else None
        if isinstance(gain, JointGates):
            zr = normalize_gates(zr, gain.zr, 2)
            q = None if q is None else normalize_gates(q, gain.g, 1)
    else:
        packed = _packed(h, weights)
        zr, q = split_joint(packed if gain is None else normalize_gates(packed, gain))
    return zr, _with_bias(q, weights)


def candidate_product(reset_state: Tensor, weights: StepWeights) -> Tensor:
    """(r ⊙ h)·U of (3b), from r ⊙ h, (..., U)."""
    U = weights.recurrent
    assert isinstance(U, Gates | JointGates)  # packed kernels are for the reset after the matmul
    return product(reset_state, U.g)


def candidate_term(product_g: Tensor, weights: StepWeights) -> Tensor:
    """What (3b) adds of `candidate_product`."""
    return _normalized(product_g, weights, 2)


def gate_products_backward(
    deltas: Gates, weights: StepWeights, recurrent_mask: Gates | None
) -> Tensor:
    """Gradient with respect to the state of what `gate_products` computes.

    Args:
        deltas: Gradients of its results, the last of them None where q is.
        weights: As given to `gate_products`, `transposed`.
        recurrent_mask: As given to `gate_products`.
    """
    U = weights.recurrent
    there = [d for d in deltas if d is not None]
    if isinstance(U, Gates):
        parts = [tf.matmul(d, kernel) for d, kernel in zip(there, U, strict=False)]
        if recurrent_mask is not None:
            parts = [d * mask for d, mask in zip(parts, recurrent_mask, strict=False)]
        return tf.add_n(parts)
    _refuse_gate_by_gate(weights, recurrent_mask)
    if not isinstance(U, JointGates):
        return tf.matmul(tf.concat(there, axis=-1), U)
    parts = [tf.matmul(tf.concat(there[:2], axis=-1), U.zr)]
    return tf.add_n(parts + [tf.matmul(d, U.g) for d in there[2:]])


def candidate_product_backward(delta: Tensor, weights: StepWeights) -> Tensor:
    """Gradient with respect to r ⊙ h of what `candidate_product` computes; kernels transposed."""
    U = weights.recurrent
    assert isinstance(U, Gates | JointGates)
    return tf.matmul(delta, U.g)


def masked_states(h: Tensor, recurrent_mask: Gates | None) -> Gates:
    """The state (..., U), or the input (..., D), as each gate's matmul sees it."""
    if recurrent_mask is None:
        return Gates(h, h, h)
    return Gates(*(h * mask for mask in recurrent_mask))


def product(h: Tensor, kernel: Tensor | tuple[Tensor, ...]) -> Tensor:
    """h·U of states (..., U) and one kernel, whole or in columns."""
    if isinstance(kernel, tuple):
        return tf.concat([tf.matmul(h, columns) for columns in kernel], -1)
    # Of more axes than two, TensorFlow would take one small product after another.
    return tf.matmul(h, kernel) if h.shape.rank == 2 else tf.tensordot(h, kernel, 1)


def _normalized(a: Tensor | None, weights: StepWeights, gate: int) -> Tensor | None:
    if a is None:
        return None
    if weights.gain is not None:
        return normalize(a) * weights.gain[gate]
    if weights.centered_gain is not None:
        return a * inverse_deviation(a) * by_gate(weights.centered_gain)[gate]
    return a


def _packed(h: Tensor, weights: StepWeights) -> Tensor:
    a = product(h, weights.recurrent)
    return a if weights.bias is None else a + weights.bias


def _with_bias(q: Tensor | None, weights: StepWeights) -> Tensor | None:
    return q if q is None or weights.candidate_bias is None else q + weights.candidate_bias


def _refuse_gate_by_gate(weights: StepWeights, recurrent_mask: Gates | None) -> None:
    """One product for several gates cannot apply anything that differs from gate to gate."""
    for name, value in (("recurrent_mask", recurrent_mask), ("weights.gain", weights.gain)):
        if value is not None:
            raise ValueError(
                f"`{name}` needs one recurrent kernel per gate (`weights.step_weights`), got fewer "
                "kernels than gates"
            )
