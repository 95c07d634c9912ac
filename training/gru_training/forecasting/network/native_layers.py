"""The layers of this folder in ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gru_training.forecasting.network.feedback_gru import FeedbackGRU
from gru_training.forecasting.network.segment_gru import SegmentGRU
from gru_training.forecasting.network.tensor_sum import TensorSum
from gru_training.forecasting.network.window_linear import WindowLinear
from gru_training.forecasting.network.window_normalisation import EPSILON, WindowNormalisation
from gru_training.native.gru_steps import add_projection, add_step, standard_weights
from keras_gru.convert.onnx_graph import OnnxGraph, Value, float32
from keras_gru.convert.onnx_gru import run_gru


def add_normalisation(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    """`WindowNormalisation`: the normalised history, its level and its spread."""
    history, axis = values[0].name, graph.constant([1])
    end = graph.constant([np.iinfo(np.int64).max])
    last = graph.add("Slice", history, graph.constant([-1]), end, axis)
    spread = graph.add("Add", graph.add("Sub", last, last), graph.constant(float32(1)))
    if layer.kind == "difference":
        first = graph.add("Slice", history, graph.constant([0]), axis, axis)
        earlier = graph.add("Slice", history, graph.constant([0]), graph.constant([-1]), axis)
        before = graph.add("Concat", first, earlier, axis=1)
        return [Value(n, 3) for n in (graph.add("Sub", history, before), last, spread)]
    level = graph.add("Sub", last, last)
    if layer.kind == "last":
        level = last
    elif layer.kind == "reversible":
        level = graph.add("ReduceMean", history, axes=[1], keepdims=1)
        gap = graph.add("Sub", history, level)
        variance = graph.add("ReduceMean", graph.add("Mul", gap, gap), axes=[1], keepdims=1)
        spread = graph.add("Sqrt", graph.add("Add", variance, graph.constant(float32(EPSILON))))
    normalised = graph.add("Div", graph.add("Sub", history, level), spread)
    return [Value(name, 3) for name in (normalised, level, spread)]


def add_segment_gru(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    """`SegmentGRU`: the node over the segments, then one step for each query."""
    weights = standard_weights(layer.encoder)
    (run,) = run_gru(graph, [layer.encoder], values[0], [None])
    U = layer.units
    h = graph.add("Reshape", run.state, graph.constant([-1, layer.channels, 1, U]))
    queries = float32(layer._queries()) @ weights.kernel + weights.input_bias  # (K, M, 3U)
    states = add_step(graph, weights, graph.constant(float32(queries), "queries"), h)
    shape = graph.constant([-1, layer.output_segments, U])
    return [Value(graph.add("Reshape", states, shape), 3)]


def add_feedback_gru(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    """`FeedbackGRU`: a loop, whose body is one step."""
    state, first = (value.name for value in values)
    K, Q = layer.targets, layer.outputs
    weights = standard_weights(layer.cell)
    body = graph.inner()
    body.input("iteration", "int64", ())
    more = body.input("more", "bool", ())
    h = body.input("h", "float32", (None, layer.units))
    fed = body.input("fed", "float32", (None, K))
    h = add_step(body, weights, add_projection(body, weights, fed), h)
    answer = body.add("MatMul", h, body.weight(layer.head.kernel))
    answer = body.add("Add", answer, body.weight(layer.head.bias))
    answer = body.add("Reshape", answer, body.constant([-1, K, Q]))
    back = body.add("Gather", answer, body.constant(np.int64(layer.fed_back)), axis=2)
    body.output("more_after", more, "bool", ())
    body.output("h_after", h, "float32", (None, layer.units))
    body.output("fed_after", back, "float32", (None, K))
    body.output("answer", answer, "float32", (None, K, Q))
    steps, go = graph.constant(np.int64(layer.steps)), graph.constant(np.bool_(True))
    *_, answers = graph.add(
        "Loop", steps, go, state, first, count=3, name=layer.name, body=body.graph("step")
    )
    return [Value(graph.add("Transpose", answers, perm=[1, 0, 2, 3]), 4)]


def add_window_linear(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    """`WindowLinear`."""
    history, axis = values[0].name, graph.constant([1])
    end = graph.constant([np.iinfo(np.int64).max])
    read = graph.add("Slice", history, graph.constant([-layer.lookback]), end, axis)
    places = graph.constant(np.array(layer.targets, np.int64))
    read = graph.add("Gather", read, places, axis=2)  # (B, L, K)
    last = graph.add("Slice", read, graph.constant([-1]), end, axis)
    columns = graph.add("Transpose", graph.add("Sub", read, last), perm=[2, 0, 1])  # (K, B, L)
    ahead = graph.add("MatMul", columns, graph.weight(layer.kernel), name=layer.name)
    ahead = graph.add("Transpose", ahead, perm=[1, 2, 0])
    kept = graph.add("Mul", last, graph.constant(float32(layer.share)))
    name = graph.add("Unsqueeze", graph.add("Add", ahead, kept), graph.constant([3]))
    return [Value(name, 4)]


def add_sum(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:  # noqa: ARG001
    """`TensorSum`."""
    x, y = values
    return [Value(graph.add("Add", x.name, y.name), max(x.rank, y.rank))]


WRITERS = {
    FeedbackGRU: add_feedback_gru,
    SegmentGRU: add_segment_gru,
    TensorSum: add_sum,
    WindowLinear: add_window_linear,
    WindowNormalisation: add_normalisation,
}
"""By kind of layer, beside `keras_gru.convert.onnx_layers.WRITERS`."""
