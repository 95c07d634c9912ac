"""`SeriesPreprocessor` in ONNX: raw windows to what a network reads, and its answers back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keras_gru.convert.onnx_graph import BOOL, DOUBLE, END, FLOAT, INT32, INT64, OnnxGraph, float32
from training.forecasting.preprocessor import LARGEST_LOGARITHM, SeriesPreprocessor
from training.forecasting.scores.conformal import MEDIAN


class SeriesGraph:
    """Adds what the preprocessor does to graphs.

    Args:
        preprocessor: Of the run, without inputs that are known of the steps ahead.
    """

    def __init__(self, preprocessor: SeriesPreprocessor) -> None:
        self._preprocessor = preprocessor

    def standardised(self, graph: OnnxGraph, history: str) -> str:
        """Filled and standardised, of raw windows (B, T, C); whole ones take no further step."""
        missing = graph.add("IsNaN", history)
        some = graph.add("ReduceMax", graph.add("Cast", missing, to=INT32), keepdims=0)
        gaps, whole = graph.inner(), graph.inner()
        filled = self.scaled(gaps, self._filled(gaps, history, missing))
        empty = gaps.add("IsNaN", filled)
        filled = gaps.add("Where", empty, gaps.constant(float32(0)), filled)
        shape = (None, None, len(self._preprocessor.mean))
        gaps.output("filled", filled, "float32", shape)
        whole.output("as_it_is", self.scaled(whole, history), "float32", shape)
        return str(
            graph.add(
                "If",
                graph.add("Cast", some, to=BOOL),
                then_branch=gaps.graph("gaps"),
                else_branch=whole.graph("whole"),
            )
        )

    def _filled(self, graph: OnnxGraph, history: str, missing: str) -> str:
        """The value at t is the n-th seen one, n being how many were seen until t, at least one."""
        columns = graph.add("Transpose", history, perm=[0, 2, 1])  # (B, C, T)
        gone = graph.add("Cast", graph.add("Transpose", missing, perm=[0, 2, 1]), to=INT64)
        steps = graph.add("Shape", columns, start=2, end=3)
        zero, one = graph.constant(np.int64(0)), graph.constant(np.int64(1))
        place = graph.add("Range", zero, graph.add("Squeeze", steps), one)
        late = graph.add("Add", place, graph.add("Mul", gone, steps))
        _, order = graph.add("TopK", late, steps, count=2, axis=2, largest=0)
        count = graph.add("CumSum", graph.add("Sub", one, gone), graph.constant(np.int64(2)))
        nth = graph.add("Max", graph.add("Sub", count, one), zero)
        source = graph.add("GatherElements", order, nth, axis=2)
        filled = graph.add("GatherElements", columns, source, axis=2)
        return str(graph.add("Transpose", filled, perm=[0, 2, 1]))

    def ended(self, graph: OnnxGraph, history: str, lookback: int) -> str:
        """Which targets (B, 1, K) have no value in the last steps of a raw history (B, T, C)."""
        start, end, axis = (graph.constant([place]) for place in (-lookback, END, 1))
        read = graph.add("Slice", history, start, end, axis)
        targets = graph.constant(np.array(self._preprocessor.targets, np.int64))
        missing = graph.add("IsNaN", graph.add("Gather", read, targets, axis=2))
        every = graph.add("ReduceMin", graph.add("Cast", missing, to=INT32), axes=[1], keepdims=1)
        return str(graph.add("Cast", every, to=BOOL))

    def scaled(self, graph: OnnxGraph, values: str) -> str:
        """On the scale of the network, NaN as it is."""
        logarithmic = self._preprocessor.logarithmic
        if logarithmic.any():
            known = graph.add("Not", graph.add("IsNaN", values))
            takes = graph.add("And", known, graph.constant(logarithmic))
            values = graph.add("Where", takes, add_log1p(graph, values), values)
        level = graph.constant(float32(self._preprocessor.mean))
        spread = graph.constant(float32(self._preprocessor.deviation))
        return str(graph.add("Div", graph.add("Sub", values, level), spread))

    def restored(self, graph: OnnxGraph, values: str, axes: int) -> str:
        """In raw units; the targets are that many axes from the end."""
        columns = list(self._preprocessor.targets)
        shape = (len(columns), *(1,) * (axes - 1))
        spread = float32(self._preprocessor.deviation[columns]).reshape(shape)
        level = float32(self._preprocessor.mean[columns]).reshape(shape)
        scaled = graph.add("Mul", values, graph.constant(spread))
        raw = str(graph.add("Add", scaled, graph.constant(level)))
        logarithmic = self._preprocessor.logarithmic[columns]
        if not logarithmic.any():
            return raw
        mask = graph.constant(logarithmic.reshape(shape))
        return str(graph.add("Where", mask, add_expm1(graph, raw), raw))


def add_log1p(graph: OnnxGraph, values: str) -> str:
    """log(1 + max(x, 0)); ONNX has no operator for it that keeps the digits of small values."""
    positive = graph.add("Max", values, graph.constant(float32(0)))
    wide = graph.add("Cast", positive, to=DOUBLE)
    one = graph.constant(np.float64(1))
    return str(graph.add("Cast", graph.add("Log", graph.add("Add", wide, one)), to=FLOAT))


def add_expm1(graph: OnnxGraph, values: str) -> str:
    """max(exp(x) - 1, 0), of numbers of which float32 has the exponential."""
    bounded = graph.add("Min", values, graph.constant(float32(LARGEST_LOGARITHM)))
    power = graph.add("Exp", graph.add("Cast", bounded, to=DOUBLE))
    less = graph.add("Sub", power, graph.constant(np.float64(1)))
    less = graph.add("Max", less, graph.constant(np.float64(0)))
    return str(graph.add("Cast", less, to=FLOAT))


def add_quantiles(
    graph: OnnxGraph, answers: str, offsets: np.ndarray, levels: Sequence[float]
) -> str:
    """`training.forecasting.scores.conformal.quantiles` of (B, H, K, 1) or (B, H, K, Q)."""
    middle = list(levels).index(MEDIAN)
    shifted = graph.add("Add", answers, graph.constant(float32(offsets), "offsets"))
    if len(levels) == 1:
        return str(shifted)
    bounds = list(graph.add("Split", shifted, count=len(levels), axis=3))
    for q in reversed(range(middle)):
        bounds[q] = graph.add("Min", bounds[q], bounds[q + 1])
    for q in range(middle + 1, len(bounds)):
        bounds[q] = graph.add("Max", bounds[q], bounds[q - 1])
    return str(graph.add("Concat", *bounds, axis=3))
