"""The path of `keras_gru.GRU` that a measured call took."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_gru import GRU

FUSED = ("xla", "plain")


def checked(layer: Any, result: Callable[[], Any], *wanted: str) -> Callable[[], Any]:
    """The result as arrays, after checking on which path this project's layers computed it.

    Args:
        layer: a layer or model, with layers of this project in it or none.
        result: calls it.
        wanted: paths that it may take; by default `"xla"`.
    """
    wanted = wanted or ("xla",)

    def call() -> Any:
        value = result()
        for one in own_layers(layer):
            if one.last_path not in wanted:
                raise RuntimeError(
                    f"Layer {one.name!r} was to run on path {' or '.join(wanted)} and ran on "
                    f"{one.last_path!r}"
                )
        return tf.nest.map_structure(np.asarray, value)

    return call


def own_layers(layer: Any) -> list[GRU]:
    """Each keras_gru layer in a layer or model, once."""
    found = (one for one in layer._flatten_layers() if isinstance(one, GRU))
    return list({id(one): one for one in found}.values())
