"""One step per call, as in decoding, streaming and reinforcement learning.

The table `launch` says what a call takes before any cell begins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from benchmarks.layer.contest import Array, Contest
from benchmarks.layer.paths import FUSED, checked
from benchmarks.layer.worker import Contender, Key
from keras_gru import GRU, GRUCell

_CALLS = 20


def contenders(contest: Contest, weights: list[Array]) -> dict[Key, Contender]:
    """Keras' cell and ours, by default and compiled by XLA, and the layer."""
    batch, _, features, units = contest.shape
    x = tf.random.Generator.from_seed(0).normal((batch, features))
    found: dict[Key, Contender] = {}
    for name, make in (("Keras", keras.layers.GRUCell), ("keras_gru", GRUCell)):
        cell = make(units)
        cell.build((batch, features))
        cell.set_weights(weights)
        for jit in (False, True):
            title = f"{name} jit" if jit else name
            against = {"Keras": None, "keras_gru jit": "Keras jit"}.get(title, "Keras")
            found["one step", title] = _carried(cell, _of_cell(cell, jit), x, units, against)
    layer = GRU(units, return_state=True)
    layer.build((batch, None, features))
    layer.set_weights(weights)
    found["one step", "keras_gru layer"] = _carried(layer, _of_layer(layer), x, units, "Keras")
    return found


def _of_cell(cell: Any, jit: bool) -> Callable[..., Any]:
    return tf.function(  # type: ignore[no-any-return]
        lambda x, h: cell(x, [h])[0], autograph=False, jit_compile=jit or None
    )


def _of_layer(layer: Any) -> Callable[..., Any]:
    return tf.function(  # type: ignore[no-any-return]
        lambda x, h: layer(x[:, tf.newaxis], initial_state=h)[1], autograph=False
    )


def _carried(
    layer: Any, step: Callable[..., Any], x: Any, units: int, against: str | None
) -> Contender:
    h0 = tf.zeros((x.shape[0], units))

    def run() -> Any:
        h = h0
        for _ in range(_CALLS):
            h = step(x, h)
        return h

    return Contender(run, checked(layer, lambda: run().numpy(), *FUSED), against, per_call=_CALLS)
