"""The networks of a text classifier for ONNX Runtime, from word ids to logits.

The same graph, in a run, is what `gru-train predict` answers from without TensorFlow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import pyarrow as pa

from gru_training.onnx.gru_steps import add_opened, stacked
from gru_training.onnx.operations import ALL_OPERATIONS
from gru_training.runs.directory import RunWriter
from gru_training.scoring.class_columns import BOUNDS, class_columns
from gru_training.scoring.engine import score_table
from gru_training.sentiment.network.model import InChunks, WordDropout
from gru_training.sentiment.network.pooling import (
    AttentionPooling,
    LastPooling,
    MaskedMaxPooling,
    MaskedMeanPooling,
    Pooling,
    pooling_layer,
)
from gru_training.sentiment.network.steps import SentimentSteps, directions_of
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.served.head import RAW_SCORES
from gru_training.sentiment.served.scorer import DIGEST, GRAPH, TOKENS, graph_scorer, model_digest
from gru_training.words import onnx_layers
from gru_training.words.tokens import tokenizer
from keras_gru import GRU
from keras_gru.convert.onnx_graph import FLOAT, INT64, OnnxGraph, Value, float32
from keras_gru.convert.onnx_gru import run_gru
from keras_gru.convert.onnx_layers import WRITERS
from keras_gru.convert.onnx_model import add_model

_LEAST_FLOAT = float(np.finfo(np.float32).min)


class PoolingGraph:
    """One pooling over a sequence in a graph.

    Args:
        graph: Graph to add to.
        layer: The pooling.
        sequence: (B, T, D).
        mask: bool (B, T), false at steps to pass over, which are the last ones of each row.
    """

    def __init__(self, graph: OnnxGraph, layer: Pooling, sequence: str, mask: str) -> None:
        self._graph, self._layer, self._sequence, self._mask = graph, layer, sequence, mask
        self._columns = graph.add("Unsqueeze", mask, graph.constant([2]))  # (B, T, 1)
        self._shown = graph.add("Cast", self._columns, to=FLOAT)
        self._zero = graph.constant(float32(0))
        self._axis = graph.constant([1])

    def pool(self) -> str:
        """Pool the sequence into one vector per row, (B, D)."""
        g, layer = self._graph, self._layer
        if isinstance(layer, MaskedMaxPooling):
            greatest = g.add("ReduceMax", self._lowered(), axes=[1], keepdims=0)
            return str(g.add("Where", self._any(), greatest, self._zero))
        if isinstance(layer, LastPooling):
            return self._last(layer)
        return self._ratio(*self._totals(self._weights()[0]))

    def so_far(self, most_steps: int) -> str:
        """Pool for each step as if it were the last, (B, T, D).

        Args:
            most_steps: Upper bound of T.
        """
        g, layer = self._graph, self._layer
        if isinstance(layer, MaskedMaxPooling):
            return self._where_begun(self._running_maximum(self._lowered(), most_steps))
        if isinstance(layer, LastPooling):
            return self._where_begun(self._sequence)
        weights = self._weights()[0]
        axis = g.constant(np.int64(1))
        total = g.add("CumSum", g.add("Mul", self._sequence, weights), axis)
        return self._ratio(total, g.add("CumSum", weights, axis))

    def resume(self, carry: str, features: int) -> tuple[str, str]:
        """The pooled (B, D) of what was and what comes, and the new carry (B, size)."""
        g, layer = self._graph, self._layer
        if isinstance(layer, MaskedMaxPooling):
            pooled, count = self._split(carry, [features, 1])
            greatest = g.add("ReduceMax", self._lowered(), axes=[1], keepdims=0)
            begun = g.add("Greater", count, self._zero)
            seen = g.add("Where", begun, g.add("Max", pooled, greatest), greatest)
            pooled = g.add("Where", self._any(), seen, pooled)
            count = g.add("Add", count, g.add("ReduceSum", self._shown, self._axis, keepdims=0))
            return pooled, g.add("Concat", pooled, count, axis=-1)
        if isinstance(layer, LastPooling):
            pooled = g.add("Where", self._any(), self._last(layer), carry)
            return pooled, pooled
        weights, greatest = self._weights()
        total, norm = self._totals(weights)
        if not isinstance(layer, AttentionPooling):
            carry = g.add("Add", carry, g.add("Concat", total, norm, axis=-1))
            return self._ratio(*self._split(carry, [features, 1])), carry
        before, norm_before, greatest_before = self._split(carry, [features, 1, 1])
        fresh = g.add("Equal", norm_before, self._zero)
        nothing = g.add("Equal", norm, self._zero)
        highest = g.add("Max", greatest, greatest_before)
        highest = g.add("Where", fresh, greatest, highest)
        highest = g.add("Where", nothing, greatest_before, highest)
        old = g.add("Exp", g.add("Sub", greatest_before, highest))
        old = g.add("Where", fresh, self._zero, old)
        new = g.add("Exp", g.add("Sub", greatest, highest))
        new = g.add("Where", nothing, self._zero, new)
        total = g.add("Add", g.add("Mul", before, old), g.add("Mul", total, new))
        norm = g.add("Add", g.add("Mul", norm_before, old), g.add("Mul", norm, new))
        return self._ratio(total, norm), g.add("Concat", total, norm, highest, axis=-1)

    def _weights(self) -> tuple[str, str]:
        """Weigh each step, (B, T, 1), 0 where masked; also give the top attention score, (B, 1)."""
        g, layer = self._graph, self._layer
        if isinstance(layer, MaskedMeanPooling):
            return self._shown, ""
        if not isinstance(layer, AttentionPooling):
            raise ValueError(f"Layer {layer.name!r} is of a kind that is not written as ONNX")
        scores = g.add("MatMul", self._sequence, g.weight(layer.score))
        scores = g.add("Where", self._columns, scores, g.constant(float32(_LEAST_FLOAT)))
        greatest = g.add("ReduceMax", scores, axes=[1], keepdims=1)
        weights = g.add("Mul", g.add("Exp", g.add("Sub", scores, greatest)), self._shown)
        return weights, g.add("Squeeze", greatest, self._axis)

    def _totals(self, weights: str) -> tuple[str, str]:
        """Weighted sum (B, D) and sum of the weights (B, 1)."""
        g = self._graph
        total = g.add("ReduceSum", g.add("Mul", self._sequence, weights), self._axis, keepdims=0)
        return total, g.add("ReduceSum", weights, self._axis, keepdims=0)

    def _ratio(self, total: str, norm: str) -> str:
        g = self._graph
        empty = g.add("Equal", norm, self._zero)
        return str(g.add("Div", total, g.add("Where", empty, g.constant(float32(1)), norm)))

    def _lowered(self) -> str:
        """The sequence, with the least number where it is masked."""
        lowest = self._graph.constant(float32(_LEAST_FLOAT))
        return str(self._graph.add("Where", self._columns, self._sequence, lowest))

    def _any(self) -> str:
        """Whether a row has a step, (B, 1)."""
        g = self._graph
        return str(
            g.add("Greater", g.add("ReduceMax", self._shown, axes=[1], keepdims=0), self._zero)
        )

    def _where_begun(self, pooled: str) -> str:
        g = self._graph
        seen = g.add("CumSum", self._shown, g.constant(np.int64(1)))
        return str(g.add("Where", g.add("Greater", seen, self._zero), pooled, self._zero))

    def _running_maximum(self, steps: str, most: int) -> str:
        """Compute a running maximum by doublings: ONNX has a running sum, but no such maximum."""
        g = self._graph
        lowest = g.constant(float32(_LEAST_FLOAT))
        zero = g.constant([0])
        length = g.add("Shape", steps, start=1, end=2)
        for doubling in range(math.ceil(math.log2(max(most, 2)))):
            reach = 2**doubling
            moved = g.add("Pad", steps, g.constant([0, reach, 0, 0, 0, 0]), lowest)
            moved = g.add("Slice", moved, zero, length, self._axis)
            steps = g.add("Max", steps, moved)
        return steps

    def _last(self, layer: LastPooling) -> str:
        g = self._graph
        count = g.add("ReduceSum", g.add("Cast", self._columns, to=INT64), self._axis, keepdims=0)
        place = g.add("Max", g.add("Sub", count, g.constant([1])), g.constant([0]))  # (B, 1)
        pooled = g.add("GatherND", self._sequence, place, batch_dims=1)
        if layer.bidirectional:
            first = g.add("Gather", self._sequence, g.constant(np.int64(0)), axis=1)
            ahead, _ = g.add("Split", pooled, count=2, axis=-1)
            _, back = g.add("Split", first, count=2, axis=-1)
            pooled = g.add("Concat", ahead, back, axis=-1)
        return str(g.add("Where", self._any(), pooled, self._zero))

    def _split(self, values: str, sizes: Sequence[int]) -> Any:
        return self._graph.add(
            "Split", values, self._graph.constant(sizes), count=len(sizes), axis=1
        )


def add_pooling(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    """A pooling as a layer of a model."""
    (value,) = values
    if value.mask is None or value.mask not in graph.prefixes:
        raise ValueError(f"Layer {layer.name!r} must get rows padded at the end to become ONNX")
    return [Value(PoolingGraph(graph, layer, value.name, value.mask).pool(), 2)]


def _unchanged(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:  # noqa: ARG001
    return [values[0]]


_POOLINGS = {
    type(pooling_layer(kind, False, "pooling")): add_pooling
    for kind in ("max", "mean", "attention", "last")
}
_WRITERS = {**WRITERS, **onnx_layers.WRITERS, **_POOLINGS, WordDropout: _unchanged}
_OPERATIONS = {**ALL_OPERATIONS, **onnx_layers.MASKS}


class GraphWriter:
    """Writes the networks of one classifier.

    Args:
        model: Network from word ids (B, T) to logits (B, C).
        max_tokens: Number of tokens that are read; of longer texts the last ones.

    Attributes:
        attribution: Reason why there is no graph of this network.
    """

    attribution = "it takes gradients, which ONNX has no operations for"

    def __init__(self, model: keras.Model, max_tokens: int) -> None:
        self._model, self._max_tokens = model, max_tokens
        self._classes = int(model.output_shape[-1])
        steps = SentimentSteps(model)
        self._streams = steps.streams
        self._state_sizes = steps.state_sizes if steps.streams else []
        kinds = GRU | keras.layers.Bidirectional
        self._layers = [layer for layer in model.layers if isinstance(layer, kinds)]
        self._pooling: Pooling = model.get_layer("pooling")
        self._embedding, self._last = model.get_layer("embedding"), model.get_layer("logits")

    def answer(self) -> Any:
        """The whole model.

        Raises:
            ValueError: ONNX cannot express the model.
        """
        graph, ids = self._begun()
        graph.output(RAW_SCORES, self._logits(graph, ids), "float32", (None, self._classes))
        return graph.model("answer")

    def gates(self) -> Any:
        """Every step of the GRUs, and the answers to the beginnings of the texts."""
        graph, ids = self._begun()
        x = self._embed(graph, ids)
        assert x.mask is not None
        kept = graph.add("Cast", graph.add("Unsqueeze", x.mask, graph.constant([2])), to=FLOAT)
        shown: list[list[str]] = [[], [], []]
        for layer in self._layers:
            opened = [add_opened(graph, one, x, kept) for one in directions_of(layer)]
            for kind, of_layer in zip(shown, zip(*opened, strict=True), strict=True):
                kind.append(stacked(graph, of_layer, 2))
            states = [each[2] for each in opened]
            name = states[0] if len(states) == 1 else graph.add("Concat", *states, axis=-1)
            x = Value(name, 3, x.mask)
        if self._streams:
            assert x.mask is not None
            pooled = PoolingGraph(graph, self._pooling, x.name, x.mask).so_far(self._max_tokens)
            logits = self._dense(graph, pooled)
        else:
            logits = self._by_prefix(graph, ids)
        gate_shape = (None, None, len(self._layers), None, None)
        for name, kind in zip(("update_gate", "reset_gate", "state"), shown, strict=True):
            graph.output(name, stacked(graph, kind, 2), "float32", gate_shape)
        graph.output(RAW_SCORES, logits, "float32", (None, None, self._classes))
        return graph.model("gates")

    def step(self) -> Any:
        """Read on from a state."""
        graph, ids = self._begun()
        carried = graph.input("state", "float32", (None, sum(self._state_sizes)))
        sizes = self._state_sizes
        parts = graph.add("Split", carried, graph.constant(sizes), count=len(sizes), axis=1)
        *states, pooled = parts
        x = self._embed(graph, ids)
        after = []
        for layer, state in zip(self._layers, states, strict=True):
            (run,) = run_gru(graph, [layer], x, [state])
            after.append(run.state)
            x = Value(run.outputs, 3, x.mask)
        assert x.mask is not None
        reading = PoolingGraph(graph, self._pooling, x.name, x.mask)
        pooled, carry = reading.resume(pooled, self._layers[-1].units)
        graph.output(RAW_SCORES, self._dense(graph, pooled), "float32", (None, self._classes))
        name = graph.add("Concat", *after, carry, axis=-1)
        graph.output("after", name, "float32", (None, sum(self._state_sizes)))
        return graph.model("step")

    def _begun(self) -> tuple[OnnxGraph, str]:
        if any(isinstance(layer, InChunks) for layer in self._model.layers):
            raise ValueError("chunks (--set chunk=STEPS) are not written as ONNX")
        graph = OnnxGraph()
        return graph, graph.input("token_ids", "int32", (None, None))

    def _embed(self, graph: OnnxGraph, ids: str) -> Value:
        """Add the word vectors of ids."""
        write = _WRITERS[type(self._embedding)]
        (value,) = write(graph, self._embedding, [Value(ids, 2)], ())
        return value

    def _logits(self, graph: OnnxGraph, ids: str) -> str:
        (value,) = add_model(graph, self._model, [Value(ids, 2)], _WRITERS, _OPERATIONS)
        return value.name

    def _by_prefix(self, graph: OnnxGraph, ids: str) -> str:
        """The model's answer to every beginning of one text, (1, T, C)."""
        length = graph.add("Shape", ids, start=1, end=2)
        square = graph.add("Concat", length, length, axis=0)
        rows = graph.add("Trilu", graph.add("Expand", ids, square), upper=0)
        return str(graph.add("Unsqueeze", self._logits(graph, rows), graph.constant([0])))

    def _dense(self, graph: OnnxGraph, pooled: str) -> str:
        name = graph.add("MatMul", pooled, graph.weight(self._last.kernel))
        return str(graph.add("Add", name, graph.weight(self._last.bias)))


_CHECKED_TEXTS = 256
_TOLERANCE = 1e-4


def write_graph(writer: RunWriter, model: Any) -> None:
    """Write the graph of a classifier into its run, and compare its answers with the model's.

    Nothing is written where ONNX cannot express the model, or where the answers differ.

    Args:
        writer: The run, with all its other files in place.
        model: The run's model, from word ids (B, T) to logits (B, C).
    """
    run = SentimentRun(writer.path)
    try:
        graph = GraphWriter(model, run.config.data.max_tokens).answer()
    except ValueError:
        return
    graph.metadata_props.add(key=DIGEST, value=model_digest(run))
    (writer.path / GRAPH).write_bytes(graph.SerializeToString())
    writer.write_text(TOKENS, tokenizer(run.cleaned, run.reading).text())
    if not _answers_alike(run):
        for name in (GRAPH, TOKENS):
            (writer.path / name).unlink()


def _answers_alike(run: SentimentRun) -> bool:
    """Whether texts are answered as the run's report has it."""
    rows = list(itertools.islice(run.test_predictions(), _CHECKED_TEXTS))
    scorer = graph_scorer(run)
    assert scorer is not None
    answers = score_table(scorer, pa.table({"text": [row.text for row in rows]}))
    names = BOUNDS if run.kind == "number" else class_columns(run.classes)
    scores = np.column_stack([answers[name].to_numpy() for name in names])
    return np.allclose(scores, [row.scores for row in rows], _TOLERANCE, _TOLERANCE)
