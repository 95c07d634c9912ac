"""The networks of a text classifier for ONNX Runtime, from word ids to logits or attributions.

A run contains the same graph, from which `gru-train predict` answers without TensorFlow.
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import pyarrow as pa

from gru_serving.preprocessing.answers import ChooseClass, ChooseLabels, Probabilities
from gru_training.onnx.gru_steps import add_input_gradient, add_opened, stacked
from gru_training.onnx.operations import ALL_OPERATIONS
from gru_training.runs.directory import RunWriter
from gru_training.scoring.class_columns import BOUNDS, class_columns
from gru_training.scoring.engine import score_table
from gru_training.sentiment.network.model import InChunks, WordDropout, shares_of
from gru_training.sentiment.network.pooling import Pooling
from gru_training.sentiment.network.steps import POINTS, SentimentSteps, directions_of, quadrature
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.served.head import RAW_SCORES, Head
from gru_training.sentiment.served.onnx_pooling import POOLINGS, PoolingGraph
from gru_training.sentiment.served.scorer import GRAPH, STORED, TOKENS, graph_scorer
from gru_training.words import onnx_layers
from gru_training.words.ngrams import NgramLogits
from gru_training.words.onnx_layers import add_ngram_shares
from gru_training.words.tokens import tokenizer
from keras_gru import GRU
from keras_gru.convert.onnx_graph import FLOAT, INT64, OnnxGraph, Value, float32
from keras_gru.convert.onnx_gru import run_gru
from keras_gru.convert.onnx_layers import WRITERS
from keras_gru.convert.onnx_model import add_model


def _unchanged(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:  # noqa: ARG001
    return [values[0]]


_WRITERS = {**WRITERS, **onnx_layers.WRITERS, **POOLINGS, WordDropout: _unchanged}
_OPERATIONS = {**ALL_OPERATIONS, **onnx_layers.MASKS}


class GraphWriter:
    """Writes the networks of one classifier.

    Args:
        model: Network from word ids (B, T) to logits (B, C).
        max_tokens: Number of tokens that are read; of longer texts the last ones.
        head: Head of the run.
    """

    def __init__(self, model: keras.Model, max_tokens: int, head: Head) -> None:
        self._model, self._max_tokens, self._head = model, max_tokens, head
        self._classes = int(model.output_shape[-1])
        steps = SentimentSteps(model)
        self._streams = steps.streams
        self._state_sizes = steps.state_sizes if steps.streams else []
        kinds = GRU | keras.layers.Bidirectional
        self._layers = [layer for layer in model.layers if isinstance(layer, kinds)]
        self._pooling: Pooling = model.get_layer("pooling")
        self._embedding, self._last = model.get_layer("embedding"), model.get_layer("logits")

    def answer(self) -> Any:
        """Write the complete model.

        Raises:
            ValueError: ONNX cannot express the model.
        """
        graph, ids = self._begun()
        graph.output(RAW_SCORES, self._logits(graph, ids), "float32", (None, self._classes))
        return graph.model("answer")

    def gates(self) -> Any:
        """Write every step of the GRUs, and the answers to the beginnings of the texts."""
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

    def attribution(self) -> Any:
        """Return the shares of one text's words in its answer, see `Attribution`."""
        graph, ids = self._begun()
        embedded = self._embed(graph, ids)
        add_attribution(graph, self._model, self._layers, self._head, embedded, ids)
        return graph.model("attribution")

    def step(self) -> Any:
        """Write the step from a state."""
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
        """Compute the model's answer to every beginning of one text, (1, T, C)."""
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
    """Write the graph of a classifier into its run after comparing its answers with the model's.

    Nothing is written if ONNX cannot express the model, or if the answers differ.

    Args:
        writer: The run, with all its other files in place.
        model: The run's model, from word ids (B, T) to logits (B, C).
    """
    run = SentimentRun(writer.path)
    try:
        graph = GraphWriter(model, run.config.data.max_tokens, run.head()).answer()
    except ValueError:
        return
    STORED.write(run, graph)
    writer.write_text(TOKENS, tokenizer(run.cleaned, run.reading).text())
    if not _answers_alike(run):
        for name in (GRAPH, TOKENS):
            (writer.path / name).unlink()


def _answers_alike(run: SentimentRun) -> bool:
    """Tell whether texts get the answers of the run's report."""
    rows = list(itertools.islice(run.test_predictions(), _CHECKED_TEXTS))
    scorer = graph_scorer(run)
    assert scorer is not None
    answers = score_table(scorer, pa.table({"text": [row.text for row in rows]}))
    names = BOUNDS if run.kind == "number" else class_columns(run.classes)
    scores = np.column_stack([answers[name].to_numpy() for name in names])
    return np.allclose(scores, [row.scores for row in rows], _TOLERANCE, _TOLERANCE)


class _Read(NamedTuple):
    """A GRU of one direction, and what it has read."""

    layer: Any
    x: str
    states: str


def add_attribution(
    graph: OnnxGraph, model: Any, layers: Sequence[Any], head: Head, embedded: Value, ids: str
) -> None:
    """Add integrated gradients to a graph, as the outputs of the signature.

    `gru_training.sentiment.network.steps.Attribution` takes them by TensorFlow's gradients. ONNX
    has none, so the way back is written out: through the last layer, the pooling and the GRUs. All
    points of the line from zero vectors to the words' vectors are rows of one batch, which has the
    two ends as well: what the GRUs answer to the text, and to as many words without meaning.

    P points, T tokens, D numbers in a word's vector, F features of the last GRUs, C classes.

    Args:
        graph: Graph to add to; gets the input `place` (1,) int64, the class to explain, below 0
            for the one answered, unless there is a number only.
        model: The classifier, from word ids (B, T) to logits.
        layers: Layers of GRUs of the classifier, in order.
        head: Head of the run.
        embedded: The words' vectors (1, T, D), with their mask.
        ids: Word ids (1, T).
    """
    places, areas = quadrature(POINTS)
    along = float32([*places, 1, 0])[:, np.newaxis, np.newaxis]
    weighed = float32([*areas, 0, 0])[:, np.newaxis]
    line = graph.add("Mul", embedded.name, along)  # (P + 2, T, D)
    mask = graph.add("Expand", embedded.mask, graph.constant([len(along), 1]))
    graph.prefixes.add(mask)
    kept = graph.add("Unsqueeze", graph.add("Cast", mask, to=FLOAT), [2])
    read, x = _read(graph, layers, Value(line, 3, mask), kept)
    pooling = PoolingGraph(graph, model.get_layer("pooling"), x, mask)
    dense = model.get_layer("logits")
    gru = graph.add("MatMul", pooling.pool(), graph.weight(dense.kernel))
    gru = graph.add("Add", gru, graph.weight(dense.bias))
    share, ngram_share = map(float32, shares_of(model))
    text, nothing = (
        graph.add("Mul", graph.add("Gather", gru, [at], axis=0), share) for at in (-2, -1)
    )
    counted = [layer for layer in model.layers if isinstance(layer, NgramLogits)]
    shares_of_words = None
    if counted:
        long_ids = graph.add("Cast", ids, to=INT64)
        found, shares_of_words = add_ngram_shares(graph, counted[0], long_ids)
        text = graph.add("Add", text, graph.add("Mul", found, ngram_share))
        alone = graph.add("Mul", graph.weight(counted[0].bias), ngram_share)
        nothing = graph.add("Add", nothing, alone)

    place = _add_foremost(graph, head, text)
    if head.kind != "number":
        given = graph.input("place", "int64", (None,))
        place = graph.add("Where", graph.add("Less", given, [0]), place, given)
    table = float32(head.contrast(np.arange(len(head.names))))
    weights = graph.add("Gather", table, place, axis=0)  # (1, C)

    pooled = graph.add("MatMul", weights, graph.add("Transpose", graph.weight(dense.kernel)))
    slopes = _gradient(graph, read, pooling.gradient(graph.add("Mul", pooled, weighed)), kept)
    slopes = graph.add("ReduceSum", slopes, [0], keepdims=1)  # (1, T, D)
    scores = graph.add("ReduceSum", graph.add("Mul", embedded.name, slopes), [2], keepdims=0)
    scores = graph.add("Mul", scores, share)
    if shares_of_words:
        scores = graph.add("Add", scores, graph.add("Mul", shares_of_words(weights), ngram_share))
    scores = graph.add("Mul", scores, graph.add("Cast", embedded.mask, to=FLOAT))

    graph.output("attribution", scores, "float32", (None, None))
    for name, logits in (("value", text), ("baseline", nothing)):
        total = graph.add("ReduceSum", graph.add("Mul", logits, weights), [1], keepdims=0)
        total = graph.add("Add", total, float32(head.middle))
        graph.output(name, total, "float32", (None,))
    if head.kind != "number":
        graph.output("explained", place, "int64", (None,))


def _read(
    graph: OnnxGraph, layers: Sequence[Any], x: Value, kept: str
) -> tuple[list[list[_Read]], str]:
    """Run the layers; what each of their directions read, and the last states (B, T, F)."""
    read = []
    for layer in layers:
        of_layer = []
        for one in directions_of(layer):
            (run,) = run_gru(graph, [one], x, [None])
            of_layer.append(_Read(one, x.name, graph.add("Mul", run.outputs, kept)))
        read.append(of_layer)
        states = [one.states for one in of_layer]
        name = states[0] if len(states) == 1 else graph.add("Concat", *states, axis=-1)
        x = Value(name, 3, x.mask)
    return read, x.name


def _gradient(graph: OnnxGraph, read: Sequence[Sequence[_Read]], d_states: str, kept: str) -> str:
    """Go back through the layers, from the gradient of the last states to that of the vectors."""
    for of_layer in reversed(read):
        d_states = graph.add("Mul", d_states, kept)
        count = len(of_layer)
        parts = graph.add("Split", d_states, count=count, axis=-1) if count > 1 else [d_states]
        gradients = [
            add_input_gradient(graph, one.layer, one.x, one.states, part)
            for one, part in zip(of_layer, parts, strict=True)
        ]
        d_states = gradients[0] if count == 1 else graph.add("Add", *gradients)
    return d_states


def _add_foremost(graph: OnnxGraph, head: Head, logits: str) -> str:
    """Add `Head.foremost`, int64 (1,)."""
    scores = logits
    if isinstance(head.calibration, Probabilities):
        scores = graph.add("Div", logits, np.float32(head.calibration.temperature))
        if head.calibration.function == "softmax":
            scores = graph.add("Softmax", scores, axis=-1)
        else:
            scores = graph.add("Sigmoid", scores)
    value, choice = scores, head.choice
    if isinstance(choice, ChooseLabels):
        applies = graph.add("GreaterOrEqual", scores, float32(choice.thresholds))
        value = graph.add("Add", scores, graph.add("Cast", applies, to=FLOAT))
    elif isinstance(choice, ChooseClass):
        if choice.utilities:
            value = graph.add("MatMul", scores, float32(choice.utilities))
        if choice.thresholds:
            eligible = graph.add("GreaterOrEqual", scores, float32(choice.thresholds))
            count = graph.add("ReduceSum", graph.add("Cast", eligible, to=INT64), [1], keepdims=1)
            eligible = graph.add("Or", eligible, graph.add("Equal", count, [0]))
            value = graph.add("Where", eligible, value, float32(-np.inf))
    return str(graph.add("ArgMax", value, axis=-1, keepdims=0))
