"""Layer normalisation of the products x·W and h·U (Ba et al. 2016, arXiv:1607.06450).

A product has mean zero over the units of a gate if the gate's kernel has: so of kernels that were
`centered` once, a step need not take the mean. Numbers in parentheses are those of DERIVATION.md.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from keras_gru.kernel.weights import GATE_COUNT

Tensor = Any

EPSILON = 1e-3


def normalize(a: Tensor) -> Tensor:
    """Of a product (..., U) with a kernel as it is, without gain and bias."""
    mean, variance = tf.nn.moments(a, axes=[-1], keepdims=True)
    return (a - mean) * tf.math.rsqrt(variance + EPSILON)


def centered(kernel: Tensor) -> Tensor:
    """A packed kernel (V, 3U), each gate less the mean of its columns (37)."""
    gates = tf.reshape(kernel, [-1, GATE_COUNT, kernel.shape[-1] // GATE_COUNT])
    mean = tf.reduce_mean(gates, -1, keepdims=True)
    return tf.reshape(gates - mean, tf.shape(kernel))


def inverse_deviation(a: Tensor) -> Tensor:
    """`s` of (38), (..., 1), from a product (..., U) with a centred kernel."""
    return tf.math.rsqrt(tf.reduce_mean(tf.square(a), -1, keepdims=True) + EPSILON)


def normalize_gates(products: Tensor, gain: Tensor, gates: int = GATE_COUNT) -> Tensor:
    """γ ⊙ n of (38) for some gates side by side.

    Args:
        products: With centred kernels, (..., nU).
        gain: γ of each of them, (nU,).
        gates: n.
    """
    if gates == 1:
        return products * inverse_deviation(products) * gain
    apart = tf.reshape(products, [-1, gates, products.shape[-1] // gates])
    normalized = tf.reshape(apart * inverse_deviation(apart), tf.shape(products)) * gain
    normalized.set_shape(products.shape)
    return normalized


def normalize_backward(delta: Tensor, a: Tensor, gain: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of γ ⊙ n with respect to the product and, still to be summed, to γ (39).

    Args:
        delta: Gradient of γ ⊙ n, (..., U).
        a: Product with a centred kernel, (..., U).
        gain: γ, (U,).
    """
    s = inverse_deviation(a)
    n = a * s
    dn = delta * gain
    return s * (dn - n * tf.reduce_mean(dn * n, -1, keepdims=True)), delta * n
