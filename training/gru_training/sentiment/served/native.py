"""An exported text classifier for ONNX Runtime: the signatures of `SentimentSignatures` again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from gru_training.native.gru_steps import add_opened, stacked
from gru_training.native.operations import ALL_OPERATIONS
from gru_training.native.signatures import NativeModel, NativeSignature, Step
from gru_training.sentiment.network.chunks import InChunks
from gru_training.sentiment.network.model import WordDropout
from gru_training.sentiment.network.native_pooling import PoolingGraph, add_pooling
from gru_training.sentiment.network.pooling import Pooling, pooling_layer
from gru_training.sentiment.network.steps import SentimentSteps, directions_of
from gru_training.sentiment.served.head import Head
from gru_training.sentiment.served.native_head import OUTPUTS, add_answers, add_scores
from gru_training.words import native_layers
from gru_training.words.native_tokens import TOKENS_FILE, WORDS_FILE, token_files
from gru_training.words.tokens import ATTACHED
from gru_training.words.vocabulary import TextPreprocessor, Vocabulary
from keras_gru import GRU
from keras_gru.convert.onnx_graph import FLOAT, OnnxGraph, Value
from keras_gru.convert.onnx_gru import run_gru
from keras_gru.convert.onnx_layers import WRITERS
from keras_gru.convert.onnx_model import add_model


def _unchanged(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:  # noqa: ARG001
    return [values[0]]


_POOLINGS = {
    type(pooling_layer(kind, False, "pooling")): add_pooling
    for kind in ("max", "mean", "attention", "last")
}
_WRITERS = {**WRITERS, **native_layers.WRITERS, **_POOLINGS, WordDropout: _unchanged}
_OPERATIONS = {**ALL_OPERATIONS, **native_layers.MASKS}


def sentiment_native(
    model: keras.Model, preprocessor: TextPreprocessor, vocabulary: Vocabulary, head: Head
) -> NativeModel:
    """A text classifier's signatures, those that ONNX can express.

    Args:
        model: As of `SentimentSignatures`.
        preprocessor: Likewise.
        vocabulary: The known words.
        head: From logits to answers.
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
        return NativeModel(left=left | dict.fromkeys(names, str(error)))
    cut = _reading("text", preprocessor.max_tokens)
    example: Step = {"do": "parse_example", "from": "inputs", "feature": "text", "to": "text"}
    answers = OUTPUTS[head.kind]
    of_examples = {"outputs": "value"} if number else {"classes": "classes", "scores": "scores"}
    signatures = {
        "serving_default": NativeSignature("answer", {name: name for name in answers}, cut),
        api: NativeSignature("answer", of_examples, (example, *cut)),
    }
    try:
        graphs["gates"] = writer.gates()
        shown = ("tokens", "update_gate", "reset_gate", "state", "scores")
        mark = ATTACHED if preprocessor.reading == "spaced" else ""
        pad: Step = {"do": "pad_tokens", "from": "pieces", "to": "tokens", "without": mark}
        signatures["gates"] = NativeSignature(
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
            signatures["step"] = NativeSignature(
                "step",
                {**{name: name for name in answers}, "state": "after"},
                (
                    {"do": "require_shape", "of": "state", "sizes": sizes},
                    *_reading("token", None),
                ),
            )
        except ValueError as error:
            left["step"] = str(error)
    return NativeModel(graphs, signatures, left, texts)


def _reading(text: str, last: int | None) -> tuple[Step, ...]:
    """From texts to padded word ids."""
    return (
        {"do": "tokenize", "from": text, "by": TOKENS_FILE, "last": last, "to": "pieces"},
        {"do": "look_up", "from": "pieces", "in": WORDS_FILE, "to": "token_ids"},
    )


class GraphWriter:
    """Writes the graphs of one classifier.

    Args:
        model: As of `SentimentSignatures`.
        max_tokens: Of longer texts the last so many tokens are read.
        head: From logits to answers.
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
        """Word vectors."""
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
