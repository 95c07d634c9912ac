"""Contenders that run in TensorFlow: `keras.layers.GRU` and `keras_gru.GRU`."""

from __future__ import annotations

import tempfile
import time
from typing import Any

import keras
import tensorflow as tf

from benchmarks.layer import one_step as layer_one_step
from benchmarks.layer import steps as layer_steps
from benchmarks.layer import streaming as layer_streaming
from benchmarks.layer.contest import Array, Contest
from benchmarks.layer.memory import MEASURED
from benchmarks.layer.paths import checked
from benchmarks.layer.worker import Contender, Key
from keras_gru import GRU, GRUEncoder

_LAYERS = {"Keras": keras.layers.GRU, "keras_gru": GRU}
_GEMM_SIZE = 2048


def versions() -> dict[str, str]:
    """Versions of TensorFlow and Keras."""
    return {"tensorflow": tf.__version__, "keras": keras.__version__}


def gemm() -> float:
    """The highest speed of a large float32 matrix product, in FLOP per second."""
    a = tf.random.normal((_GEMM_SIZE, _GEMM_SIZE))
    product = tf.function(lambda a: tf.matmul(a, a))
    product(a)
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        product(a)
        seconds.append(time.perf_counter() - started)
    return float(2 * _GEMM_SIZE**3 / min(seconds))


def contenders(contest: Contest, weights: list[Array]) -> dict[Key, Contender]:
    """All contenders of a contest.

    Args:
        contest: of any table.
        weights: kernel, recurrent kernel and bias, of the forward direction and, for the table
            `"bidirectional"`, of the backward one.
    """
    keras.utils.clear_session()
    tables = {
        "layer": _layer,
        "memory": _memory,
        "bidirectional": _bidirectional,
        "masks": _masks,
        "steps": layer_steps.contenders,
        "streaming": layer_streaming.contenders,
        "one-step": layer_one_step.contenders,
        "launch": _launch,
    }
    return tables[contest.table](contest, weights)


def _layer(contest: Contest, weights: list[Array]) -> dict[Key, Contender]:
    x = tf.constant(contest.inputs())
    found: dict[Key, Contender] = {}
    for name in _LAYERS:
        against = None if name == "Keras" else "Keras"
        for jit in (False, True):
            title = f"{name} jit" if jit else name
            layer = _built(name, contest, weights)
            found["inference", title] = _inference(layer, (x,), jit, against)
            found["training", title] = _training(layer, (x,), jit, against)
            against = "Keras"
    for name in _LAYERS:
        found["inference", f"{name} export"] = _export(name, contest, weights, x)
    return found


def _memory(contest: Contest, weights: list[Array]) -> dict[Key, Contender]:
    x = tf.constant(contest.inputs())
    found: dict[Key, Contender] = {}
    for name in MEASURED:
        scope = keras.RematScope("full" if "RematScope" in name else None)
        for measure, inputs in (("start", x[:1, :20]), ("training", x)):
            with scope:
                layer = _built(name.split()[0], contest, weights)
            found[measure, name] = _training(layer, (inputs,))
    return found


def _masks(contest: Contest, weights: list[Array]) -> dict[Key, Contender]:
    x = tf.constant(contest.inputs())
    mask = tf.sequence_mask(contest.lengths(contest.shape.batch), contest.shape.steps)
    found: dict[Key, Contender] = {}
    for name in _LAYERS:
        layer = _built(name, contest, weights)
        against = None if name == "Keras" else "Keras"
        found["inference", name] = _inference(layer, (x, mask), against=against)
        found["training", name] = _training(layer, (x, mask), against=against)
    return found


def _bidirectional(contest: Contest, weights: list[Array]) -> dict[Key, Contender]:
    x = tf.constant(contest.inputs())
    units = contest.shape.units
    layers = {
        "Keras": keras.layers.Bidirectional(keras.layers.GRU(units, return_sequences=True)),
        "keras_gru": keras.layers.Bidirectional(GRU(units, return_sequences=True)),
        "GRUEncoder": GRUEncoder(units, bidirectional=True, return_sequences=True),
    }
    found: dict[Key, Contender] = {}
    for name, layer in layers.items():
        layer.build(x.shape)
        layer.set_weights(weights)
        against = None if name == "Keras" else "Keras"
        found["training", name] = _training(layer, (x,), against=against)
    return found


def _launch(contest: Contest, _: list[Array]) -> dict[Key, Contender]:
    x = tf.constant(contest.inputs())
    graph = tf.function(lambda x: x + 1, autograph=False)
    compiled = tf.function(lambda x: x + 1, autograph=False, jit_compile=True)
    return {
        ("launch", "TensorFlow"): Contender(lambda: graph(x), lambda: graph(x).numpy()),
        ("launch", "TensorFlow jit"): Contender(
            lambda: compiled(x), lambda: compiled(x).numpy(), "TensorFlow"
        ),
    }


def _built(name: str, contest: Contest, weights: list[Array]) -> Any:
    layer = _LAYERS[name](contest.shape.units, return_sequences=True, return_state=True)
    layer.build((contest.shape.batch, None, contest.shape.features))
    layer.set_weights(weights)
    return layer


def _inference(
    layer: Any, inputs: tuple[Any, ...], jit: bool = False, against: str | None = None
) -> Contender:
    @tf.function(jit_compile=jit or None, autograph=False)
    def infer(x: Any, mask: Any = None) -> Any:
        return layer(x, mask=mask, training=False)[0]

    return Contender(
        lambda: infer(*inputs), checked(layer, lambda: infer(*inputs).numpy()), against
    )


def _training(
    layer: Any, inputs: tuple[Any, ...], jit: bool = False, against: str | None = None
) -> Contender:
    @tf.function(jit_compile=jit or None, autograph=False)
    def train(x: Any, mask: Any = None) -> Any:
        with tf.GradientTape() as tape:
            results = tf.nest.flatten(layer(x, mask=mask, training=True))
            loss = tf.add_n([tf.reduce_sum(result * result) for result in results])
        return tape.gradient(loss, [variable.value for variable in layer.trainable_variables])

    def gradients() -> Any:
        return [gradient.numpy() for gradient in train(*inputs)]

    return Contender(lambda: train(*inputs), checked(layer, gradients), against)


def _export(name: str, contest: Contest, weights: list[Array], x: Any) -> Contender:
    """The layer after `Model.export`, loaded and called the way TF Serving does."""
    layer = _LAYERS[name](contest.shape.units, return_sequences=True)
    model = keras.Sequential([keras.Input((None, contest.shape.features)), layer])
    layer.set_weights(weights)
    graph = tf.Graph()
    session = tf.compat.v1.Session(graph=graph)
    with tempfile.TemporaryDirectory() as folder:
        model.export(folder, verbose=False)
        with graph.as_default():
            loaded = tf.compat.v1.saved_model.load(session, ["serve"], folder)
    signature = loaded.signature_def["serving_default"]
    (feed,) = (tensor.name for tensor in signature.inputs.values())
    (fetch,) = (tensor.name for tensor in signature.outputs.values())
    call = session.make_callable(fetch, feed_list=[feed])
    sequences = x.numpy()
    return Contender(
        lambda: call(sequences),
        checked(layer, lambda: call(sequences), "plain"),
        None if name == "Keras" else "Keras export",
        close=session.close,
    )
