"""A text classifier for ONNX Runtime: the signatures of `SentimentSignatures` again.

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
from gru_training.onnx.signatures import OnnxModel, OnnxSignature, Step
from gru_training.runs.directory import RunWriter
from gru_training.scoring.class_columns import BOUNDS, class_columns
from gru_training.scoring.engine import score_table
from gru_training.sentiment.decision import HALF, Decision
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
from gru_training.sentiment.served.head import ClassHead, Head, LabelsHead, NumberHead
from gru_training.sentiment.served.scorer import DIGEST, GRAPH, TOKENS, graph_scorer, model_digest
from gru_training.words import onnx_layers
from gru_training.words.tokens import ATTACHED
from gru_training.words.tokens_file import TOKENS_FILE, WORDS_FILE, token_files
from gru_training.words.vocabulary import PADDING, TextPreprocessor, Vocabulary, token_ids
from keras_gru import GRU
from keras_gru.convert.onnx_graph import BOOL, FLOAT, INT32, INT64, OnnxGraph, Value, float32
from keras_gru.convert.onnx_gru import run_gru
from keras_gru.convert.onnx_layers import WRITERS
from keras_gru.convert.onnx_model import add_model

_LOWEST = float(np.finfo(np.float32).min)


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
        scores = g.add("Where", self._columns, scores, g.constant(float32(_LOWEST)))
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
        lowest = self._graph.constant(float32(_LOWEST))
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
        lowest = g.constant(float32(_LOWEST))
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


OUTPUTS = {
    "class": ("label", "probability", "scores"),
    "labels": ("labels", "scores", "thresholds"),
    "number": ("value", "quantiles"),
}
"""Outputs of the signature `serving_default`, by `Head.kind`."""


def add_scores(graph: OnnxGraph, logits: str, head: Head) -> str:
    """Add what `Head.scores` makes of logits (..., C)."""
    if isinstance(head, NumberHead):
        spread = graph.add("Mul", logits, graph.constant(float32(head.scale.deviation)))
        return str(graph.add("Add", spread, graph.constant(float32(head.scale.mean))))
    assert isinstance(head, ClassHead | LabelsHead)
    calm = graph.add("Div", logits, graph.constant(float32(head.temperature)))
    if isinstance(head, LabelsHead):
        return str(graph.add("Sigmoid", calm))
    return str(graph.add("Softmax", calm, axis=-1))


def add_answers(graph: OnnxGraph, logits: str, head: Head) -> None:
    """Outputs for logits (B, C): `Head.answers`, and `classes` for those of the Classify API."""
    scores = add_scores(graph, logits, head)
    if isinstance(head, NumberHead):
        value = graph.add("Squeeze", scores, graph.constant([1]))
        graph.output("value", value, "float32", (None,))
        bounds = graph.add("Add", scores, graph.constant(float32(head.scale.offsets)))
        graph.output("quantiles", bounds, "float32", (None, len(head.scale.offsets)))
        return
    shape = (None, len(head.names))
    names = graph.constant(np.array([*head.names, ""], object), "classes_in_order")
    graph.output("scores", scores, "float32", shape)
    places = graph.constant(np.arange(len(head.names)))
    every = graph.add("Expand", places, graph.add("Shape", scores))
    graph.output("classes", graph.add("Gather", names, every), "object", shape)
    if isinstance(head, LabelsHead):
        _add_labels(graph, scores, names, head)
        return
    assert isinstance(head, ClassHead)
    best = _best(graph, scores, head.decision)
    graph.output("label", graph.add("Gather", names, best), "object", (None,))
    last = graph.constant([1])
    of_best = graph.add("GatherElements", scores, graph.add("Unsqueeze", best, last), axis=1)
    graph.output("probability", graph.add("Squeeze", of_best, last), "float32", (None,))


def _best(graph: OnnxGraph, scores: str, decision: Decision) -> str:
    """The class numbers (B,) answered."""
    value = scores
    if decision.utilities:
        value = graph.add("MatMul", scores, graph.constant(float32(decision.utilities)))
    if decision.thresholds:
        least = graph.constant(float32(decision.thresholds))
        eligible = graph.add("GreaterOrEqual", scores, least)
        some = graph.add("ReduceMax", graph.add("Cast", eligible, to=INT32), axes=[1], keepdims=1)
        all_are = graph.add("Not", graph.add("Cast", some, to=BOOL))
        eligible = graph.add("Or", eligible, all_are)
        value = graph.add("Where", eligible, value, graph.constant(float32(-np.inf)))
    return str(graph.add("ArgMax", value, axis=-1, keepdims=0))


def _add_labels(graph: OnnxGraph, scores: str, names: str, head: LabelsHead) -> None:
    count = len(head.names)
    thresholds = head.decision.thresholds or (HALF,) * count
    least = graph.add("Expand", graph.constant(float32(thresholds)), graph.add("Shape", scores))
    graph.output("thresholds", least, "float32", (None, count))
    applies = graph.add("GreaterOrEqual", scores, least)
    ranked = graph.add("Where", applies, scores, graph.constant(float32(-1)))
    _, order = graph.add("TopK", ranked, graph.constant([count]), count=2, axis=1)
    there = graph.add("GatherElements", applies, order, axis=1)
    place = graph.add("Where", there, order, graph.constant(np.int64(count)))  # of an empty text
    graph.output("labels", graph.add("Gather", names, place), "object", (None, count))


def _unchanged(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:  # noqa: ARG001
    return [values[0]]


_POOLINGS = {
    type(pooling_layer(kind, False, "pooling")): add_pooling
    for kind in ("max", "mean", "attention", "last")
}
_WRITERS = {**WRITERS, **onnx_layers.WRITERS, **_POOLINGS, WordDropout: _unchanged}
_OPERATIONS = {**ALL_OPERATIONS, **onnx_layers.MASKS}


def sentiment_onnx(
    model: keras.Model, preprocessor: TextPreprocessor, vocabulary: Vocabulary, head: Head
) -> OnnxModel:
    """A text classifier's signatures, those that ONNX can express.

    Args:
        model: Network from word ids (B, T) to logits (B, C).
        preprocessor: Preprocessor from texts (B,) to word ids.
        vocabulary: The known words.
        head: Head from logits to answers.
    """
    number = head.kind == "number"
    api = "regress" if number else "classify"
    writer = GraphWriter(model, preprocessor.max_tokens, head)
    left = {"attribution": "it takes gradients, which ONNX has no operations for"}
    names = ["serving_default", api, "gates", *(["step"] if writer.streams else [])]
    try:
        graphs = {"answer": writer.answer()}
        texts = token_files(vocabulary, preprocessor.cleaned, preprocessor.reading)
    except ValueError as error:
        return OnnxModel(left=left | dict.fromkeys(names, str(error)))
    cut = _reading("text", preprocessor.max_tokens)
    example: Step = {"do": "parse_example", "from": "inputs", "feature": "text", "to": "text"}
    answers = OUTPUTS[head.kind]
    of_examples = {"outputs": "value"} if number else {"classes": "classes", "scores": "scores"}
    signatures = {
        "serving_default": OnnxSignature("answer", {name: name for name in answers}, cut),
        api: OnnxSignature("answer", of_examples, (example, *cut)),
    }
    try:
        graphs["gates"] = writer.gates()
        shown = ("tokens", "update_gate", "reset_gate", "state", "scores")
        mark = ATTACHED if preprocessor.reading == "spaced" else ""
        pad: Step = {"do": "pad_tokens", "from": "pieces", "to": "tokens", "without": mark}
        signatures["gates"] = OnnxSignature(
            "gates",
            {name: name for name in shown},
            (*cut, pad),
            # A model in both directions answers for every beginning of a text anew.
            rows_per_run=None if writer.streams else 1,
        )
    except ValueError as error:
        left["gates"] = str(error)
    if writer.streams:
        try:
            graphs["step"] = writer.step()
            sizes = [None, writer.state_size]
            signatures["step"] = OnnxSignature(
                "step",
                {**{name: name for name in answers}, "state": "after"},
                (
                    {"do": "require_shape", "of": "state", "sizes": sizes},
                    *_reading("token", None),
                ),
            )
        except ValueError as error:
            left["step"] = str(error)
    return OnnxModel(graphs, signatures, left, texts)


def _reading(text: str, last: int | None) -> tuple[Step, ...]:
    """Return the steps from texts to padded word ids."""
    return (
        {"do": "tokenize", "from": text, "by": TOKENS_FILE, "last": last, "to": "pieces"},
        {"do": "look_up", "from": "pieces", "in": WORDS_FILE, "to": "token_ids"},
    )


class GraphWriter:
    """Writes the graphs of one classifier.

    Args:
        model: Network from word ids (B, T) to logits (B, C).
        max_tokens: Number of tokens that are read; of longer texts the last ones.
        head: Head from logits to answers.
    """

    def __init__(self, model: keras.Model, max_tokens: int, head: Head) -> None:
        self._model, self._max_tokens, self._served = model, max_tokens, head
        steps = SentimentSteps(model)
        self.streams = steps.streams
        self._state_sizes = steps.state_sizes if steps.streams else []
        kinds = GRU | keras.layers.Bidirectional
        self._layers = [layer for layer in model.layers if isinstance(layer, kinds)]
        self._pooling: Pooling = model.get_layer("pooling")
        self._embedding, self._last = model.get_layer("embedding"), model.get_layer("logits")

    @property
    def state_size(self) -> int:
        """Size of the state of `step`; 0 where the model does not stream."""
        return sum(self._state_sizes)

    def answer(self) -> Any:
        """`serving_default`, and `classify` or `regress`: they differ in names alone.

        Raises:
            ValueError: ONNX cannot express the model.
        """
        if any(isinstance(layer, InChunks) for layer in self._model.layers):
            raise ValueError("chunks (--chunk) are not written as ONNX")
        graph, ids = self._begun()
        add_answers(graph, self._logits(graph, ids), self._served)
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
        if self.streams:
            assert x.mask is not None
            pooled = PoolingGraph(graph, self._pooling, x.name, x.mask).so_far(self._max_tokens)
            logits = self._dense(graph, pooled)
        else:
            logits = self._by_prefix(graph, ids)
        scores = graph.add("Mul", add_scores(graph, logits, self._served), kept)
        gate_shape = (None, None, len(self._layers), None, None)
        for name, kind in zip(("update_gate", "reset_gate", "state"), shown, strict=True):
            graph.output(name, stacked(graph, kind, 2), "float32", gate_shape)
        graph.output("scores", scores, "float32", (None, None, len(self._served.names)))
        return graph.model("gates")

    def step(self) -> Any:
        """Read on from a state."""
        graph, ids = self._begun()
        carried = graph.input("state", "float32", (None, self.state_size))
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
        add_answers(graph, self._dense(graph, pooled), self._served)
        name = graph.add("Concat", *after, carry, axis=-1)
        graph.output("after", name, "float32", (None, self.state_size))
        return graph.model("step")

    def _begun(self) -> tuple[OnnxGraph, str]:
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
    texts = token_files(run.vocabulary, run.cleaned, run.reading)
    try:
        graph = GraphWriter(model, run.config.data.max_tokens, run.head()).answer()
    except ValueError:
        return
    graph.metadata_props.add(key=DIGEST, value=model_digest(run))
    (writer.path / GRAPH).write_bytes(graph.SerializeToString())
    writer.write_text(TOKENS, texts[TOKENS_FILE])
    if not _answers_alike(run):
        for name in (GRAPH, TOKENS):
            (writer.path / name).unlink()


def _answers_alike(run: SentimentRun) -> bool:
    """Whether texts are read as by TensorFlow and answered as the run's report has it."""
    rows = list(itertools.islice(run.test_predictions(), _CHECKED_TEXTS))
    texts = [row.text for row in rows]
    scorer = graph_scorer(run)
    assert scorer is not None
    read, _ = zip(*scorer.word_ids([text.encode() for text in texts]), strict=True)
    wanted = np.concatenate(token_ids(run.preprocessor(), texts))
    if not np.array_equal(np.concatenate(read), wanted[wanted != PADDING]):
        return False
    answers = score_table(scorer, pa.table({"text": texts}))
    names = BOUNDS if run.kind == "number" else class_columns(run.classes)
    scores = np.column_stack([answers[name].to_numpy() for name in names])
    return np.allclose(scores, [row.scores for row in rows], _TOLERANCE, _TOLERANCE)
