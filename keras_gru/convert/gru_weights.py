"""The weights of one direction of one GRU layer, with the conventions of that GRU."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keras_gru.arguments import check_choice
from keras_gru.cell import cell_of
from keras_gru.functional import (
    GATE_COUNT,
    UPDATE_GATES,
    Gates,
    bias_shape,
    kernel_shape,
    recurrent_kernel_shape,
)

Array: TypeAlias = npt.NDArray[Any]

# f(−a) = 1 − f(a): the gates whose two update conventions are one function.
POINT_SYMMETRIC_GATES = ("sigmoid", "hard_sigmoid")


@dataclasses.dataclass(frozen=True, eq=False)
class GRUWeights:
    """Weights in the layout of `keras_gru.functional`, packed z | r | g on the last axis.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> weights = GRUWeights(rng.normal(size=(4, 9)), rng.normal(size=(3, 9)), None)
    >>> weights.features, weights.units
    (4, 3)
    >>> weights.with_update_gate("replace").kernel[0, :3] == -weights.kernel[0, :3]
    array([ True,  True,  True])

    Raises:
        ValueError: An array has the wrong shape, or `update_gate` is unknown.
    """

    kernel: Array
    """(D, 3U)"""

    recurrent_kernel: Array
    """(U, 3U)"""

    bias: Array | None
    """(2, 3U) with `reset_after` (row 0 input, row 1 recurrent), else (3U,); None for no bias."""

    reset_after: bool = True
    """Whether the reset gate acts after the matmul (3a), or before it (3b)."""

    update_gate: str = "keep"
    """`"keep"` (4a) or `"replace"` (4b)."""

    activation: str = "tanh"
    """Activation φ of the candidate, by its Keras name."""

    recurrent_activation: str = "sigmoid"
    """Activation σ of the gates, by its Keras name."""

    def __post_init__(self) -> None:
        check_choice("update_gate", self.update_gate, UPDATE_GATES)
        for name in ("kernel", "recurrent_kernel", "bias"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else np.asarray(value))
        if self.recurrent_kernel.ndim != 2 or self.kernel.ndim != 2:
            raise ValueError(
                "Arguments `kernel` and `recurrent_kernel` must be matrices (D, 3U) and (U, 3U). "
                f"Received: shapes {self.kernel.shape} and {self.recurrent_kernel.shape}"
            )
        for name, wanted in (
            ("recurrent_kernel", recurrent_kernel_shape(self.units)),
            ("kernel", kernel_shape(self.features, self.units)),
            ("bias", bias_shape(self.units, self.reset_after)),
        ):
            value = getattr(self, name)
            if value is not None and value.shape != wanted:
                raise ValueError(
                    f"Argument `{name}` must have shape {wanted} for D={self.features}, "
                    f"U={self.units}, reset_after={self.reset_after}. Received: shape {value.shape}"
                )

    @property
    def units(self) -> int:
        """Size U of the state."""
        return int(self.recurrent_kernel.shape[0])

    @property
    def features(self) -> int:
        """Size D of the input."""
        return int(self.kernel.shape[0])

    @property
    def input_bias(self) -> Array:
        """Biases added to the input's matmul, (3U,); zeros where there are none."""
        if self.bias is None:
            return np.zeros(self.kernel.shape[1], self.kernel.dtype)
        return self.bias[0] if self.reset_after else self.bias

    @property
    def recurrent_bias(self) -> Array:
        """Biases added to the state's matmul, (3U,); zeros where there are none."""
        if self.bias is None or not self.reset_after:
            return np.zeros(self.kernel.shape[1], self.kernel.dtype)
        recurrent: Array = self.bias[1]
        return recurrent

    def with_update_gate(self, update_gate: str) -> GRUWeights:
        """Convert the weights to the same function with another meaning of the update gate.

        σ(−a) = 1 − σ(a), so negating every weight and bias that enters the update gate swaps
        `"keep"` (4a) and `"replace"` (4b). Negation is exact in any floating-point format.

        Args:
            update_gate: `"keep"` or `"replace"`.

        Raises:
            ValueError: The gates are not odd about one half, as sigmoid and hard_sigmoid are.
        """
        if update_gate == self.update_gate:
            return self
        if self.recurrent_activation not in POINT_SYMMETRIC_GATES:
            raise ValueError(
                "The update convention can be changed only for a recurrent_activation among "
                f"{POINT_SYMMETRIC_GATES}. "
                f"Received: recurrent_activation={self.recurrent_activation!r}"
            )
        return dataclasses.replace(
            self,
            kernel=_negate_update_gate(self.kernel),
            recurrent_kernel=_negate_update_gate(self.recurrent_kernel),
            bias=None if self.bias is None else _negate_update_gate(self.bias),
            update_gate=update_gate,
        )

    @classmethod
    def of(cls, layer: Any, *, beside: tuple[str, ...] = ()) -> GRUWeights:
        """Read the weights of a built layer.

        Args:
            layer: A `keras_gru` or `keras.layers` GRU or GRUCell.
            beside: Names of further weights that the layer may have, which the caller handles.

        Raises:
            ValueError: The layer is not built, or computes something that these arrays cannot
                hold.
        """
        cell = _checked_cell(layer, beside)
        if not cell.built:
            raise ValueError(
                f"Layer {layer.name!r} must be built before its weights can be read: call it once, "
                "or its `build` method."
            )
        return cls(
            tf.convert_to_tensor(cell.kernel).numpy(),
            tf.convert_to_tensor(cell.recurrent_kernel).numpy(),
            tf.convert_to_tensor(cell.bias).numpy() if cell.use_bias else None,
            bool(cell.reset_after),
            getattr(cell, "update_gate", "keep"),
            keras.activations.serialize(cell.activation),
            keras.activations.serialize(cell.recurrent_activation),
        )

    def assign_to(self, layer: Any) -> None:
        """Put the weights into a layer, built or not, in its own update convention.

        Args:
            layer: A `keras_gru` or `keras.layers` GRU or GRUCell with as many units, the same
                reset placement and the same activations.

        Raises:
            ValueError: The layer cannot compute the function of these weights; nothing is
                assigned.
        """
        self.check_fits(layer)
        if not layer.built:
            step = (None,) if hasattr(layer, "cell") else ()
            layer.build((None, *step, self.features))
        cell = _checked_cell(layer)
        weights = self.with_update_gate(getattr(cell, "update_gate", "keep"))
        cell.kernel.assign(weights.kernel)
        cell.recurrent_kernel.assign(weights.recurrent_kernel)
        if cell.use_bias:
            cell.bias.assign(np.zeros(cell.bias.shape) if weights.bias is None else weights.bias)

    def check_fits(self, layer: Any) -> None:
        """Raise ValueError unless `assign_to` can put the weights into a layer."""
        cell = _checked_cell(layer)
        for name, value in (
            ("units", self.units),
            ("reset_after", self.reset_after),
            ("activation", self.activation),
            ("recurrent_activation", self.recurrent_activation),
        ):
            theirs = getattr(cell, name)
            theirs = keras.activations.serialize(theirs) if callable(theirs) else theirs
            if theirs != value:
                raise ValueError(
                    f"Layer {layer.name!r} must have {name}={value!r} to take these weights. "
                    f"Received: {name}={theirs!r}"
                )
        if cell.quantization_mode:
            raise ValueError(f"Layer {layer.name!r} must not be quantized to take these weights.")
        if not cell.use_bias and self.bias is not None and self.bias.any():
            raise ValueError(
                f"Layer {layer.name!r} must have use_bias=True to take these weights, whose biases "
                "are not zero. Received: use_bias=False"
            )
        if cell.built and cell.kernel.shape[0] != self.features:
            raise ValueError(
                f"Layer {layer.name!r} must be built for inputs of {self.features} features to "
                f"take these weights. Received: a layer of {cell.kernel.shape[0]} features"
            )
        self.with_update_gate(getattr(cell, "update_gate", "keep"))

    def require(
        self, framework: str, *, reset_after: bool, update_gate: str = "keep"
    ) -> GRUWeights:
        """Return the weights in a framework's update convention, or raise ValueError.

        Args:
            framework: Name of the framework in the message, whose GRU has fixed activations.
            reset_after: Reset placement of the framework's GRU.
            update_gate: Update convention of the framework's GRU.
        """
        if self.reset_after != reset_after:
            placement = "after" if reset_after else "before"
            raise ValueError(
                f"{framework}'s GRU applies the reset gate {placement} the matmul: "
                f"the weights must have reset_after={reset_after}. "
                f"Received: reset_after={self.reset_after}"
            )
        if (self.activation, self.recurrent_activation) != ("tanh", "sigmoid"):
            raise ValueError(
                f"{framework}'s GRU has activation='tanh' and recurrent_activation='sigmoid'. "
                f"Received: activation={self.activation!r}, "
                f"recurrent_activation={self.recurrent_activation!r}"
            )
        return self.with_update_gate(update_gate)


def split(packed: Array) -> Gates:
    """Cut a packed array (..., 3U) into its gates."""
    return Gates(*np.split(packed, GATE_COUNT, axis=-1))


def pack(gates: Gates) -> Array:
    """Put the gates (..., U) side by side, (..., 3U)."""
    return np.concatenate(gates, axis=-1)


def require_names(what: str, given: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise ValueError unless a mapping has all names; `what` is the subject of the message."""
    if missing := [name for name in names if name not in given]:
        raise ValueError(
            f"{what} must have {list(names)}; missing: {missing}. "
            f"Received: {sorted(map(str, given))}"
        )


def take(framework: str, arrays: Mapping[str, Any], names: tuple[str, ...]) -> list[Array]:
    """Take a framework's tensors out of a mapping.

    Raises:
        ValueError: A tensor is missing; the message lists the expected and the received names.
    """
    require_names(f"The weights of a {framework} GRU", arrays, names)
    return [to_array(arrays[name]) for name in names]


def to_array(value: Any) -> Array:
    """Convert a framework's tensor to a NumPy array."""
    if hasattr(value, "detach"):  # PyTorch: NumPy takes neither gradients nor devices
        value = value.detach().cpu()
        value = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    return np.asarray(value)


def _negate_update_gate(packed: Array) -> Array:
    z, r, g = split(packed)
    return pack(Gates(-z, r, g))


def _checked_cell(layer: Any, beside: tuple[str, ...] = ()) -> Any:
    """Return the cell of a layer or the layer itself, a GRU with nothing but GRU weights."""
    cell = cell_of(layer)
    if getattr(cell, "zoneout", 0):
        raise ValueError(
            f"Layer {layer.name!r} must have zoneout=0 to be converted: at inference zoneout mixes "
            f"the old state into the new one, which a plain GRU does not. "
            f"Received: zoneout={cell.zoneout}"
        )
    scales = ("kernel_scale", "recurrent_kernel_scale") if cell.quantization_mode else ()
    plain = {"kernel", "recurrent_kernel", "bias", *scales, *beside}
    if extra := [weight.name for weight in layer.weights if weight.name not in plain]:
        raise ValueError(
            f"Layer {layer.name!r} has {len(extra)} weights that a plain GRU lacks; it must be a "
            f"plain GRU to be converted. Received: {[w.path for w in layer.weights]}"
        )
    return cell
