"""Streaming: the state is carried from call to call, one step or a chunk of steps at a time."""

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
_CHUNK = 16
_Step = Callable[[Any, Any], Any]


def contenders(contest: Contest, weights: list[Array]) -> dict[Key, Contender]:
    """Keras' layer and cell and ours, for each measure; times are per step."""
    batch, _, features, units = contest.shape
    found: dict[Key, Contender] = {}
    chunk = tf.random.Generator.from_seed(0).normal((batch, _CHUNK, features))
    first = chunk[:, :1]
    for x, measure in ((first, "one step"), (chunk, f"{_CHUNK} steps")):
        for name, make in (("Keras", keras.layers.GRU), ("keras_gru", GRU)):
            layer = make(units, return_state=True)
            layer.build((batch, None, features))
            layer.set_weights(weights)
            found[measure, name] = _carried(layer, _of_layer(layer), x, units, name)
            stateful = make(units, stateful=True)
            stateful.build((batch, None, features))
            stateful.set_weights(weights)
            found[measure, f"{name} stateful"] = _stateful(stateful, x, f"{name} stateful")
    for name, make in (("Keras", keras.layers.GRUCell), ("keras_gru", GRUCell)):
        cell = make(units)
        cell.build((batch, features))
        cell.set_weights(weights)
        title = f"{name} cell"
        found["one step", title] = _carried(cell, _of_cell(cell), first, units, title)
    return found


def _of_layer(layer: Any) -> _Step:
    return tf.function(lambda x, h: layer(x, initial_state=h)[1], autograph=False)  # type: ignore[no-any-return]


def _of_cell(cell: Any) -> _Step:
    return tf.function(lambda x, h: cell(x[:, 0], [h])[0], autograph=False)  # type: ignore[no-any-return]


def _carried(layer: Any, step: _Step, x: Any, units: int, title: str) -> Contender:
    """The state is passed from call to call as a tensor."""
    h0 = tf.zeros((x.shape[0], units))

    def run() -> Any:
        h = h0
        for _ in range(_CALLS):
            h = step(x, h)
        return h

    return _contender(layer, run, lambda: run().numpy(), x.shape[1], title)


def _stateful(layer: Any, x: Any, title: str) -> Contender:
    step = tf.function(layer, autograph=False)

    def run() -> Any:
        for _ in range(_CALLS):
            h = step(x)
        return h

    def result() -> Any:
        layer.reset_state()
        return run().numpy()

    return _contender(layer, run, result, x.shape[1], title)


def _contender(
    layer: Any, run: Callable[[], Any], result: Callable[[], Any], steps: int, title: str
) -> Contender:
    against = title.replace("keras_gru", "Keras")
    return Contender(
        run,
        checked(layer, result, *FUSED),
        None if against == title else against,
        per_call=_CALLS * steps,
    )
