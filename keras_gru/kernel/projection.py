"""The input projection of all steps, and the precision it is taken in.

In bfloat16 or float16 ("narrow"), the matrix products outside the loop are taken in that
precision, and the recurrence in float32.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from keras_gru.kernel.normalization import normalize_gates
from keras_gru.kernel.weights import Gates, split_gates

Tensor = Any


def is_narrow(dtype: tf.DType) -> bool:
    """Whether the recurrence is too precise for it."""
    return dtype in (tf.bfloat16, tf.float16)


def wide(values: Tensor) -> Tensor:
    """In the precision of the recurrence; None stays None."""
    narrow = values is not None and is_narrow(values.dtype)
    return tf.cast(values, tf.float32) if narrow else values


def project(
    x: Tensor,
    kernel: Tensor,
    bias: Tensor | None = None,
    input_mask: Gates | None = None,
    gain: Tensor | None = None,
) -> Tensor:
    """One large matrix product: (…, …, D), (D, V) → (…, …, V), wide.

    Args:
        x: The inputs.
        kernel: Of all gates, or of any.
        bias: (V,), or None.
        input_mask: With a kernel of all gates and inputs (B, T, D), one mask (B, D) per gate; or
            None. Then each gate takes a product of its own.
        gain: With a centred kernel of all gates, (3U,) for layer normalisation; or None.
    """
    if input_mask is not None:
        gates = zip(input_mask, split_gates(kernel), strict=True)
        parts = [project(x * mask[:, tf.newaxis], kernel) for mask, kernel in gates]
        projected = tf.concat(parts, axis=-1)
        projected = projected if gain is None else normalize_gates(projected, gain)
        return projected if bias is None else projected + wide(bias)
    flat = tf.matmul(tf.reshape(x, [-1, x.shape[-1]]), kernel)
    if gain is not None:
        flat, bias = normalize_gates(wide(flat), gain), wide(bias)
    if bias is not None:
        # As a row: TensorFlow would fuse a vector with the product, for oneDNN, which takes up to
        # three times as long with one row and gains nothing with many.
        flat += tf.reshape(bias, [1, -1])
    sizes = tf.unstack(tf.shape(x)[:2])
    out = tf.reshape(wide(flat), [*sizes, kernel.shape[-1]])
    out.set_shape([*x.shape[:2], kernel.shape[-1]])
    return out
