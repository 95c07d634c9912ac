"""`SeriesPreprocessor` in ONNX: raw windows to what a network reads, and its answers back."""

from __future__ import annotations

import numpy as np

from keras_gru.convert.onnx_graph import OnnxGraph, float32
from training.forecasting.preprocessor import SeriesPreprocessor

_INT32, _INT64, _BOOL = 6, 7, 9  # onnx.TensorProto's numbers


class SeriesGraph:
    """Adds what the preprocessor does to graphs.

    Args:
        preprocessor: Of the run.

    Raises:
        ValueError: It takes logarithms, or known inputs.
    """

    def __init__(self, preprocessor: SeriesPreprocessor) -> None:
        if preprocessor.logarithmic.any():
            raise ValueError("columns on a logarithmic scale are left to TensorFlow")
        if preprocessor.known is not None:
            raise ValueError("known inputs are left to TensorFlow")
        self._preprocessor = preprocessor

    def standardised(self, graph: OnnxGraph, history: str) -> str:
        """Filled and standardised, of raw windows (B, T, C); whole ones take no further step."""
        missing = graph.add("IsNaN", history)
        some = graph.add("ReduceMax", graph.add("Cast", missing, to=_INT32), keepdims=0)
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
                graph.add("Cast", some, to=_BOOL),
                then_branch=gaps.graph("gaps"),
                else_branch=whole.graph("whole"),
            )
        )

    def _filled(self, graph: OnnxGraph, history: str, missing: str) -> str:
        """The value at t is the n-th seen one, n being how many were seen until t, at least one."""
        columns = graph.add("Transpose", history, perm=[0, 2, 1])  # (B, C, T)
        gone = graph.add("Cast", graph.add("Transpose", missing, perm=[0, 2, 1]), to=_INT64)
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

    def scaled(self, graph: OnnxGraph, values: str) -> str:
        """On the scale of the network, NaN as it is."""
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
        return str(graph.add("Add", scaled, graph.constant(level)))
