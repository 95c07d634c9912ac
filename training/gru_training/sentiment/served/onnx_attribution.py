"""Integrated gradients of a text classifier as a graph of ONNX.

`gru_training.sentiment.network.steps.Attribution` takes them by TensorFlow's gradients. ONNX has
none, so the way back is written out here: through the last layer, the pooling and the GRUs. All
points of the line from zero vectors to the words' vectors are rows of one batch, which has the two
ends as well: what the GRUs answer to the text, and to as many words without meaning.

P points, T tokens, D numbers in a word's vector, F features of the last GRUs, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gru_serving.preprocessing.answers import ChooseClass, ChooseLabels, Probabilities
from gru_training.onnx.gru_steps import add_input_gradient
from gru_training.sentiment.network.model import shares_of
from gru_training.sentiment.network.steps import POINTS, directions_of, quadrature
from gru_training.sentiment.served.head import Head
from gru_training.sentiment.served.onnx_pooling import PoolingGraph
from gru_training.words.ngrams import NgramLogits
from gru_training.words.onnx_layers import add_ngram_shares
from keras_gru.convert.onnx_graph import FLOAT, INT64, OnnxGraph, Value, float32
from keras_gru.convert.onnx_gru import run_gru


class _Read(NamedTuple):
    """A GRU of one direction, and what it has read."""

    layer: Any
    x: str
    states: str


def add_attribution(
    graph: OnnxGraph, model: Any, layers: Sequence[Any], head: Head, embedded: Value, ids: str
) -> None:
    """Add the signature's numbers to a graph, as outputs.

    Args:
        graph: Graph to add to; gets the input `place` (1,) int64, the class to explain, below 0
            for the one answered, unless there is a number only.
        model: The classifier, from word ids (B, T) to logits.
        layers: Layers of GRUs of the classifier, in order.
        head: Head of the run.
        embedded: The words' vectors (1, T, D), with their mask.
        ids: Word ids (1, T).
    """
    places, areas = quadrature(POINTS)
    along = float32([*places, 1, 0])[:, np.newaxis, np.newaxis]
    weighed = float32([*areas, 0, 0])[:, np.newaxis]
    line = graph.add("Mul", embedded.name, along)  # (P + 2, T, D)
    mask = graph.add("Expand", embedded.mask, graph.constant([len(along), 1]))
    graph.prefixes.add(mask)
    kept = graph.add("Unsqueeze", graph.add("Cast", mask, to=FLOAT), [2])
    read, x = _read(graph, layers, Value(line, 3, mask), kept)
    pooling = PoolingGraph(graph, model.get_layer("pooling"), x, mask)
    dense = model.get_layer("logits")
    gru = graph.add("MatMul", pooling.pool(), graph.weight(dense.kernel))
    gru = graph.add("Add", gru, graph.weight(dense.bias))
    share, ngram_share = map(float32, shares_of(model))
    text, nothing = (
        graph.add("Mul", graph.add("Gather", gru, [at], axis=0), share) for at in (-2, -1)
    )
    counted = [layer for layer in model.layers if isinstance(layer, NgramLogits)]
    shares_of_words = None
    if counted:
        long_ids = graph.add("Cast", ids, to=INT64)
        found, shares_of_words = add_ngram_shares(graph, counted[0], long_ids)
        text = graph.add("Add", text, graph.add("Mul", found, ngram_share))
        alone = graph.add("Mul", graph.weight(counted[0].bias), ngram_share)
        nothing = graph.add("Add", nothing, alone)

    place = _add_foremost(graph, head, text)
    if head.kind != "number":
        given = graph.input("place", "int64", (None,))
        place = graph.add("Where", graph.add("Less", given, [0]), place, given)
    table = float32(head.contrast(np.arange(len(head.names))))
    weights = graph.add("Gather", table, place, axis=0)  # (1, C)

    pooled = graph.add("MatMul", weights, graph.add("Transpose", graph.weight(dense.kernel)))
    slopes = _gradient(graph, read, pooling.gradient(graph.add("Mul", pooled, weighed)), kept)
    slopes = graph.add("ReduceSum", slopes, [0], keepdims=1)  # (1, T, D)
    scores = graph.add("ReduceSum", graph.add("Mul", embedded.name, slopes), [2], keepdims=0)
    scores = graph.add("Mul", scores, share)
    if shares_of_words:
        scores = graph.add("Add", scores, graph.add("Mul", shares_of_words(weights), ngram_share))
    scores = graph.add("Mul", scores, graph.add("Cast", embedded.mask, to=FLOAT))

    graph.output("attribution", scores, "float32", (None, None))
    for name, logits in (("value", text), ("baseline", nothing)):
        total = graph.add("ReduceSum", graph.add("Mul", logits, weights), [1], keepdims=0)
        total = graph.add("Add", total, float32(head.middle))
        graph.output(name, total, "float32", (None,))
    if head.kind != "number":
        graph.output("explained", place, "int64", (None,))


def _read(
    graph: OnnxGraph, layers: Sequence[Any], x: Value, kept: str
) -> tuple[list[list[_Read]], str]:
    """Run the layers; what each of their directions read, and the last states (B, T, F)."""
    read = []
    for layer in layers:
        of_layer = []
        for one in directions_of(layer):
            (run,) = run_gru(graph, [one], x, [None])
            of_layer.append(_Read(one, x.name, graph.add("Mul", run.outputs, kept)))
        read.append(of_layer)
        states = [one.states for one in of_layer]
        name = states[0] if len(states) == 1 else graph.add("Concat", *states, axis=-1)
        x = Value(name, 3, x.mask)
    return read, x.name


def _gradient(graph: OnnxGraph, read: Sequence[Sequence[_Read]], d_states: str, kept: str) -> str:
    """Go back through the layers, from the gradient of the last states to that of the vectors."""
    for of_layer in reversed(read):
        d_states = graph.add("Mul", d_states, kept)
        count = len(of_layer)
        parts = graph.add("Split", d_states, count=count, axis=-1) if count > 1 else [d_states]
        gradients = [
            add_input_gradient(graph, one.layer, one.x, one.states, part)
            for one, part in zip(of_layer, parts, strict=True)
        ]
        d_states = gradients[0] if count == 1 else graph.add("Add", *gradients)
    return d_states


def _add_foremost(graph: OnnxGraph, head: Head, logits: str) -> str:
    """Add `Head.foremost`, int64 (1,)."""
    scores = logits
    if isinstance(head.calibration, Probabilities):
        scores = graph.add("Div", logits, np.float32(head.calibration.temperature))
        if head.calibration.function == "softmax":
            scores = graph.add("Softmax", scores, axis=-1)
        else:
            scores = graph.add("Sigmoid", scores)
    value, choice = scores, head.choice
    if isinstance(choice, ChooseLabels):
        applies = graph.add("GreaterOrEqual", scores, float32(choice.thresholds))
        value = graph.add("Add", scores, graph.add("Cast", applies, to=FLOAT))
    elif isinstance(choice, ChooseClass):
        if choice.utilities:
            value = graph.add("MatMul", scores, float32(choice.utilities))
        if choice.thresholds:
            eligible = graph.add("GreaterOrEqual", scores, float32(choice.thresholds))
            count = graph.add("ReduceSum", graph.add("Cast", eligible, to=INT64), [1], keepdims=1)
            eligible = graph.add("Or", eligible, graph.add("Equal", count, [0]))
            value = graph.add("Where", eligible, value, float32(-np.inf))
    return str(graph.add("ArgMax", value, axis=-1, keepdims=0))
