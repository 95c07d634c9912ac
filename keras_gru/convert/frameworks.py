"""Weights of the GRUs of PyTorch, Flax and Sonnet, in and out, and whole models of Keras.

`torch.nn.GRU`: a state dict packs r | z | n along the first axis of `weight_ih_l0` (3U, D),
`weight_hh_l0` (3U, U), `bias_ih_l0` and `bias_hh_l0` (3U,); further layers count up (`_l1`) and the
backward direction adds `_reverse`. The reset gate comes after the matmul and the update gate keeps.

`flax.linen.GRUCell`: the parameters are one Dense layer per gate and matmul: `ir`, `iz`, `in` with
kernel (D, U) and bias, `hr`, `hz` with kernel (U, U) only, and `hn` with kernel and bias. The reset
gate comes after the matmul and the update gate keeps. A gate's two biases are only ever added, so
the second one is folded into the first on the way out; the candidate's two are separated by the
reset gate.

`flax.nnx.GRUCell`: the same GRU in two Linear layers, `dense_i` with kernel (D, 3U) and bias (3U,),
and `dense_h` with kernel (U, 3U) only; the gates stand in the order r, z, candidate. It lacks the
candidate's second bias, and so cannot be every GRU.

`snt.GRU` of Sonnet 2: the variables are packed as ours, z | r | a on the last axis: `w_i` (D, 3U),
`w_h` (U, 3U), `b` (3U,). The reset gate comes before the matmul and the update gate replaces (Chung
et al. 2014).

The others' weights come and go as NumPy arrays. `keras.layers.GRU` has our layout, so that there a
whole model is converted, its layers exchanged.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_gru.arguments import check_choice
from keras_gru.cell import GRUCell
from keras_gru.convert.gru_weights import Array, GRUWeights, pack, require_names, split, take
from keras_gru.functional import GATE_COUNT, Gates
from keras_gru.layer import GRU

_DIRECTIONS = ("forward", "backward")
_INPUT_WEIGHT = re.compile(r"weight_ih(?:_l(\d+)(_reverse)?)?")
"""Names of the input weights of a PyTorch GRU, by layer and direction, and of a GRUCell."""
_PYTORCH_NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
_FLAX_INPUT = Gates("iz", "ir", "in")
_FLAX_RECURRENT = Gates("hz", "hr", "hn")
_NNX_NAMES = ("dense_i", "dense_h")
_SONNET_NAMES = ("w_i", "w_h", "b")


def from_pytorch(
    state_dict: Mapping[str, Any],
    layer: int = 0,
    direction: str = "forward",
    *,
    prefix: str = "",
) -> GRUWeights:
    """Read one layer and direction of a `torch.nn.GRU`.

    Args:
        state_dict: `module.state_dict()` of a GRU or a GRUCell, or its names with NumPy arrays.
        layer: Index of the layer in the stack.
        direction: `"forward"` or `"backward"`.
        prefix: Name of the GRU in a larger model, the part before `weight_ih_l0`, as in
            `"encoder.gru"`.

    Returns:
        The weights, without biases if the module has none.

    Raises:
        ValueError: A weight is missing.
    """
    suffix = _suffix(layer, direction)
    state_dict = _of_module(state_dict, prefix)
    if "weight_ih" in state_dict and suffix == "_l0":  # torch.nn.GRUCell
        suffix = ""
    names = tuple(name + suffix for name in _PYTORCH_NAMES)
    arrays = take("PyTorch", state_dict, names[:2])
    if any(name in state_dict for name in names[2:]):
        arrays += take("PyTorch", state_dict, names[2:])
    for array in arrays:
        if array.shape[0] % GATE_COUNT:
            raise ValueError(
                "The weights of a PyTorch GRU must have 3·hidden_size rows. "
                f"Received: {array.shape[0]} rows"
            )
    kernel, recurrent, *biases = [_exchange(array.T) for array in arrays]
    return GRUWeights(kernel, recurrent, np.stack(biases) if biases else None)


def to_pytorch(weights: GRUWeights, layer: int = 0, direction: str = "forward") -> dict[str, Array]:
    """Convert weights to entries of a state dict for one layer and direction of `torch.nn.GRU`.

    Merge the dicts of all layers and directions and wrap the arrays with `torch.from_numpy`
    before `module.load_state_dict`.

    Args:
        weights: Weights with the reset gate after the matmul.
        layer: Index of the layer in the stack.
        direction: `"forward"` or `"backward"`.

    Returns:
        `weight_ih_l0`, `weight_hh_l0` and, unless there are no biases, `bias_ih_l0` and
        `bias_hh_l0`, named for the layer and direction.

    Raises:
        ValueError: PyTorch's GRU cannot be this one.
    """
    weights = weights.require("PyTorch", reset_after=True)
    suffix = _suffix(layer, direction)
    arrays = [weights.kernel, weights.recurrent_kernel]
    if weights.bias is not None:
        arrays += [weights.input_bias, weights.recurrent_bias]
    return {
        name + suffix: np.ascontiguousarray(_as_numpy_dtype(_exchange(array).T))
        for name, array in zip(_PYTORCH_NAMES, arrays, strict=False)
    }


def load_pytorch(target: Any, source: Any, *, prefix: str = "") -> None:
    """Give a layer the weights of a whole `torch.nn.GRU`, or of a `torch.nn.GRUCell`.

    A `keras_gru.GRUEncoder(units, num_layers, bidirectional)` computes what
    `torch.nn.GRU(features, units, num_layers, batch_first=True, bidirectional=bidirectional)`
    does; a GRU or a `keras.layers.Bidirectional` one does for a single layer.

    Args:
        target: A GRU, a Bidirectional of GRUs, or a GRUEncoder; `keras_gru`'s or Keras'.
        source: The module or its state dict. Weight normalisation, pruning and other
            reparametrisations rename weights and must be removed before.
        prefix: Name of the GRU in a larger model, the part before `weight_ih_l0` in its state
            dict, as in `"encoder.gru"`.

    Raises:
        ValueError: A weight is missing, or the two differ in layers, directions or sizes; nothing
            is assigned.
    """
    state_dict = source.state_dict() if hasattr(source, "state_dict") else source
    state_dict = _of_module(state_dict, prefix)
    layers = dict(_layers_of(target))
    available = {
        (int(found[1] or 0), _DIRECTIONS[bool(found[2])])
        for found in map(_INPUT_WEIGHT.fullmatch, state_dict)
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
    """Convert all layers and directions of a layer to a state dict for `torch.nn.GRU`.

    Args:
        source: A built GRU, Bidirectional of GRUs, or GRUEncoder.

    Raises:
        ValueError: PyTorch's GRU cannot be this one.
    """
    arrays: dict[str, Array] = {}
    for key, layer in _layers_of(source):
        arrays.update(to_pytorch(GRUWeights.of(layer), *key))
    return arrays


def from_flax(params: Mapping[str, Any]) -> GRUWeights:
    """Read the parameters of a linen GRUCell.

    Args:
        params: The cell's own dict, `{"ir": {"kernel": ..., "bias": ...}, ...}`, or the variables
            around it, `{"params": {...}}`.

    Raises:
        ValueError: A parameter is missing.
    """
    params = params.get("params", params)
    require_names("The parameters of a Flax GRUCell", params, (*_FLAX_INPUT, *_FLAX_RECURRENT))
    kernels, biases = zip(
        *(take("Flax", params[name], ("kernel", "bias")) for name in _FLAX_INPUT), strict=True
    )
    recurrent = [take("Flax", params[name], ("kernel",))[0] for name in _FLAX_RECURRENT]
    (candidate_bias,) = take("Flax", params[_FLAX_RECURRENT.g], ("bias",))
    zeros = np.zeros_like(candidate_bias)
    bias = np.stack([pack(Gates(*biases)), pack(Gates(zeros, zeros, candidate_bias))])
    return GRUWeights(pack(Gates(*kernels)), pack(Gates(*recurrent)), bias)


def to_flax(weights: GRUWeights) -> dict[str, dict[str, Array]]:
    """Convert weights to a linen GRUCell's parameters, the `"params"` of its variables.

    Args:
        weights: Weights with the reset gate after the matmul. Missing biases become zeros, which
            Flax's cell always has.

    Raises:
        ValueError: Flax's GRU cannot be this one.
    """
    weights = weights.require("Flax", reset_after=True)
    recurrent_bias = split(weights.recurrent_bias)
    input_bias = split(weights.input_bias)
    folded = Gates(input_bias.z + recurrent_bias.z, input_bias.r + recurrent_bias.r, input_bias.g)
    kernels = (*split(weights.kernel), *split(weights.recurrent_kernel))
    names = (*_FLAX_INPUT, *_FLAX_RECURRENT)
    params = {name: {"kernel": kernel} for name, kernel in zip(names, kernels, strict=True)}
    for name, bias in zip(_FLAX_INPUT, folded, strict=True):
        params[name]["bias"] = bias
    params[_FLAX_RECURRENT.g]["bias"] = recurrent_bias.g
    return params


def from_flax_nnx(params: Mapping[str, Any]) -> GRUWeights:
    """Read the parameters of an nnx GRUCell.

    Args:
        params: The cell's own dict, `{"dense_i": {"kernel": ..., "bias": ...}, "dense_h": ...}`, as
            `nnx.to_pure_dict(nnx.state(cell, nnx.Param))` or the state itself.

    Raises:
        ValueError: A parameter is missing.
    """
    require_names("The parameters of a Flax nnx GRUCell", params, _NNX_NAMES)
    kernel, bias = take("Flax nnx", params["dense_i"], ("kernel", "bias"))
    (recurrent,) = take("Flax nnx", params["dense_h"], ("kernel",))
    biases = np.stack([_exchange(bias), np.zeros_like(bias)])
    return GRUWeights(_exchange(kernel), _exchange(recurrent), biases)


def to_flax_nnx(weights: GRUWeights) -> dict[str, dict[str, Array]]:
    """Convert weights to the parameters of an nnx GRUCell, which `nnx.update` sets.

    Args:
        weights: Weights with the reset gate after the matmul, whose candidate has no recurrent
            bias. Missing biases become zeros, which Flax's cell always has.

    Raises:
        ValueError: Flax's GRU cannot be this one.
    """
    weights = weights.require("Flax nnx", reset_after=True)
    recurrent_bias = split(weights.recurrent_bias)
    if np.any(recurrent_bias.g):
        raise ValueError(
            "Flax nnx's GRU has no recurrent bias of the candidate: it must be 0, as in a layer "
            f"that was never trained. Received: values up to {np.abs(recurrent_bias.g).max():.3g}"
        )
    return {
        "dense_i": {
            "kernel": _exchange(weights.kernel),
            "bias": _exchange(weights.input_bias + weights.recurrent_bias),
        },
        "dense_h": {"kernel": _exchange(weights.recurrent_kernel)},
    }


def from_sonnet(variables: Mapping[str, Any]) -> GRUWeights:
    """Read the variables of a `snt.GRU`.

    Args:
        variables: `{"w_i": core.input_to_hidden, "w_h": core.hidden_to_hidden, "b": core.b}`.

    Raises:
        ValueError: A variable is missing.
    """
    kernel, recurrent_kernel, bias = take("Sonnet", variables, _SONNET_NAMES)
    return GRUWeights(kernel, recurrent_kernel, bias, reset_after=False, update_gate="replace")


def to_sonnet(weights: GRUWeights) -> dict[str, Array]:
    """Convert weights to the values of a `snt.GRU`'s variables.

    Args:
        weights: Weights with the reset gate before the matmul. Missing biases become zeros, which
            Sonnet's core always has.

    Raises:
        ValueError: Sonnet's GRU cannot be this one.
    """
    weights = weights.require("Sonnet", reset_after=False, update_gate="replace")
    arrays = (weights.kernel, weights.recurrent_kernel, weights.input_bias)
    return {name: np.asarray(array) for name, array in zip(_SONNET_NAMES, arrays, strict=True)}


def _layers_of(target: Any) -> Iterator[tuple[tuple[int, str], Any]]:
    """Yield ((index, direction), GRU) pairs."""
    for index, layer in enumerate(getattr(target, "layers", [target])):
        if hasattr(layer, "forward_layer"):
            yield (index, "forward"), layer.forward_layer
            yield (index, "backward"), layer.backward_layer
        else:
            yield (index, "forward"), layer


def _of_module(state_dict: Mapping[str, Any], prefix: str) -> Mapping[str, Any]:
    """Take the entries of one module, under its own names.

    Raises:
        ValueError: The module holds no GRU, but others do.
    """
    start = prefix + "." if prefix and not prefix.endswith(".") else prefix
    own = {name[len(start) :]: v for name, v in state_dict.items() if name.startswith(start)}
    if any(map(_INPUT_WEIGHT.fullmatch, own)):
        return own
    ends = (name.rpartition(".") for name in state_dict)
    if there := sorted({module for module, _, name in ends if _INPUT_WEIGHT.fullmatch(name)}):
        raise ValueError(
            f"Argument `prefix` must name a PyTorch GRU of the state dict: one of {there}. "
            f"Received: prefix={prefix!r}"
        )
    return own


def _suffix(layer: int, direction: str) -> str:
    check_choice("direction", direction, _DIRECTIONS)
    return f"_l{layer}" + ("_reverse" if direction == "backward" else "")


def _exchange(packed: Array) -> Array:
    """Exchange the first two gates of (..., 3U): z | r | g becomes r | z | g, or the reverse."""
    first, second, candidate = split(packed)
    return pack(Gates(second, first, candidate))


def _as_numpy_dtype(array: Array) -> Array:
    """Convert bfloat16 to float32, a dtype of NumPy's own, which `torch.from_numpy` needs."""
    return array.astype("float32") if array.dtype.name == "bfloat16" else array


# Keras -------------------------------------------------------------------------------------------

LIBRARIES = ("keras_gru", "keras")
LAYER_TYPES = {"GRU": GRU, "GRUCell": GRUCell}

# Options that keras.layers.GRU lacks, with the values at which it needs none of them.
EXTRA_OPTIONS = {
    name: plain
    for name, plain in (GRU.__init__.__kwdefaults__ or {}).items()
    if name not in ("update_gate", "implementation", "path")
}


def keras_model(model: Any, to: str = "keras_gru") -> Any:
    """Replace every `keras.layers.GRU` and `GRUCell` of a model by ours, or ours by Keras'.

    They are found wherever a layer holds others: in `Bidirectional`, `TimeDistributed`,
    `RNN(StackedRNNCells(...))`, models inside of models. The new model has the weights of the old
    one and is compiled as it was, with a fresh optimizer. The old model does not change.

    >>> theirs = keras.Sequential([keras.Input((None, 3)), keras.layers.GRU(4)])
    >>> ours = keras_model(theirs)
    >>> type(ours.layers[0]).__module__
    'keras_gru.layer'

    `keras.models.load_model(path, custom_objects={"GRU": keras_gru.GRU})` does not do this: a file
    says which library a class is from, and Keras' own classes are never looked up among custom
    objects. It loads Keras' layer without a warning.

    Args:
        model: A built model, or the path of a saved one. Classes of your own that are not
            registered need a `keras.saving.custom_object_scope` around the call.
        to: The library whose GRUs the result has: `"keras_gru"` or `"keras"`.

    Raises:
        ValueError: The model is not built, has no GRU to replace, or one that Keras does not have;
            the message names it.
    """
    check_choice("to", to, LIBRARIES)
    if isinstance(model, str | Path):
        model = keras.models.load_model(model)
    if not getattr(model, "built", False):
        raise ValueError(
            f"Argument `model` must be built, so that it has weights. Received: {model!r}"
        )
    swapped: list[str] = []
    config = _swapped(keras.saving.serialize_keras_object(model), to, swapped)
    if not swapped:
        raise ValueError(
            f"Model {model.name!r} must have a GRU or a GRUCell of "
            f"{'keras_gru' if to == 'keras' else 'keras.layers'} to be converted. Received: layers "
            f"{sorted({type(layer).__name__ for layer in model.layers})}"
        )
    # The model is in memory already; safe mode would protect nothing.
    converted = keras.saving.deserialize_keras_object(config, safe_mode=False)
    # Not `set_weights`, after which preprocessing layers lack what they have adapted to.
    for old, new in zip(model._flatten_layers(), converted._flatten_layers(), strict=True):
        values: dict[str, Any] = {}
        old.save_own_variables(values)
        new.load_own_variables(values)
        if hasattr(old, "save_assets"):
            with tempfile.TemporaryDirectory() as folder:
                old.save_assets(folder)
                new.load_assets(folder)
    for old, new in zip(_gru_cells(model), _gru_cells(converted), strict=True):
        if getattr(old, "update_gate", "keep") != getattr(new, "update_gate", "keep"):
            GRUWeights.of(old).assign_to(new)
    return converted


def _swapped(config: Any, to: str, swapped: list[str]) -> Any:
    """Replace the GRUs of a serialised object; adds their names to `swapped`."""
    if isinstance(config, list | tuple):
        return type(config)(_swapped(item, to, swapped) for item in config)
    if not isinstance(config, dict):
        return config
    config = {key: _swapped(value, to, swapped) for key, value in config.items()}
    name, registered = config.get("class_name"), config.get("registered_name")
    if to == "keras_gru" and config.get("module") == "keras.layers" and name in LAYER_TYPES:
        cls: Any = LAYER_TYPES[name]
        swapped.append(config["config"]["name"])
        return {
            **config,
            "module": cls.__module__,
            "registered_name": keras.saving.get_registered_name(cls),
        }
    if to == "keras" and isinstance(registered, str) and registered.startswith("keras_gru>"):
        swapped.append(config["config"]["name"])
        return _of_keras(config)
    return config


def _of_keras(config: dict[str, Any]) -> dict[str, Any]:
    name, options = config["class_name"], config["config"]
    if name not in LAYER_TYPES:
        raise ValueError(
            f"Layer {options['name']!r} must be a GRU or a GRUCell to become one of Keras. "
            f"Received: a {name}"
        )
    for option, plain in EXTRA_OPTIONS.items():
        if options.get(option, plain) != plain:
            raise ValueError(
                f"Layer {options['name']!r} must have {option}={plain} to become Keras' {name}, "
                f"which has no such option. Received: {option}={options[option]!r}"
            )
    theirs = {k: v for k, v in options.items() if k not in (*EXTRA_OPTIONS, "update_gate", "path")}
    return {**config, "module": "keras.layers", "registered_name": None, "config": theirs}


def _gru_cells(model: Any) -> list[Any]:
    """List the GRU cells of a model, of either library, in the order of its layers."""
    kinds = (GRUCell, keras.layers.GRUCell)
    return [layer for layer in model._flatten_layers() if isinstance(layer, kinds)]
