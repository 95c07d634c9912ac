"""Arguments of `keras_gru.functional` as tensors that fit each other, or errors that name them."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from keras_gru.kernel.convention import Convention
from keras_gru.kernel.weights import (
    GATE_COUNT,
    Gates,
    bias_shape,
    kernel_shape,
    layer_norm_gain_shape,
    recurrent_kernel_shape,
)

Tensor = Any


class PackedWeights(NamedTuple):
    """All weights of a GRU, in the layout of `weights`."""

    kernel: Tensor
    recurrent_kernel: Tensor
    bias: Tensor | None
    layer_norm_gain: Tensor | None

    def checked(self, x: Tensor, convention: Convention) -> PackedWeights:
        """The same as tensors that fit the inputs, or ValueError."""
        recurrent = fitting("recurrent_kernel", self.recurrent_kernel, x.dtype, (None, None))
        units, features = recurrent.shape[0], x.shape[-1]
        wanted = {
            "recurrent_kernel": recurrent_kernel_shape(units),
            "kernel": kernel_shape(features, units),
            "bias": bias_shape(units, convention.reset_after),
            "layer_norm_gain": layer_norm_gain_shape(units),
        }
        return PackedWeights(
            **{
                name: None if value is None else fitting(name, value, x.dtype, wanted[name])
                for name, value in self._asdict().items()
            }
        )


def floating(name: str, value: Any) -> Tensor:
    """The value as a tensor of floating-point numbers (..., known), or ValueError."""
    tensor = tf.convert_to_tensor(value)
    if not (tensor.dtype.is_floating and tensor.shape.rank and tensor.shape[-1]):
        raise ValueError(
            f"Argument `{name}` must hold floating-point numbers, with a last axis of known size. "
            f"Received: {tensor.dtype.name} of shape {tensor.shape}"
        )
    return tensor


def fitting(name: str, value: Any, dtype: tf.DType, shape: Any) -> Tensor:
    """The value as a tensor of this dtype and shape, or ValueError."""
    tensor = tf.convert_to_tensor(value)
    if tensor.dtype != dtype or not tensor.shape.is_compatible_with(shape):
        raise ValueError(
            f"Argument `{name}` must be {dtype.name} of shape {tuple(shape)}, as the other "
            f"arguments are. Received: {tensor.dtype.name} of shape {tensor.shape}"
        )
    return tensor


def gate_masks(masks: Any, dtype: tf.DType, shape: Any) -> Gates:
    """Dropout masks of a state of this dtype and shape, one per gate, or ValueError."""
    if not isinstance(masks, tuple | list) or len(masks) != GATE_COUNT:
        raise ValueError(
            f"Argument `recurrent_mask` must be a Gates of {GATE_COUNT} masks. Received: {masks!r}"
        )
    names = (f"recurrent_mask.{gate}" for gate in Gates._fields)
    return Gates(*(fitting(n, m, dtype, shape) for n, m in zip(names, masks, strict=True)))
