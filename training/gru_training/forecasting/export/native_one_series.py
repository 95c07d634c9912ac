"""The signature `one_series` as a graph of ONNX: `OneSeries` again."""

from __future__ import annotations

from typing import Any

import numpy as np

from gru_training.forecasting.export.native_series import (
    SeriesGraph,
    add_powers,
    add_quantiles,
    add_roots,
)
from gru_training.forecasting.export.one_series import OneSeries
from gru_training.forecasting.network import native_layers
from gru_training.forecasting.preprocessor import SeriesPreprocessor
from gru_training.forecasting.scores.conformal import MEDIAN
from gru_training.native.operations import ALL_OPERATIONS
from keras_gru.convert.onnx_graph import END, FLOAT, OnnxGraph, Value, float32
from keras_gru.convert.onnx_layers import WRITERS
from keras_gru.convert.onnx_model import add_model

_WRITERS = {**WRITERS, **native_layers.WRITERS}


def one_series_graph(one: OneSeries) -> Any:
    """From `history` (B, T) to `forecast` (B, H) and `quantiles` (B, H, Q).

    Raises:
        ValueError: Something in the model has no equivalent.
    """
    graph = OnnxGraph()
    read = _read(graph, graph.input("history", "float32", (None, None)), one.lookback)
    if one.exponent is not None:
        powers = add_powers(graph, read, one.exponent)
        read = graph.add("Where", graph.add("IsNaN", read), read, powers)
    mean, deviation = _scale(graph, read)
    own = graph.add("Div", graph.add("Sub", read, mean), deviation)
    as_it_is = SeriesPreprocessor(np.zeros(1), np.ones(1), (0,))
    last = graph.constant([2])
    window = SeriesGraph(as_it_is).standardised(graph, graph.add("Unsqueeze", own, last))
    (value,) = add_model(graph, one.model, [Value(window, 3)], _WRITERS, ALL_OPERATIONS)
    served = add_quantiles(graph, value.name, one.offsets, one.levels)
    served = graph.add("Squeeze", served, last)  # (B, H, Q)
    spread, level = (graph.add("Unsqueeze", each, last) for each in (deviation, mean))
    raw = graph.add("Add", graph.add("Mul", served, spread), level)
    if one.exponent is not None:
        raw = add_roots(graph, raw, one.exponent)
    middle = graph.constant(np.int64(one.levels.index(MEDIAN)))
    H = one.offsets.shape[0]
    graph.output("forecast", graph.add("Gather", raw, middle, axis=2), "float32", (None, H))
    graph.output("quantiles", raw, "float32", (None, H, len(one.levels)))
    return graph.model("one_series")


def _read(graph: OnnxGraph, history: str, lookback: int) -> str:
    """The last steps (B, L), missing ones before the first."""
    rows = graph.add("Shape", history, start=0, end=1)
    size = graph.add("Concat", rows, graph.constant([lookback]), axis=0)
    before = graph.add("Expand", graph.constant(float32(np.nan)), size)
    longer = graph.add("Concat", before, history, axis=1)
    start, end, axis = (graph.constant([place]) for place in (-lookback, END, 1))
    return str(graph.add("Slice", longer, start, end, axis))


def _scale(graph: OnnxGraph, read: str) -> tuple[str, str]:
    """Mean and deviation (B, 1) of the values that there are, as the signature has them."""
    zero, one, axis = graph.constant(float32(0)), graph.constant(float32(1)), graph.constant([1])
    missing = graph.add("IsNaN", read)
    known = graph.add("Cast", graph.add("Not", missing), to=FLOAT)
    count = graph.add("ReduceSum", known, axis, keepdims=1)
    there = graph.add("Where", missing, zero, read)
    mean = graph.add("Div", graph.add("ReduceSum", there, axis, keepdims=1), count)
    gap = graph.add("Where", missing, zero, graph.add("Sub", read, mean))
    squares = graph.add("ReduceSum", graph.add("Mul", gap, gap), axis, keepdims=1)
    deviation = graph.add("Sqrt", graph.add("Div", squares, count))
    size = graph.add("Add", one, graph.add("Abs", mean))
    least = graph.add("Mul", size, graph.constant(float32(1e-6)))
    varies = graph.add("Greater", deviation, least)
    return mean, str(graph.add("Where", varies, deviation, one))
