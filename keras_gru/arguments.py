"""Checks of arguments: errors that name the argument, what was expected, and what came."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

Tensor = Any

UPDATE_GATES = ("keep", "replace")


def positive_integer(name: str, value: Any) -> int:
    """Return the value as an int, or raise ValueError unless it is a positive whole number."""
    number = not isinstance(value, bool) and isinstance(
        value, int | float | np.integer | np.floating
    )
    if not (number and math.isfinite(value) and value > 0 and value == int(value)):
        raise ValueError(
            f"Argument `{name}` must be a positive integer. Received: {name}={value!r}"
        )
    return int(value)


def dropout_rate(name: str, rate: float) -> float:
    """Return a rate as a float, or raise ValueError unless it lies in [0, 1)."""
    if not (isinstance(rate, int | float | np.number) and 0 <= rate < 1):
        raise ValueError(f"Argument `{name}` must be a number in [0, 1). Received: {name}={rate!r}")
    return float(rate)


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Raise ValueError unless the value is one of the choices."""
    if value not in choices:
        raise ValueError(f"Argument `{name}` must be one of {choices}. Received: {name}={value!r}")


def feature_count(name: str, input_shape: tuple[int | None, ...]) -> int:
    """Return the size D of the inputs' last axis, or raise ValueError that names the layer."""
    features = input_shape[-1]
    if features is None:
        raise ValueError(
            f"The last axis of the inputs of {name!r} must be known. "
            f"Received: input_shape={tuple(input_shape)}"
        )
    return features


def floating(name: str, value: Any) -> Tensor:
    """Return the value as a tensor of floating-point numbers with axes, or raise ValueError."""
    tensor = tf.convert_to_tensor(value)
    if not (tensor.dtype.is_floating and tensor.shape.rank):
        raise ValueError(
            f"Argument `{name}` must hold floating-point numbers, with one axis at least. "
            f"Received: {tensor.dtype.name} of shape {tensor.shape}"
        )
    return tensor


def real(name: str, value: Any, dtype: Any) -> Tensor:
    """Return the value as a tensor of a floating-point dtype, or raise ValueError.

    A cast alone would drop imaginary parts.
    """
    tensor = tf.convert_to_tensor(value)
    if not (tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_bool):
        raise ValueError(f"Argument `{name}` must hold real numbers. Received: {tensor.dtype.name}")
    return tf.cast(tensor, dtype)


def fitting(name: str, value: Any, dtype: tf.DType, shape: Any) -> Tensor:
    """Return the value as a tensor of this dtype and shape, or raise ValueError."""
    tensor = tf.convert_to_tensor(value)
    if tensor.dtype != dtype or not tensor.shape.is_compatible_with(shape):
        raise ValueError(
            f"Argument `{name}` must be {dtype.name} of shape {tuple(shape)}, as the other "
            f"arguments are. Received: {tensor.dtype.name} of shape {tensor.shape}"
        )
    return tensor


# Configurations -----------------------------------------------------------------------------------

_LIBRARIES = {
    "activation": keras.activations,
    "initializer": keras.initializers,
    "regularizer": keras.regularizers,
    "constraint": keras.constraints,
}


def cannot_change(layer: Any, name: str, value: Any) -> AttributeError:
    """Return the error for a setting that a made layer is given in vain."""
    kind = type(layer).__name__
    return AttributeError(
        f"Argument `{name}` of a {kind} cannot be changed. Make another layer: "
        f"{kind}.from_config({{**layer.get_config(), {name!r}: ...}}). Received: {name}={value!r}"
    )


def named_arguments(constructor: Callable[..., None]) -> list[str]:
    """List the arguments of a constructor that have a name of their own, without `self`."""
    parameters = list(inspect.signature(constructor).parameters.values())[1:]
    return [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def configuration(instance: Any, constructor: Callable[..., None]) -> dict[str, Any]:
    """Serialise the arguments of a constructor from the attributes of the same names."""
    config = {name: getattr(instance, name) for name in named_arguments(constructor)}
    for name, value in config.items():
        library = _LIBRARIES.get(name.rpartition("_")[2])
        config[name] = library.serialize(value) if library else value
    return config
