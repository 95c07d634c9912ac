"""Int8 kernels of a GRU cell, by the protocol of Keras: `model.quantize("int8")`.

Only the weights are quantised, each output channel by its greatest absolute value, as in
`keras.layers.Dense`. They are converted back to floating point once per call, so a file holds a
quarter of the kernels' bytes, and the arithmetic of the recurrence is the layer's own on every
path.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

Tensor = Any

KERNELS = {"kernel": "kernel", "recurrent_kernel": "recurrent"}
"""Prefixes of each kernel's initializer, regularizer and constraint, by its name."""


class QuantizedKernel:
    """A kernel in int8, which TensorFlow reads as a floating-point tensor.

    Args:
        values: The quantised kernel, an int8 variable (D, V).
        scale: The factors by which the columns were multiplied to become `values`, a variable (V,).
        dtype: Floating-point dtype of the tensor.
    """

    def __init__(self, values: Any, scale: Any, dtype: str) -> None:
        self.values, self.scale, self.dtype = values, scale, dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the kernel."""
        return tuple(self.values.shape)

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Tensor:
        """Convert the kernel for `tf.convert_to_tensor` and every operation of TensorFlow."""
        kernel = tf.cast(self.values, self.dtype) / tf.cast(self.scale, self.dtype)
        return tf.convert_to_tensor(kernel, dtype, name=name)


class CalledAsEver:
    """Mixin of a layer that computes the same with an int8 policy as without one."""

    call: Any

    def quantized_call(self, *args: Any, **kwargs: Any) -> Any:
        """Run `call`; Keras calls this method instead once the policy is an int8 one."""
        return self.call(*args, **kwargs)


class Int8ByCell(CalledAsEver):
    """Mixin of a layer around cells, which `model.quantize` quantises one by one."""

    _flatten_layers: Any

    def quantize(self, mode: str | None = None, **kwargs: Any) -> None:
        """Quantise the kernels of all cells to int8; see `Int8Kernels.quantize`."""
        for layer in self._flatten_layers(include_self=False):
            if isinstance(layer, Int8Kernels):
                layer.quantize(mode, **kwargs)


class Int8Kernels(CalledAsEver):
    """Mixin of a recurrent cell whose kernels may be int8."""

    name: str
    dtype_policy: Any
    quantization_mode: str | None
    compute_dtype: str
    add_weight: Any

    def add_kernels(self, **shapes: tuple[int, ...]) -> None:
        """Create kernels of these names and shapes, in int8 if the dtype policy says so."""
        for name, shape in shapes.items():
            if self.quantization_mode:
                self._add_quantized(name, shape)
                self._is_quantized = True
                continue
            kinds = ("initializer", "regularizer", "constraint")
            options = {kind: getattr(self, f"{KERNELS[name]}_{kind}") for kind in kinds}
            kernel = self.add_weight(shape=shape, name=name, **options)
            setattr(self, name, kernel)

    def quantize(
        self,
        mode: str | None = None,
        type_check: bool = True,  # noqa: ARG002  subclasses have the same kernels
        config: Any = None,  # noqa: ARG002  there is nothing to choose
    ) -> None:
        """Quantise the kernels to int8, irreversibly.

        Args:
            mode: `"int8"`.
            type_check: An argument of Keras' protocol that has no effect.
            config: An argument of Keras' protocol that has no effect; Keras' default quantizer of
                weights is used.

        Raises:
            NotImplementedError: The mode is another one; `model.quantize` turns it into a warning.
        """
        if mode != "int8":
            raise NotImplementedError(
                f"Cell {self.name!r} can be quantized to 'int8' only. Received: mode={mode!r}"
            )
        for name in KERNELS:
            values, scale = keras.quantizers.abs_max_quantize(
                getattr(self, name), axis=0, to_numpy=True
            )
            delattr(self, name)  # only this makes Keras release the variable
            kernel = self._add_quantized(name, tuple(values.shape))
            kernel.values.assign(values)
            kernel.scale.assign(scale[0])
        self._is_quantized = True
        self.dtype_policy = keras.dtype_policies.get(f"int8_from_{self.dtype_policy.name}")

    def _add_quantized(self, name: str, shape: tuple[int, ...]) -> QuantizedKernel:
        values = self.add_weight(
            shape=shape, name=name, initializer="zeros", dtype="int8", trainable=False
        )
        scale = self.add_weight(
            shape=shape[-1:], name=f"{name}_scale", initializer="ones", trainable=False
        )
        # Keras tracks variables by the attributes that hold them.
        setattr(self, f"quantized_{name}", values)
        setattr(self, f"{name}_scale", scale)
        kernel = QuantizedKernel(values, scale, self.compute_dtype)
        setattr(self, name, kernel)
        return kernel


def saved_policy(cell: Any, config: Any) -> Any:
    """Choose the dtype in a layer's configuration: its own, or that of its quantised cell."""
    return keras.dtype_policies.serialize(cell.dtype_policy) if cell.quantization_mode else config


def plain_policy(policy: Any) -> Any:
    """Remove the quantisation from a dtype policy, for layers of Keras that have none."""
    if policy.quantization_mode is None:
        return policy
    return keras.dtype_policies.get(policy.name.partition("_from_")[2])
