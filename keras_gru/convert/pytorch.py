"""`torch.nn.GRU`: every layer and direction of a state dict.

PyTorch packs r | z | n along the first axis of `weight_ih_l0` (3U, D), `weight_hh_l0` (3U, U),
`bias_ih_l0` and `bias_hh_l0` (3U,); further layers count up (`_l1`) and the backward direction
adds `_reverse`. The reset gate comes after the matmul and the update gate keeps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from keras_gru.convert.arrays import take
from keras_gru.convert.gru_weights import Array, GRUWeights, pack, split
from keras_gru.functional import GATE_COUNT, Gates

DIRECTIONS = ("forward", "backward")

# The input weights of a GRU, by layer and direction, and of a GRUCell.
INPUT_WEIGHT = re.compile(r"weight_ih(?:_l(\d+)(_reverse)?)?")


def from_pytorch(
    state_dict: Mapping[str, Any],
    layer: int = 0,
    direction: str = "forward",
    *,
    prefix: str = "",
) -> GRUWeights:
    """One layer and direction of a `torch.nn.GRU`.

    Args:
        state_dict: `module.state_dict()`, or its names with NumPy arrays; of a GRU or a GRUCell.
            Of a larger model, `prefix` says which GRU.
        layer: Which layer of the stack.
        direction: `"forward"` or `"backward"`.
        prefix: What stands before `weight_ih_l0`, as in `"encoder.gru"`.

    Returns:
        The weights, without biases if the module has none.

    Raises:
        ValueError: A weight is missing.
    """
    suffix = _suffix(layer, direction)
    state_dict = _of_module(state_dict, prefix)
    if "weight_ih" in state_dict and suffix == "_l0":  # torch.nn.GRUCell
        suffix = ""
    kernel, recurrent = take("PyTorch", state_dict, ("weight_ih" + suffix, "weight_hh" + suffix))
    bias = None
    biases = ("bias_ih" + suffix, "bias_hh" + suffix)
    if any(name in state_dict for name in biases):
        rows = take("PyTorch", state_dict, biases)
        bias = np.stack([_from_rzn(row) for row in rows])
    return GRUWeights(_from_rzn(kernel.T), _from_rzn(recurrent.T), bias)


def to_pytorch(weights: GRUWeights, layer: int = 0, direction: str = "forward") -> dict[str, Array]:
    """One layer and direction as entries of a state dict for `torch.nn.GRU`.

    Merge the dicts of all layers and directions and wrap the arrays with `torch.from_numpy`
    before `module.load_state_dict`.

    Args:
        weights: Weights with the reset gate after the matmul.
        layer: Which layer of the stack.
        direction: `"forward"` or `"backward"`.

    Returns:
        `weight_ih_l0`, `weight_hh_l0` and, unless there are no biases, `bias_ih_l0` and
        `bias_hh_l0`, named for the layer and direction.

    Raises:
        ValueError: PyTorch's GRU cannot be this one.
    """
    weights.require("PyTorch", reset_after=True)
    weights = weights.with_update_gate("keep")
    suffix = _suffix(layer, direction)
    arrays = {
        "weight_ih" + suffix: _to_rzn(weights.kernel).T,
        "weight_hh" + suffix: _to_rzn(weights.recurrent_kernel).T,
    }
    if weights.bias is not None:
        arrays["bias_ih" + suffix] = _to_rzn(weights.input_bias)
        arrays["bias_hh" + suffix] = _to_rzn(weights.recurrent_bias)
    return {name: np.ascontiguousarray(_known(array)) for name, array in arrays.items()}


def load_pytorch(target: Any, source: Any, *, prefix: str = "") -> None:
    """Give a layer the weights of a whole `torch.nn.GRU`, or of a `torch.nn.GRUCell`.

    A `keras_gru.GRUEncoder(units, num_layers, bidirectional)` computes what
    `torch.nn.GRU(features, units, num_layers, batch_first=True, bidirectional=bidirectional)`
    does; a GRU or a `keras.layers.Bidirectional` one does for a single layer.

    Args:
        target: A GRU, a Bidirectional of GRUs, or a GRUEncoder; `keras_gru`'s or Keras'.
        source: The module or its state dict. Weight normalisation, pruning and other
            reparametrisations rename weights and must be removed before.
        prefix: Which GRU of a larger model: what stands before `weight_ih_l0` in its state dict,
            as in `"encoder.gru"`.

    Raises:
        ValueError: A weight is missing, or the two differ in layers, directions or sizes; nothing
            is assigned.
    """
    state_dict = source.state_dict() if hasattr(source, "state_dict") else source
    state_dict = _of_module(state_dict, prefix)
    layers = dict(_layers_of(target))
    available = {
        (int(found[1] or 0), DIRECTIONS[bool(found[2])])
        for found in map(INPUT_WEIGHT.fullmatch, state_dict)
        if found
    }
    if not available:
        from_pytorch(state_dict)  # tells what is missing and what came
    if available != set(layers):
        raise ValueError(
            "Arguments `target` and `source` must have the same layers and directions. Received: "
            f"target with {sorted(layers)}, source with {sorted(available)}"
        )
    loaded = {key: from_pytorch(state_dict, *key) for key in layers}
    for key, layer in layers.items():
        loaded[key].check_fits(layer)
    if not target.built:
        target.build((None, None, loaded[0, "forward"].features))
    for key, layer in layers.items():
        loaded[key].assign_to(layer)


def pytorch_state_dict(source: Any) -> dict[str, Array]:
    """A state dict for `torch.nn.GRU` with all layers and directions of a layer.

    Args:
        source: A built GRU, Bidirectional of GRUs, or GRUEncoder.

    Raises:
        ValueError: PyTorch's GRU cannot be this one.
    """
    arrays: dict[str, Array] = {}
    for key, layer in _layers_of(source):
        arrays.update(to_pytorch(GRUWeights.of(layer), *key))
    return arrays


def _layers_of(target: Any) -> Iterator[tuple[tuple[int, str], Any]]:
    """((layer, direction), GRU) pairs."""
    for index, layer in enumerate(getattr(target, "layers", [target])):
        if hasattr(layer, "forward_layer"):
            yield (index, "forward"), layer.forward_layer
            yield (index, "backward"), layer.backward_layer
        else:
            yield (index, "forward"), layer


def _of_module(state_dict: Mapping[str, Any], prefix: str) -> Mapping[str, Any]:
    """The entries of one module, named as it names them.

    Raises:
        ValueError: It holds no GRU, but others do.
    """
    start = prefix + "." if prefix and not prefix.endswith(".") else prefix
    own = {name[len(start) :]: v for name, v in state_dict.items() if name.startswith(start)}
    if any(map(INPUT_WEIGHT.fullmatch, own)):
        return own
    ends = (name.rpartition(".") for name in state_dict)
    if there := sorted({module for module, _, name in ends if INPUT_WEIGHT.fullmatch(name)}):
        raise ValueError(
            f"Argument `prefix` must name a PyTorch GRU of the state dict: one of {there}. "
            f"Received: prefix={prefix!r}"
        )
    return own


def _suffix(layer: int, direction: str) -> str:
    if direction not in DIRECTIONS:
        raise ValueError(
            f"Argument `direction` must be one of {DIRECTIONS}. Received: direction={direction!r}"
        )
    return f"_l{layer}" + ("_reverse" if direction == "backward" else "")


def _from_rzn(packed: Array) -> Array:
    """(..., 3U) in PyTorch's order to ours."""
    if packed.shape[-1] % GATE_COUNT:
        raise ValueError(
            "The weights of a PyTorch GRU must have 3·hidden_size rows. "
            f"Received: {packed.shape[-1]} rows"
        )
    r, z, g = np.split(packed, GATE_COUNT, axis=-1)
    return pack(Gates(z, r, g))


def _known(array: Array) -> Array:
    """As a dtype of NumPy's own, which `torch.from_numpy` knows: bfloat16 becomes float32."""
    return array.astype("float32") if array.dtype.name == "bfloat16" else array


def _to_rzn(packed: Array) -> Array:
    z, r, g = split(packed)
    return np.concatenate([r, z, g], axis=-1)
