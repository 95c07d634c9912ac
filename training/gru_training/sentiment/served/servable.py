"""The export of a text classifier: its signatures, and requests with their answers.

B texts, C classes, T tokens of the longest text, L layers, R directions, U units, S the size of
the streaming state.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from gru_serving.preprocessing.answers import FindLabel, HidePadding, NameLabel
from gru_serving.preprocessing.checks import RequireRows, RequireShape
from gru_serving.preprocessing.description import Signature, Step
from gru_serving.preprocessing.examples import ParseExample
from gru_serving.preprocessing.operations import encoded
from gru_serving.preprocessing.texts import LookUp, ShowTokens, Tokenize
from gru_training.config import to_dict
from gru_training.sentiment.decision import LEVELS
from gru_training.sentiment.network.steps import POINTS, Attribution, SentimentSteps
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.served.head import RAW_SCORES, Head
from gru_training.sentiment.served.onnx import GraphWriter
from gru_training.servable import (
    WARMUP_BATCHES,
    DescribedModule,
    Network,
    OnnxModel,
    Request,
    Servable,
    written,
)
from gru_training.words.tokens import tokenizer
from gru_training.words.vocabulary import TextPreprocessor, Vocabulary
from keras_gru import portable


def text_signatures(
    preprocessor: TextPreprocessor, words: Vocabulary, head: Head, streaming_size: int, by_row: bool
) -> dict[str, Signature]:
    """Return the signatures of a text classifier.

    `serving_default`, from `text` (B,) to the outputs of the head; `classify`, or `regress` of a
    number, from `inputs` (B,), tf.Examples with one string feature `text`, to `classes` (B, C), the
    same in each row, with their `scores`, or to `outputs` (B,).

    `gates`, from `text`, shows what the gates did: `tokens` (B, T) as the model reads them, padded
    with empty strings; `update_gate`, `reset_gate` and `state` (B, T, L, R, U), the forward
    direction first; `scores` (B, T, C), the answer to the text up to that token. Zero at padding.

    `attribution` says which words an answer is due to, by integrated gradients, of `text` and, but
    for numbers, `label` (B,), the class or label to explain, or empty for the one answered:
    `tokens` (B, T); `attribution` (B, T), above 0 for words that speak for it; `label` (B,);
    `value` and `baseline` (B,), its score for the text and for as many words without any meaning,
    whose difference the attributions add up to. Scores are log-odds: of a class against the mean of
    the others, of a label by itself; a number is in its own units.

    `step` reads on: `token` (B,), the next word of each text, of which a longer piece is read token
    by token and a blank one changes nothing, and `state` (B, S), zeros at first and then that of
    the step before, to the outputs of the head and the new `state`. Only of models that stream.

    Args:
        preprocessor: Preprocessor of the run.
        words: Known words.
        head: Head from logits to answers.
        streaming_size: S; 0 where the model does not stream.
        by_row: Whether gates are shown of one text at a time.
    """
    split = tokenizer(preprocessor.cleaned, preprocessor.reading)

    def read(source: str, last: int | None) -> list[Step]:
        return [
            Tokenize(source, "pieces", split, last),
            LookUp("pieces", "token_ids", words, preprocessor.backoff),
        ]

    texts = read("text", preprocessor.max_tokens)
    shown = [*texts, ShowTokens("pieces", "tokens", split)]
    answers = head.calibration, head.choice
    outputs = {name: name for name in head.outputs}
    examples, of_examples = head.examples()
    number = head.kind == "number"
    named = (
        RequireShape("label", (None,)),
        RequireRows("label", "text"),
        FindLabel("label", "place", head.names),
    )
    explained = ("tokens", "attribution", "value", "baseline", *(() if number else ("label",)))
    gates = ("tokens", "update_gate", "reset_gate", "state", "scores")
    found = {
        "serving_default": Signature(texts, "answer", answers, outputs),
        "regress" if number else "classify": Signature(
            [ParseExample("inputs", "text", "text"), *texts], "answer", examples, of_examples
        ),
        "gates": Signature(
            shown,
            "gates",
            [head.calibration, HidePadding("scores", "token_ids")],
            {name: name for name in gates},
            1 if by_row else None,
        ),
        "attribution": Signature(
            shown if number else [*named, *shown],
            "attribution",
            () if number else (NameLabel("explained", "label", head.names),),
            {name: name for name in explained},
            1,
        ),
    }
    if streaming_size:
        checked = [RequireShape("state", (None, streaming_size)), *read("token", None)]
        found["step"] = Signature(checked, "step", answers, {**outputs, "state": "after"})
    return found


def _inputs(signatures: Mapping[str, Signature], head: Head, size: int) -> dict[str, Any]:
    """List the inputs of each signature by name."""

    def texts(*names: str) -> dict[str, tf.TensorSpec]:
        return {name: tf.TensorSpec((None,), tf.string, name) for name in names}

    examples, step = texts("inputs"), texts("token")
    step["state"] = tf.TensorSpec((None, size), tf.float32, "state")
    others = {
        "attribution": texts("text") if head.kind == "number" else texts("text", "label"),
        "classify": examples,
        "regress": examples,
        "step": step,
    }
    return {name: others.get(name, texts("text")) for name in signatures}


def _networks(
    logits: Any, steps: SentimentSteps, attribution: Attribution, head: Head
) -> dict[str, Network]:
    """Return the networks in TensorFlow by name.

    See `gru_training.sentiment.served.onnx.GraphWriter`.
    """

    def step(token_ids: Any, state: Any) -> dict[str, Any]:
        found, after = steps.advance(token_ids, state)
        return {RAW_SCORES: found, "after": after}

    def gates(token_ids: Any) -> dict[str, Any]:
        shown = steps.unroll(token_ids)._asdict()
        return {**shown, RAW_SCORES: shown["logits"]}

    names = ["token_ids"]
    explain = partial(_explain, logits, attribution, head)
    return {
        "answer": Network(lambda token_ids: {RAW_SCORES: logits(token_ids)}, names),
        "gates": Network(gates, names),
        "step": Network(step, [*names, "state"]),
        "attribution": Network(explain, names if head.kind == "number" else [*names, "place"]),
    }


def _explain(
    logits_of: Any, attribution: Attribution, head: Head, token_ids: Any, place: Any = None
) -> dict[str, Any]:
    """Return the numbers of the signature `attribution` for word ids (B, T).

    Numbers (B,) of classes.
    """
    logits = logits_of(token_ids)
    explained = head.foremost(logits)
    if place is not None:
        explained = tf.where(place < 0, explained, place)
    weights, middle = head.contrast(explained), np.float32(head.middle)
    return {
        "attribution": attribution(token_ids, weights),
        "value": tf.reduce_sum(logits * weights, axis=1) + middle,
        "baseline": tf.reduce_sum(attribution.baseline(token_ids) * weights, axis=1) + middle,
        "explained": explained,
    }


_GOLDEN_BATCHES = (1, 1, 2, 12, 32)
_SHOWN_WORDS = 12
_EXPLAINED_TEXTS = 32
_STREAMED_TEXTS, _STREAMED_TOKENS = 32, 64
_REFERENCE_TEXTS = 2000


class SentimentServable(Servable):
    """The model of a sentiment run.

    Args:
        run: Complete run.
    """

    def __init__(self, run: SentimentRun) -> None:
        self._run = run
        self._model = run.load_model()
        self._preprocessor = run.preprocessor()
        # One graph serves all signatures, and the hundreds of texts asked below.
        self._logits = tf.function(
            partial(self._model, training=False),
            input_signature=[tf.TensorSpec((None, None), tf.int32)],
            autograph=False,
        )
        with portable():  # else XLA would compile for many of the lengths
            self._logits.get_concrete_function()
        self._head = run.head()
        steps = SentimentSteps(self._model, self._logits)
        self._size = steps.state_size if steps.streams else 0
        signatures = text_signatures(
            self._preprocessor, run.vocabulary, self._head, self._size, not steps.streams
        )
        module = DescribedModule(
            "sentiment",
            signatures,
            _inputs(signatures, self._head, self._size),
            _networks(self._logits, steps, Attribution(self._model), self._head),
            [variable.value for variable in self._model.variables],
        )
        super().__init__(module, module.concrete())
        self._texts = ["", *(row.text for row in itertools.islice(run.test_predictions(), 200))]

    def golden(self) -> list[Request]:
        """Return requests on held-out texts with the answers of the Keras model."""
        requests: list[Request] = []
        start = 0
        for size in _GOLDEN_BATCHES:
            batch = self._texts[start : start + size] or self._texts[:size]
            start += size
            answers = self._answers(self._ids(batch))
            requests.append(Request("serving_default", {"text": encoded(batch)}, answers))
        requests.append(self._golden_examples(self._texts[:8]))
        shown = [" ".join(text.split()[:_SHOWN_WORDS]) for text in self._texts[1:4]]
        requests += [self._golden_gates(batch) for batch in (shown[:1], shown)]
        requests += [self._attribution_of(batch, named) for batch, named in
                     ((shown[:1], False), (shown, True))]  # fmt: skip
        if "step" in self.signatures:
            requests += self._golden_steps(shown)
        return requests

    def warmup(self, golden: Sequence[Request]) -> list[Request]:  # noqa: ARG002
        """Return requests with the batch sizes and text lengths in use.

        They cover all signatures but `attribution`, which few clients use and which would double
        the time of a start.
        """
        texts = sorted(self._texts[1:], key=len)
        lengths = [texts[round(q * (len(texts) - 1))] for q in (0.0, 0.5, 0.95, 1.0)]
        batches = [list(itertools.islice(itertools.cycle(lengths), n)) for n in WARMUP_BATCHES]
        batches = [[text] for text in lengths] + batches[1:]
        requests = [Request("serving_default", {"text": encoded(batch)}) for batch in batches]
        api: Literal["classify", "regress"] = (
            "regress" if self._head.kind == "number" else "classify"
        )
        requests += [Request(api, {"text": encoded(batch)}, method=api) for batch in batches[-2:]]
        requests.append(Request("gates", {"text": encoded(lengths[:2])}))
        if "step" in self.signatures:
            for size in WARMUP_BATCHES:
                state = np.zeros((size, self._size), np.float32)
                words = encoded(texts[0].split()[:1] * size)
                requests.append(Request("step", {"token": words, "state": state}))
        return requests

    def streamed(self) -> Iterator[tuple[np.ndarray, np.ndarray]] | None:
        """Compute scores of held-out texts token by token: by the Keras model and by `step`."""
        return self._stream() if "step" in self.signatures else None

    def _stream(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        texts = self._texts[1 : _STREAMED_TEXTS + 1]
        state = tf.zeros((len(texts), self._size))
        ids = np.zeros((len(texts), 0), np.int32)
        for tokens, alive in self._token_columns(texts):
            answer = self.signatures["step"](token=tokens, state=state)
            state = answer["state"]
            ids = np.concatenate([ids, self._preprocessor(tokens)], axis=1)
            yield self._scores_of(ids)[alive], answer["scores"].numpy()[alive]

    def reference(self) -> Request:
        """Return held-out texts with the run's stored answers."""
        rows = list(itertools.islice(self._run.test_predictions(), _REFERENCE_TEXTS))
        predicted = [row.predicted for row in rows]
        scores = np.array([row.scores for row in rows], np.float32)
        outputs: dict[str, np.ndarray]
        if self._head.kind == "number":
            outputs = {"value": np.array(predicted, np.float32)}
        elif self._head.kind == "labels":
            table = np.full((len(rows), len(self._run.classes)), b"", object)
            places = {name: place for place, name in enumerate(self._run.classes)}
            for row, answers in zip(rows, table, strict=True):  # as the signature orders them
                labels = sorted(row.predicted, key=lambda name: -row.scores[places[name]])
                answers[: len(labels)] = [label.encode() for label in labels]
            outputs = {"labels": table, "scores": scores}
        else:
            outputs = {"label": encoded(predicted), "scores": scores}
        return Request("serving_default", {"text": encoded([row.text for row in rows])}, outputs)

    def onnx(self) -> OnnxModel:
        """Return the networks as ONNX graphs."""
        writer = GraphWriter(self._model, self._preprocessor.max_tokens, self._head)
        return written(self.module.described(), writer)

    def notes(self) -> list[str]:
        """Say so if the network has no share in the answers, whose gates are shown all the same."""
        if self._run.metrics.get("shares", {}).get("gru") != 0:
            return []
        return [
            "the network has no share in the answers: its gates (gru-serve explain) explain none, "
            "gru-serve explain --attribution does"
        ]

    def card(self) -> dict[str, Any]:
        """Return this task's entries of the model card."""
        return {
            "target": self._head.kind,
            "classes": list(self._run.classes),
            "parameters": self._model.count_params(),
            **self._calibration(),
            "vocabulary_size": len(self._run.vocabulary),
            "attribution": self._completeness(),
            "streaming": "step" in self.signatures,
            "streaming_state_size": self._size or None,
        }

    def _calibration(self) -> dict[str, Any]:
        run = self._run
        if run.kind == "number":
            return {"scale": to_dict(run.scale), "levels": list(LEVELS)}
        return {"temperature": run.temperature.value, "decision": to_dict(run.decision)}

    def _attribution_of(self, texts: Sequence[str], named: bool = False) -> Request:
        """Make a request to `attribution` with the answers of the signature's own arithmetic.

        Args:
            texts: Texts to explain.
            named: Whether to ask about classes by name; else about what is answered.
        """
        inputs = {"text": encoded(texts)}
        if self._head.kind != "number":
            names = itertools.cycle(self._run.classes) if named else itertools.repeat("")
            inputs["label"] = encoded(list(itertools.islice(names, len(texts))))
        answer = self.signatures["attribution"](**{k: tf.constant(v) for k, v in inputs.items()})
        outputs = {name: value.numpy() for name, value in answer.items()}
        return Request("attribution", inputs, outputs)

    def _completeness(self) -> dict[str, Any]:
        """Measure the difference between attributions and what they explain, on held-out texts."""
        texts = self._texts[1 : _EXPLAINED_TEXTS + 1]
        found = self._attribution_of(texts).outputs
        explained = found["value"] - found["baseline"]
        gap = np.abs(found["attribution"].sum(axis=1) - explained)
        return {
            "points": POINTS,
            "texts": len(texts),
            "median_gap": float(np.median(gap)),
            "largest_gap": float(gap.max()),
            "median_explained": float(np.median(np.abs(explained))),
        }

    def _golden_examples(self, texts: list[str]) -> Request:
        """Make a request to the API of TF Serving that takes tf.Examples."""
        scores = self._scores_of(self._ids(texts))
        inputs = {"text": encoded(texts)}
        if self._head.kind == "number":
            return Request("regress", inputs, {"outputs": scores[:, 0]}, "regress")
        classes = np.tile(encoded(self._run.classes), (len(texts), 1))
        return Request("classify", inputs, {"classes": classes, "scores": scores}, "classify")

    def _ids(self, texts: Sequence[str]) -> Any:
        return self._preprocessor(tf.constant(texts))

    def _scores_of(self, token_ids: Any) -> np.ndarray:
        scores: np.ndarray = self._head.scores(self._logits(token_ids)).numpy()
        return scores

    def _answers(self, token_ids: Any) -> dict[str, np.ndarray]:
        answers = self._head.answers(self._logits(token_ids))
        return {name: value.numpy() for name, value in answers.items()}

    def _golden_gates(self, texts: list[str]) -> Request:
        # The gates come from the signature's own arithmetic, the scores from the model on each
        # prefix.
        answer = self.signatures["gates"](tf.constant(texts))
        outputs = {name: value.numpy() for name, value in answer.items()}
        ids = self._ids(texts).numpy()
        for t in range(ids.shape[1]):
            so_far = self._scores_of(ids[:, : t + 1])
            outputs["scores"][:, t] = so_far * (ids[:, t : t + 1] != 0)
        return Request("gates", {"text": encoded(texts)}, outputs)

    def _golden_steps(self, texts: list[str]) -> list[Request]:
        """Make a chain of steps.

        Each takes the state that results from the Keras model's own layers.
        """
        requests = []
        state = np.zeros((len(texts), self._size), np.float32)
        ids = np.zeros((len(texts), 0), np.int32)
        for tokens, _ in self._token_columns(texts):
            answer = self.signatures["step"](token=tokens, state=tf.constant(state))
            ids = np.concatenate([ids, self._preprocessor(tokens)], axis=1)
            after = answer["state"].numpy()
            outputs = {**self._answers(ids), "state": after}
            requests.append(Request("step", {"token": tokens.numpy(), "state": state}, outputs))
            state = after
        return requests

    def _token_columns(self, texts: Sequence[str]) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield the tokens of texts, one of each at a time, and which texts have one there."""
        columns = self._preprocessor.tokens(tf.constant(texts)).to_tensor("")
        for t in range(min(columns.shape[1], _STREAMED_TOKENS)):
            yield columns[:, t], columns[:, t].numpy() != b""
