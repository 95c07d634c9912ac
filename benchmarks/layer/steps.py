"""Whole training steps of a small classifier: `Model.fit`, and a loop around a tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from benchmarks.layer.contest import Array, Contest
from benchmarks.layer.paths import checked
from benchmarks.layer.worker import Contender, Key
from keras_gru import GRU

_VOCABULARY = 1000
_CLASSES = 2
_BATCHES = 16


def contenders(contest: Contest, weights: list[Array]) -> dict[Key, Contender]:
    """The classifier with Keras' layer and with ours, for each measure."""
    draw = np.random.default_rng([*contest.shape, 7])
    rows, steps = contest.shape.batch * _BATCHES, contest.shape.steps
    x = draw.integers(1, _VOCABULARY, (rows, steps)).astype("int32")
    if contest.masked:
        x *= np.arange(steps) < contest.lengths(rows)[:, np.newaxis]
    y = draw.integers(0, _CLASSES, rows).astype("int32")
    found: dict[Key, Contender] = {}
    measures: dict[str, Callable[..., tuple[Callable[[], Any], Callable[[], Any]]]] = {
        "fit": _fit,
        "tape": _tape,
    }
    for measure, prepare in measures.items():
        for name, make in (("Keras", keras.layers.GRU), ("keras_gru", GRU)):
            layer = make(contest.shape.units)
            run, losses = prepare(_classifier(contest, layer, weights), x, y, contest.shape.batch)
            found[measure, name] = Contender(
                run,
                checked(layer, losses),
                None if name == "Keras" else "Keras",
                per_call=_BATCHES,
            )
    return found


def _classifier(contest: Contest, layer: Any, weights: list[Array]) -> Any:
    draw = np.random.default_rng([*contest.shape, 8])
    _, _, features, units = contest.shape
    embedding = keras.layers.Embedding(_VOCABULARY, features, mask_zero=contest.masked)
    dense = keras.layers.Dense(_CLASSES)
    model = keras.Sequential([keras.Input((None,), dtype="int32"), embedding, layer, dense])
    table = draw.standard_normal((_VOCABULARY, features)).astype("float32")
    kernel = (draw.standard_normal((units, _CLASSES)) / np.sqrt(units)).astype("float32")
    model.set_weights([table, *weights, kernel, np.zeros(_CLASSES, "float32")])
    return model


def _fit(model: Any, x: Array, y: Array, batch: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    model.compile(
        optimizer=keras.optimizers.Adam(),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )

    def epoch() -> Any:
        history = model.fit(x, y, batch_size=batch, epochs=1, shuffle=False, verbose=0)
        return history.history["loss"]

    return epoch, lambda: [np.asarray(epoch() + epoch())]


def _tape(
    model: Any, x: Array, y: Array, batch: int
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    batches = [
        (tf.constant(x[at : at + batch]), tf.constant(y[at : at + batch]))
        for at in range(0, len(x), batch)
    ]

    @tf.function(autograph=False)
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    def epoch() -> Any:
        return [step(x, y) for x, y in batches]

    return epoch, lambda: [np.asarray([loss.numpy() for loss in epoch() + epoch()])]
