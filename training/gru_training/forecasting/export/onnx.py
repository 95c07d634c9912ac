"""The networks of a forecaster for ONNX Runtime, on the standardised scale."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from gru_training.forecasting.config import ForecasterConfig, ForecastShape
from gru_training.forecasting.export.one_series import OneSeries
from gru_training.forecasting.layers import (
    EPSILON,
    SegmentGRU,
    TensorSum,
    WindowLinear,
    WindowNormalisation,
)
from gru_training.onnx.gru_steps import add_opened, add_step, standard_weights
from gru_training.onnx.operations import ALL_OPERATIONS
from keras_gru.convert.onnx_graph import (
    END,
    FLOAT,
    OnnxGraph,
    Value,
    float32,
)
from keras_gru.convert.onnx_gru import run_gru
from keras_gru.convert.onnx_layers import WRITERS
from keras_gru.convert.onnx_model import add_model


def add_normalisation(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    """Add a `WindowNormalisation`; returns the normalised history, its level and its spread."""
    history, axis = values[0].name, graph.constant([1])
    end = graph.constant([END])
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
    """Add a `SegmentGRU`: the node over the segments, then one step for each query."""
    weights = standard_weights(layer.encoder)
    (run,) = run_gru(graph, [layer.encoder], values[0], [None])
    U = layer.units
    h = graph.add("Reshape", run.state, graph.constant([-1, layer.channels, 1, U]))
    queries = float32(layer._queries()) @ weights.kernel + weights.input_bias  # (K, M, 3U)
    states = add_step(graph, weights, graph.constant(float32(queries), "queries"), h)
    shape = graph.constant([-1, layer.output_segments, U])
    return [Value(graph.add("Reshape", states, shape), 3)]


def add_window_linear(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    """Add a `WindowLinear` to the graph."""
    history, axis = values[0].name, graph.constant([1])
    end = graph.constant([END])
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
    """Add a `TensorSum` to the graph."""
    x, y = values
    return [Value(graph.add("Add", x.name, y.name), max(x.rank, y.rank))]


_WRITERS = {
    **WRITERS,
    SegmentGRU: add_segment_gru,
    TensorSum: add_sum,
    WindowLinear: add_window_linear,
    WindowNormalisation: add_normalisation,
}
"""Functions that write a layer as ONNX, by its class."""


class ForecastingGraphs:
    """Writes the networks of one forecaster.

    Args:
        model: Model from standardised windows to forecasts, (B, L, C) to (B, H, K, Q or 1).
        shown: The network, within it or itself, and the shape that it was built with; None: no
            network has a part in the forecasts.
        config: Settings of the network.
        shape: Shape of the model.
        one_series: Forecaster of series that the model never saw, if there is one.
    """

    def __init__(
        self,
        model: keras.Model,
        shown: tuple[keras.Model, ForecastShape] | None,
        config: ForecasterConfig,
        shape: ForecastShape,
        one_series: OneSeries | None = None,
    ) -> None:
        self._model, self._shape, self._one_series = model, shape, one_series
        self._network, self._read = shown if shown is not None else (model, shape)
        self._config = config.for_series(
            self._read.lookback, self._read.lookback, len(self._read.targets)
        )
        self._streams = shown is not None and config.streams
        self._rows = len(shape.targets) if config.channel_independent else 1

    def forecast(self) -> Any:
        """Write the network from `standardised` (B, L or T, C) to `answers` (B, H, K, Q or 1).

        Raises:
            ValueError: Something in the model has no equivalent.
        """
        if not self._streams:
            return self._whole(self._model, "standardised", self._shape.channels)
        graph = OnnxGraph()
        read = graph.input("standardised", "float32", (None, None, self._shape.channels))
        self._output(graph, self._last_answer(graph, read))
        return graph.model("forecast")

    def one_series(self) -> Any:
        """Write the network from `window` (B, L, 1) to `answers` (B, H, 1, Q or 1).

        Raises:
            ValueError: Something in the model has no equivalent.
        """
        assert self._one_series is not None
        return self._whole(self._one_series.model, "window", 1)

    def _whole(self, model: keras.Model, name: str, channels: int) -> Any:
        graph = OnnxGraph()
        read = graph.input(name, "float32", (None, int(model.input_shape[1]), channels))
        (value,) = add_model(graph, model, [Value(read, 3)], _WRITERS, ALL_OPERATIONS)
        graph.output("answers", value.name, "float32", (None, *model.output_shape[1:]))
        return graph.model("forecast")

    def gates(self) -> Any:
        """Write the network from `standardised` to the gates and states of each step."""
        graph = OnnxGraph()
        history = read = graph.input("standardised", "float32", (None, None, self._shape.channels))
        if not self._streams and self._read.lookback != self._shape.lookback:
            start, axis = graph.constant([-self._read.lookback]), graph.constant([1])
            read = graph.add("Slice", history, start, graph.constant([END]), axis)
        x = self._inputs(graph, read)
        if self._config.architecture == "segment":
            assert self._config.segment is not None
            x = self._segments(graph, x, self._config.segment)
        *lower, top = self._grus
        opened = add_opened(graph, top, self._through(graph, lower, x))
        shown = [self._by_row(graph, values) for values in opened]
        U = self._config.units
        for name, values in zip(("update_gate", "reset_gate", "state"), shown, strict=True):
            graph.output(name, values, "float32", (None, None, self._rows, U))
        if self._streams:
            levels = history if self._config.normalisation == "difference" else None
            answers = self._answer(graph, shown[2], levels)  # (B, N, H, K, Q)
            K, Q = len(self._shape.targets), self._outputs
            graph.output("forecasts", answers, "float32", (None, None, self._shape.horizon, K, Q))
        return graph.model("gates")

    def step(self) -> Any:
        """Write the network from `tick` (B, C), NaN = missing, and `state` to the next ones."""
        graph = OnnxGraph()
        C, U = self._shape.channels, self._config.units
        width, layers = self._rows * U, self._config.layers
        size = layers * width + 2 * C
        tick = graph.input("tick", "float32", (None, C))
        carried = graph.input("state", "float32", (None, size))
        zero = graph.constant(float32(0))
        sizes = graph.constant([*[width] * layers, C, C])
        *before, last, seen = graph.add("Split", carried, sizes, count=layers + 2, axis=1)
        missing = graph.add("IsNaN", tick)
        value = graph.add("Where", missing, last, tick)
        difference = self._config.normalisation == "difference"
        read = value
        if difference:
            begun = graph.add("Greater", seen, zero)
            read = graph.add("Where", begun, graph.add("Sub", value, last), zero)
        axis = graph.constant([1])
        x = self._by_target(graph, graph.add("Unsqueeze", read, axis))
        afterwards = []
        for gru, h in zip(self._grus, before, strict=True):
            h = graph.add("Reshape", h, graph.constant([-1, U]))
            (run,) = run_gru(graph, [gru], Value(x, 3), [h])
            afterwards.append(graph.add("Reshape", run.state, graph.constant([-1, width])))
            x = graph.add("Unsqueeze", run.state, axis)
        states = self._by_row(graph, x)
        levels = graph.add("Unsqueeze", value, axis) if difference else None
        self._output(graph, graph.add("Squeeze", self._answer(graph, states, levels), axis))
        known = graph.add("Cast", graph.add("Not", missing), to=FLOAT)
        seen = graph.add("Max", seen, known)
        after = graph.add("Concat", *afterwards, value, seen, axis=1)
        graph.output("after", after, "float32", (None, size))
        return graph.model("step")

    def _output(self, graph: OnnxGraph, answers: str) -> None:
        H, K = self._shape.horizon, len(self._shape.targets)
        graph.output("answers", answers, "float32", (None, H, K, self._outputs))

    def _inputs(self, graph: OnnxGraph, history: str) -> str:
        layer = self._network.get_layer("normalisation")
        if type(layer) not in _WRITERS:
            raise ValueError(f"layer {layer.name!r} cannot be written as ONNX")
        normalised, *_ = _WRITERS[type(layer)](graph, layer, [Value(history, 3)], ())
        return self._by_target(graph, normalised.name)

    def _by_target(self, graph: OnnxGraph, x: str) -> str:
        """Arrange (B, T, C) as the GRU reads it, (B·R, T, D)."""
        if not self._config.channel_independent:
            return x
        columns = graph.add("Transpose", self._targets(graph, x), perm=[0, 2, 1])
        steps = graph.add("Shape", columns, start=2, end=3)
        shape = graph.add("Concat", graph.constant([-1]), steps, graph.constant([1]), axis=0)
        return str(graph.add("Reshape", columns, shape))

    def _targets(self, graph: OnnxGraph, x: str) -> str:
        places = graph.constant(np.array(self._shape.targets, np.int64))
        return str(graph.add("Gather", x, places, axis=2))

    def _segments(self, graph: OnnxGraph, x: str, width: int) -> str:
        """Embed (B·R, T, D) as segments (B·R, N, U)."""
        count = self._read.lookback // width
        start, axis = graph.constant([-count * width]), graph.constant([1])
        x = graph.add("Slice", x, start, graph.constant([END]), axis)
        features = 1 if self._config.channel_independent else self._shape.channels
        x = graph.add("Reshape", x, graph.constant([-1, count, width * features]))
        layer = self._network.get_layer("embedding")
        (value,) = _WRITERS[type(layer)](graph, layer, [Value(x, 3)], ())
        return value.name

    @property
    def _grus(self) -> list[Any]:
        """List the GRUs from the lowest to the top one."""
        layer = self._network.get_layer
        lower = [layer(f"gru_{number}") for number in range(1, self._config.layers)]
        segment = self._config.architecture == "segment"
        return [*lower, layer("segment_gru").encoder if segment else layer("gru")]

    @staticmethod
    def _through(graph: OnnxGraph, grus: Sequence[Any], x: str) -> Value:
        """Compute the outputs (B, N, U) of stacked GRUs."""
        for gru in grus:
            (run,) = run_gru(graph, [gru], Value(x, 3), [None])
            x = run.outputs
        return Value(x, 3)

    def _by_row(self, graph: OnnxGraph, x: str) -> str:
        """Reshape (B·R, N, U) to (B, N, R, U)."""
        steps = graph.add("Shape", x, start=1, end=2)
        front = graph.constant([-1, self._rows])
        shape = graph.add("Concat", front, steps, graph.constant([self._config.units]), axis=0)
        return str(graph.add("Transpose", graph.add("Reshape", x, shape), perm=[0, 2, 1, 3]))

    @property
    def _outputs(self) -> int:
        """The Q of the network's own answers."""
        return int(self._network.outputs[0].shape[-1])

    def _last_answer(self, graph: OnnxGraph, history: str) -> str:
        """Compute the answer (B, H, K, Q) to a whole history, for a model that streams."""
        *lower, top = self._grus
        inputs = self._through(graph, lower, self._inputs(graph, history))
        (run,) = run_gru(graph, [top], inputs, [None])
        axis = graph.constant([1])
        states = self._by_row(graph, graph.add("Unsqueeze", run.state, axis))
        levels = None
        if self._config.normalisation == "difference":
            end = graph.constant([END])
            levels = graph.add("Slice", history, graph.constant([-1]), end, axis)
        return str(graph.add("Squeeze", self._answer(graph, states, levels), axis))

    def _answer(self, graph: OnnxGraph, states: str, levels: str | None) -> str:
        """Convert (B, N, R, U) to (B, N, H, K, Q), on the levels (B, N, C) if given."""
        K, H, R = len(self._shape.targets), self._shape.horizon, self._rows
        head = self._network.get_layer("head")
        (value,) = _WRITERS[type(head)](graph, head, [Value(states, 4)], ())
        Q = self._outputs
        front = graph.add("Shape", states, start=0, end=2)
        sizes = graph.add("Concat", front, graph.constant([R, H, K // R, Q]), axis=0)
        answers = graph.add("Reshape", value.name, sizes)
        answers = graph.add("Transpose", answers, perm=[0, 1, 3, 2, 4, 5])
        sizes = graph.add("Concat", front, graph.constant([H, K, Q]), axis=0)
        answers = graph.add("Reshape", answers, sizes)
        if levels is None:
            return str(answers)
        level = graph.add("Unsqueeze", self._targets(graph, levels), graph.constant([2, 4]))
        return str(graph.add("Add", answers, level))
