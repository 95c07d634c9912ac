"""An exported forecaster for ONNX Runtime: the signatures of `ForecastingSignatures` again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import keras
import numpy as np

from gru_training.forecasting.config import ForecasterConfig, ForecastShape
from gru_training.forecasting.export.one_series import OneSeries
from gru_training.forecasting.intervals import MEDIAN
from gru_training.forecasting.layers import (
    EPSILON,
    FeedbackGRU,
    SegmentGRU,
    TensorSum,
    WindowLinear,
    WindowNormalisation,
)
from gru_training.forecasting.preprocessor import LARGEST_LOGARITHM, SeriesPreprocessor
from gru_training.onnx.gru_steps import add_opened, add_projection, add_step, standard_weights
from gru_training.onnx.operations import ALL_OPERATIONS
from gru_training.onnx.signatures import OnnxModel, OnnxSignature, Step
from keras_gru.convert.onnx_graph import (
    BOOL,
    DOUBLE,
    END,
    FLOAT,
    INT32,
    INT64,
    OnnxGraph,
    Value,
    float32,
)
from keras_gru.convert.onnx_gru import run_gru
from keras_gru.convert.onnx_layers import WRITERS
from keras_gru.convert.onnx_model import add_model


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
    """Add a `WindowLinear` to the graph."""
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
    """Add a `TensorSum` to the graph."""
    x, y = values
    return [Value(graph.add("Add", x.name, y.name), max(x.rank, y.rank))]


_WRITERS = {
    **WRITERS,
    FeedbackGRU: add_feedback_gru,
    SegmentGRU: add_segment_gru,
    TensorSum: add_sum,
    WindowLinear: add_window_linear,
    WindowNormalisation: add_normalisation,
}
"""Functions that write a layer as ONNX, by its class."""

_ANSWERS = {"forecast": "forecast", "quantiles": "quantiles"}


class ForecastingChecks:
    """The steps that `gru_serving.engine.onnx.steps` does for each signature.

    Args:
        columns: The C names.
        targets: The K column numbers that are forecast.
        read: Numbers of the columns without which there is no forecast.
        lookback: Steps read; None for all of a history.
        panel: Whether columns may be without any value.
    """

    def __init__(
        self,
        columns: Sequence[str],
        targets: Sequence[int],
        read: Sequence[int],
        lookback: int | None,
        panel: bool,
    ) -> None:
        self._count = len(columns)
        self._names: dict[str, Any] = {
            "columns": list(columns),
            "targets": list(targets),
            "read": list(read),
        }
        self.history: list[Step] = [
            require_shape("history", None, None, self._count),
            {"do": "require_steps", "of": "history", "least": lookback or 1},
            {"do": "require_finite", "of": "history"},
        ]
        if not panel:
            values: Step = {
                "do": "require_values",
                "of": "history",
                "last": lookback,
                "columns": list(read),
                "names": [columns[number] for number in read],
            }
            self.history.append(values)

    def step(self, state_size: int) -> list[Step]:
        """Steps of the signature `step`."""
        return [
            require_shape("value", None, self._count),
            require_shape("state", None, state_size),
            {"do": "require_finite", "of": "value"},
        ]

    def by_name(self, graph: str) -> OnnxSignature:
        """`by_name`: the columns are put in order, and the rest is `serving_default`."""
        steps: list[Step] = [
            require_shape("history", None, None, None),
            require_shape("columns", None, None),
            {"do": "order_columns", "of": "history", "by": "columns", **self._names},
            *self.history,
        ]
        return OnnxSignature(graph, _ANSWERS, steps)

    def columns(self) -> OnnxSignature:
        """`columns`, which needs no graph."""
        steps: list[Step] = [
            require_shape("names", None, None),
            {"do": "find_columns", "from": "names", **self._names},
        ]
        made = ("columns", "place", "needed", "forecast_columns")
        return OnnxSignature(None, {name: name for name in made}, steps)


def one_series_checks() -> list[Step]:
    """Steps of the signature `one_series`."""
    return [
        require_shape("history", None, None),
        {"do": "require_some", "of": "history"},
        {"do": "require_finite", "of": "history"},
    ]


def require_shape(name: str, *sizes: int | None) -> Step:
    """The step that refuses another number of axes, or of values in the last one."""
    return {"do": "require_shape", "of": name, "sizes": list(sizes)}


class SeriesGraph:
    """Adds what the preprocessor does to graphs.

    Args:
        preprocessor: Scale of the run, without inputs that are known of the steps ahead.
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
        """Mark targets (B, 1, K) without a value in the last steps of a raw history (B, T, C)."""
        start, end, axis = (graph.constant([place]) for place in (-lookback, END, 1))
        read = graph.add("Slice", history, start, end, axis)
        targets = graph.constant(np.array(self._preprocessor.targets, np.int64))
        missing = graph.add("IsNaN", graph.add("Gather", read, targets, axis=2))
        every = graph.add("ReduceMin", graph.add("Cast", missing, to=INT32), axes=[1], keepdims=1)
        return str(graph.add("Cast", every, to=BOOL))

    def scaled(self, graph: OnnxGraph, values: str) -> str:
        """Add the values on the scale of the network, NaN as it is."""
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
        """Add the values in raw units; the targets are that many axes from the end."""
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
    """`powers` of the preprocessor; in float64, to keep the digits of small values."""
    positive = graph.add("Max", values, graph.constant(float32(0)))
    one = graph.constant(np.float64(1))
    found = graph.add("Add", graph.add("Cast", positive, to=DOUBLE), one)
    if exponent:
        share = graph.constant(np.float64(exponent))
        found = graph.add("Sub", graph.add("Pow", found, share), one)
        return str(graph.add("Cast", graph.add("Div", found, share), to=FLOAT))
    return str(graph.add("Cast", graph.add("Log", found), to=FLOAT))


def add_roots(graph: OnnxGraph, values: str, exponent: float) -> str:
    """Add `gru_training.forecasting.preprocessor.roots` of some values to the graph."""
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
    """`gru_training.forecasting.intervals.quantiles` of (B, H, K, 1) or (B, H, K, Q)."""
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


def one_series_graph(one: OneSeries) -> Any:
    """Write the graph from `history` (B, T) to `forecast` (B, H) and `quantiles` (B, H, Q).

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


class ForecastingGraphs:
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

    def by_name(self) -> OnnxModel:
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
            signatures[name] = OnnxSignature(name, named, steps)
        if "serving_default" in left:
            left["by_name"] = left["serving_default"]
        else:
            signatures["by_name"] = self._checks.by_name("serving_default")
        return OnnxModel(graphs, signatures, left)

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
        """Add what the network reads: cut, filled and standardised."""
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
        """GRUs from the lowest to the top one."""
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
