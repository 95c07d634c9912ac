"""An exported forecaster for ONNX Runtime: the signatures of `ForecastingSignatures` again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import keras
import numpy as np

from gru_training.forecasting.export.native_checks import ForecastingChecks, one_series_checks
from gru_training.forecasting.export.native_one_series import one_series_graph
from gru_training.forecasting.export.native_series import SeriesGraph, add_quantiles
from gru_training.forecasting.export.one_series import OneSeries
from gru_training.forecasting.network import native_layers
from gru_training.forecasting.network.config import ForecasterConfig, ForecastShape
from gru_training.forecasting.preprocessor import SeriesPreprocessor
from gru_training.forecasting.scores.conformal import MEDIAN
from gru_training.native.gru_steps import add_opened
from gru_training.native.operations import ALL_OPERATIONS
from gru_training.native.signatures import NativeModel, NativeSignature, Step
from keras_gru.convert.onnx_graph import END, FLOAT, INT32, OnnxGraph, Value, float32
from keras_gru.convert.onnx_gru import run_gru
from keras_gru.convert.onnx_layers import WRITERS
from keras_gru.convert.onnx_model import add_model

_WRITERS = {**WRITERS, **native_layers.WRITERS}


class ForecastingNative:
    """Writes the graphs of one forecaster; arguments as of `ForecastingSignatures`."""

    def __init__(
        self,
        model: keras.Model,
        shown: tuple[keras.Model, ForecastShape] | None,
        config: ForecasterConfig,
        shape: ForecastShape,
        preprocessor: SeriesPreprocessor,
        columns: Sequence[str],
        levels: Sequence[float],
        offsets: np.ndarray,
        panel: bool = False,
        one_series: OneSeries | None = None,
    ) -> None:
        self._model, self._shape, self._panel = model, shape, panel
        self._network, self._read = shown if shown is not None else (model, shape)
        self._config = config.for_series(
            self._read.lookback, self._read.lookback, len(self._read.targets)
        )
        self._levels, self._offsets = tuple(levels), offsets
        self._middle = self._levels.index(MEDIAN)
        self._streams = shown is not None and config.streams
        self._opens = shown is not None and config.architecture != "seq2seq"
        alone = shown is None or config.channel_independent
        read = shape.targets if alone else tuple(range(shape.channels))
        self._rows = len(shape.targets) if config.channel_independent else 1
        lookback = None if self._streams else shape.lookback
        self._checks = ForecastingChecks(columns, shape.targets, read, lookback, panel)
        self._one_series = one_series
        self._series = SeriesGraph(preprocessor)

    def by_name(self) -> NativeModel:
        """All signatures, those left to TensorFlow as well."""
        graphs: dict[str, Any] = {}
        signatures, left = {"columns": self._checks.columns()}, dict[str, str]()
        history, answers = self._checks.history, ("forecast", "quantiles")
        writers: dict[str, tuple[Callable[[], Any], Sequence[Step], Sequence[str]]] = {
            "serving_default": (self._forecast, history, answers)
        }
        if (one := self._one_series) is not None:
            writers["one_series"] = (partial(one_series_graph, one), one_series_checks(), answers)
        if self._opens:
            shown = ["end", "update_gate", "reset_gate", "state", "values"]
            shown += ["forecast"] if self._streams else []
            writers["gates"] = (self._gates, history, shown)
        if self._streams:
            checks = self._checks.step(self._state_size)
            writers["step"] = (self._step, checks, (*answers, "after"))
        for name, (write, steps, outputs) in writers.items():
            try:
                graphs[name] = write()
            except ValueError as error:
                left[name] = str(error)
                continue
            named = {"state" if output == "after" else output: output for output in outputs}
            signatures[name] = NativeSignature(name, named, steps)
        if "serving_default" in left:
            left["by_name"] = left["serving_default"]
        else:
            signatures["by_name"] = self._checks.by_name("serving_default")
        return NativeModel(graphs, signatures, left)

    @property
    def _state_size(self) -> int:
        return self._config.layers * self._rows * self._config.units + 2 * self._shape.channels

    def _forecast(self) -> Any:
        graph = OnnxGraph()
        history = graph.input("history", "float32", (None, None, self._shape.channels))
        read = self._prepared(graph, history)
        if self._streams:
            answers = self._last_answer(graph, read)
        else:
            (value,) = add_model(graph, self._model, [Value(read, 3)], _WRITERS, ALL_OPERATIONS)
            answers = value.name
        ended = self._series.ended(graph, history, self._shape.lookback) if self._panel else None
        self._output(graph, answers, ended)
        return graph.model("forecast")

    def _gates(self) -> Any:
        graph = OnnxGraph()
        raw = graph.input("history", "float32", (None, None, self._shape.channels))
        history = read = self._prepared(graph, raw)
        if not self._streams and self._read.lookback != self._shape.lookback:
            start, axis = graph.constant([-self._read.lookback]), graph.constant([1])
            read = graph.add("Slice", history, start, graph.constant([END]), axis)
        x, width = self._inputs(graph, read), 1
        if self._config.architecture == "segment":
            assert self._config.segment is not None
            width = self._config.segment
            x = self._segments(graph, x, width)
        *lower, top = self._grus
        opened = add_opened(graph, top, self._through(graph, lower, x))
        shown = [self._by_row(graph, values) for values in opened]
        U = self._config.units
        for name, values in zip(("update_gate", "reset_gate", "state"), shown, strict=True):
            graph.output(name, values, "float32", (None, None, self._rows, U))
        one, minus = graph.constant(np.int64(1)), graph.constant(np.int64(-1))
        count = graph.add("Squeeze", graph.add("Shape", shown[2], start=1, end=2))
        behind = graph.add("Range", graph.add("Sub", count, one), minus, minus)
        length = graph.add("Squeeze", graph.add("Shape", raw, start=1, end=2))
        end = graph.add("Mul", behind, graph.constant(np.int64(width)))
        end = graph.add("Sub", graph.add("Sub", length, one), end)
        end = graph.add("Expand", end, graph.add("Shape", shown[2], start=0, end=2))
        graph.output("end", graph.add("Cast", end, to=INT32), "int32", (None, None))
        targets = self._targets(graph, history)
        K = len(self._shape.targets)
        graph.output("values", self._series.restored(graph, targets, 1), "float32", (None, None, K))
        if self._streams:
            self._forecasts(graph, shown[2], history)
        return graph.model("gates")

    def _forecasts(self, graph: OnnxGraph, states: str, history: str) -> None:
        """The answer after each step, as the output `forecast` (B, N, H, K)."""
        levels = history if self._config.normalisation == "difference" else None
        answers = self._answer(graph, states, levels)  # (B, N, H, K, Q)
        place = self._middle if self._outputs > 1 else 0
        point = graph.add("Gather", answers, graph.constant(np.int64(place)), axis=4)
        shape = (None, None, self._shape.horizon, len(self._shape.targets))
        graph.output("forecast", self._series.restored(graph, point, 1), "float32", shape)

    def _step(self) -> Any:
        graph = OnnxGraph()
        C, U = self._shape.channels, self._config.units
        raw = graph.input("value", "float32", (None, C))
        carried = graph.input("state", "float32", (None, self._state_size))
        zero = graph.constant(float32(0))
        width, layers = self._rows * U, self._config.layers
        sizes = graph.constant([*[width] * layers, C, C])
        *before, last, seen = graph.add("Split", carried, sizes, count=layers + 2, axis=1)
        missing = graph.add("IsNaN", raw)
        value = graph.add("Where", missing, last, self._series.scaled(graph, raw))
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
        answers = graph.add("Squeeze", self._answer(graph, states, levels), axis)
        known = graph.add("Cast", graph.add("Not", missing), to=FLOAT)
        seen = graph.add("Max", seen, known)
        after = graph.add("Concat", *afterwards, value, seen, axis=1)
        self._output(graph, answers)
        graph.output("after", after, "float32", (None, self._state_size))
        return graph.model("step")

    def _prepared(self, graph: OnnxGraph, history: str) -> str:
        """What the network reads: cut, filled and standardised."""
        if not self._streams:
            start, axis = graph.constant([-self._shape.lookback]), graph.constant([1])
            history = graph.add("Slice", history, start, graph.constant([END]), axis)
        return self._series.standardised(graph, history)

    def _inputs(self, graph: OnnxGraph, history: str) -> str:
        layer = self._network.get_layer("normalisation")
        if type(layer) not in _WRITERS:
            raise ValueError(f"layer {layer.name!r} cannot be written as ONNX")
        normalised, *_ = _WRITERS[type(layer)](graph, layer, [Value(history, 3)], ())
        return self._by_target(graph, normalised.name)

    def _by_target(self, graph: OnnxGraph, x: str) -> str:
        """(B, T, C) as the GRU reads it, (B·R, T, D)."""
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
        """(B·R, T, D) as embedded segments (B·R, N, U)."""
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
        """From the lowest to the top one."""
        layer = self._network.get_layer
        lower = [layer(f"gru_{number}") for number in range(1, self._config.layers)]
        segment = self._config.architecture == "segment"
        return [*lower, layer("segment_gru").encoder if segment else layer("gru")]

    @staticmethod
    def _through(graph: OnnxGraph, grus: Sequence[Any], x: str) -> Value:
        """The outputs (B, N, U) of GRUs on top of each other."""
        for gru in grus:
            (run,) = run_gru(graph, [gru], Value(x, 3), [None])
            x = run.outputs
        return Value(x, 3)

    def _by_row(self, graph: OnnxGraph, x: str) -> str:
        """(B·R, N, U) as (B, N, R, U)."""
        steps = graph.add("Shape", x, start=1, end=2)
        front = graph.constant([-1, self._rows])
        shape = graph.add("Concat", front, steps, graph.constant([self._config.units]), axis=0)
        return str(graph.add("Transpose", graph.add("Reshape", x, shape), perm=[0, 2, 1, 3]))

    @property
    def _outputs(self) -> int:
        """Q of the network's own answers."""
        return int(self._network.outputs[0].shape[-1])

    def _last_answer(self, graph: OnnxGraph, history: str) -> str:
        """The answer (B, H, K, Q) to all of a history; of a model that streams."""
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
        """(B, N, R, U) to (B, N, H, K, Q), on the levels (B, N, C) if any are given."""
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

    def _output(self, graph: OnnxGraph, answers: str, ended: str | None = None) -> None:
        """The outputs `forecast` and `quantiles` of (B, H, K, 1) or (B, H, K, Q), standardised."""
        served = add_quantiles(graph, answers, self._offsets, self._levels)
        raw = self._series.restored(graph, served, 2)
        if ended is not None:
            nowhere = graph.add("Unsqueeze", ended, graph.constant([3]))
            raw = graph.add("Where", nowhere, graph.constant(float32(np.nan)), raw)
        H, K = self._shape.horizon, len(self._shape.targets)
        middle = graph.add("Gather", raw, graph.constant(np.int64(self._middle)), axis=3)
        graph.output("forecast", middle, "float32", (None, H, K))
        graph.output("quantiles", raw, "float32", (None, H, K, len(self._levels)))
