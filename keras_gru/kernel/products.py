"""The matrix products of one step with the recurrent kernel, forward and backward.

How many there are is up to the layout of `StepWeights.recurrent`: one per gate, which is what
dropout masks on the state and layer normalisation need; or as few as can be.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from keras_gru.kernel.weights import Gates, JointGates, StepWeights, split_gates, split_joint

Tensor = Any


def gate_products(
    h: Tensor, weights: StepWeights, reset_after: bool, recurrent_mask: Gates | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """h·U of the update gate, of the reset gate, and q of (3a).

    Args:
        h: State (..., U).
        weights: Of a step.
        reset_after: Reset placement. If false, q is None: see `candidate_product`.
        recurrent_mask: See `step.step`.
    """
    U = weights.recurrent
    if isinstance(U, Gates):
        states = masked_states(h, recurrent_mask)
        count = 3 if reset_after else 2
        products = [product(*pair) for pair in zip(states[:count], U[:count], strict=True)]
        if weights.gain is not None:
            gains = weights.gain[:count]
            products = [normalize(a) * k for a, k in zip(products, gains, strict=True)]
        z, r, q = products if reset_after else (*products, None)
    else:
        _refuse_gate_by_gate(weights, recurrent_mask)
        if isinstance(U, JointGates):
            zr, q = _joint(h, weights, reset_after)
            z, r = tf.split(zr, 2, axis=-1)
        else:
            z, r, q = split_gates(_packed(h, weights))
    return z, r, _with_bias(q, weights)


def joint_products(
    h: Tensor, weights: StepWeights, reset_after: bool
) -> tuple[Tensor, Tensor | None]:
    """As `gate_products`, with those of the two gates side by side, (..., 2U)."""
    _refuse_gate_by_gate(weights, None)
    if isinstance(weights.recurrent, Gates):
        raise ValueError(
            "`weights.recurrent` of a joint step must be a JointGates or one packed kernel, got "
            "one kernel per gate"
        )
    zr, q = _joint(h, weights, reset_after)
    return zr, _with_bias(q, weights)


def candidate_product(reset_state: Tensor, weights: StepWeights) -> Tensor:
    """(r ⊙ h)·U of (3b), from r ⊙ h, (..., U)."""
    U = weights.recurrent
    assert isinstance(U, Gates | JointGates)  # packed kernels are for the reset after the matmul
    a_g = product(reset_state, U.g)
    return a_g if weights.gain is None else normalize(a_g) * weights.gain.g


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


def normalize(a: Tensor, epsilon: float = 1e-3) -> Tensor:
    """Layer normalisation over the last axis, without gain and bias.

    Ba et al. 2016 (arXiv:1607.06450), equations (3) and (4).
    """
    mean, variance = tf.nn.moments(a, axes=[-1], keepdims=True)
    return (a - mean) * tf.math.rsqrt(variance + epsilon)


def _joint(h: Tensor, weights: StepWeights, reset_after: bool) -> tuple[Tensor, Tensor | None]:
    U = weights.recurrent
    if isinstance(U, JointGates):
        return product(h, U.zr), product(h, U.g) if reset_after else None
    zr, q = split_joint(_packed(h, weights))
    return zr, q


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
