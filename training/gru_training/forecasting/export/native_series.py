"""`SeriesPreprocessor` in ONNX: raw windows to what a network reads, and its answers back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gru_training.forecasting.power import LARGEST_LOGARITHM
from gru_training.forecasting.preprocessor import SeriesPreprocessor
from gru_training.forecasting.scores.conformal import MEDIAN
from keras_gru.convert.onnx_graph import BOOL, DOUBLE, END, FLOAT, INT32, INT64, OnnxGraph, float32


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
        transformed = self._preprocessor.transformed
        if transformed.any():
            known = graph.add("Not", graph.add("IsNaN", values))
            takes = graph.add("And", known, graph.constant(transformed))
            powers = add_powers(graph, values, self._preprocessor.exponent)
            values = graph.add("Where", takes, powers, values)
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
        transformed = self._preprocessor.transformed[columns]
        if not transformed.any():
            return raw
        mask = graph.constant(transformed.reshape(shape))
        return str(
            graph.add("Where", mask, add_roots(graph, raw, self._preprocessor.exponent), raw)
        )


def add_powers(graph: OnnxGraph, values: str, exponent: float) -> str:
    """`gru_training.forecasting.power.powers`; in float64, to keep the digits of small values."""
    positive = graph.add("Max", values, graph.constant(float32(0)))
    one = graph.constant(np.float64(1))
    found = graph.add("Add", graph.add("Cast", positive, to=DOUBLE), one)
    if exponent:
        share = graph.constant(np.float64(exponent))
        found = graph.add("Sub", graph.add("Pow", found, share), one)
        return str(graph.add("Cast", graph.add("Div", found, share), to=FLOAT))
    return str(graph.add("Cast", graph.add("Log", found), to=FLOAT))


def add_roots(graph: OnnxGraph, values: str, exponent: float) -> str:
    """`gru_training.forecasting.power.roots`."""
    one, nothing = graph.constant(np.float64(1)), graph.constant(np.float64(0))
    logarithms = graph.add("Cast", values, to=DOUBLE)
    if exponent:
        share = graph.constant(np.float64(exponent))
        scaled = graph.add("Mul", graph.add("Max", logarithms, nothing), share)
        logarithms = graph.add("Div", graph.add("Log", graph.add("Add", scaled, one)), share)
    bounded = graph.add("Min", logarithms, graph.constant(np.float64(LARGEST_LOGARITHM)))
    less = graph.add("Sub", graph.add("Exp", bounded), one)
    return str(graph.add("Cast", graph.add("Max", less, nothing), to=FLOAT))


def add_quantiles(
    graph: OnnxGraph, answers: str, offsets: np.ndarray, levels: Sequence[float]
) -> str:
    """`gru_training.forecasting.scores.conformal.quantiles` of (B, H, K, 1) or (B, H, K, Q)."""
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
