"""Whole Keras models whose GRUs of one library are replaced by those of the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras

from keras_gru.cell import GRUCell
from keras_gru.convert.gru_weights import GRUWeights
from keras_gru.layer import GRU

LIBRARIES = ("keras_gru", "keras")
LAYER_TYPES = {"GRU": GRU, "GRUCell": GRUCell}

# Options that keras.layers.GRU lacks, with the values at which it needs none of them.
EXTRA_OPTIONS = {
    "zoneout": 0.0,
    "dropconnect": 0.0,
    "layer_norm": False,
    "learn_initial_state": False,
    "return_gates": False,
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
    if to not in LIBRARIES:
        raise ValueError(f"Argument `to` must be one of {LIBRARIES}. Received: to={to!r}")
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
    converted.set_weights(model.get_weights())
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
