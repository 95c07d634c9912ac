"""A text classifier as an export needs it: its signatures, and requests with its answers."""

import functools
import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf

from gru_training.config import to_dict
from gru_training.onnx.signatures import OnnxModel
from gru_training.sentiment.decision import LEVELS
from gru_training.sentiment.network.steps import POINTS, Attribution, SentimentSteps
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.served.head import Head
from gru_training.sentiment.served.onnx import sentiment_onnx
from gru_training.servable import WARMUP_BATCHES, Request, Servable, encoded
from gru_training.words.vocabulary import PADDING, TextPreprocessor
from keras_gru import portable

_NAMES_SHOWN = 8


class SentimentSignatures(tf.Module):
    """A text classifier with its preprocessing: raw strings in, labels out.

    B texts, C classes, T tokens of the longest text, L layers, R directions, U units, S the size
    of the streaming state.

    Args:
        model: Network from word ids (B, T) to logits (B, C).
        preprocessor: Preprocessor from texts (B,) to word ids.
        head: Head from logits to answers.
    """

    def __init__(
        self,
        model: keras.Model,
        preprocessor: TextPreprocessor,
        head: Head,
    ) -> None:
        super().__init__(name="sentiment")
        # Bare functions: of a model as attribute the writer would save Keras' own graphs too.
        self._logits = partial(
            tf.function(  # one graph for all signatures that call it
                partial(model, training=False),
                input_signature=[tf.TensorSpec((None, None), tf.int32)],
                autograph=False,
            )
        )
        self._weights = [variable.value for variable in model.variables]
        steps = SentimentSteps(model, self._logits)
        self._unroll, self._advance = partial(steps.unroll), partial(steps.advance)
        self._streams = steps.streams
        self.state_size = steps.state_size if steps.streams else 0
        self._attribution = Attribution(model)
        self._preprocessor = preprocessor
        # Also one graph each: to clean a text takes a hundred operations.
        texts = [tf.TensorSpec((None,), tf.string)]
        self.ids, self._read = (
            partial(tf.function(read, input_signature=texts, autograph=False))
            for read in (preprocessor.__call__, preprocessor.tokens)
        )
        self._answers_of, self._scores_of = partial(head.answers), partial(head.scores)
        self._foremost, self._contrast = partial(head.foremost), partial(head.contrast)
        more = ", ..." if len(head.names) > _NAMES_SHOWN else ""
        self._named = ", ".join(head.names[:_NAMES_SHOWN]) + more
        self._middle = np.float32(head.middle)
        self._kind, self._classes = head.kind, tf.constant(head.names, tf.string)

    def by_name(self) -> dict[str, Any]:
        """The concrete functions by signature name; `step` only where the model can stream."""
        # Not attributes of the module: the writer would trace and save those a second time.
        text = tf.TensorSpec((None,), tf.string, "text")
        inputs = tf.TensorSpec((None,), tf.string, "inputs")
        with portable():
            signatures = {
                "serving_default": tf.function(
                    self.serving_default, autograph=False
                ).get_concrete_function(text),
                "gates": tf.function(self.gates, autograph=False).get_concrete_function(text),
            }
            api = self.regress if self._kind == "number" else self.classify
            name = "regress" if self._kind == "number" else "classify"
            signatures[name] = tf.function(api, autograph=False).get_concrete_function(inputs)
            chosen = [] if self._kind == "number" else [tf.TensorSpec((None,), tf.string, "label")]
            attribution = tf.function(self.attribution, autograph=False)
            signatures["attribution"] = attribution.get_concrete_function(text, *chosen)
            if self._streams:
                signatures["step"] = tf.function(self.step, autograph=False).get_concrete_function(
                    tf.TensorSpec((None,), tf.string, "token"),
                    tf.TensorSpec((None, self.state_size), tf.float32, "state"),
                )
        return signatures

    def serving_default(self, text: Any) -> dict[str, Any]:
        """Classify texts.

        Args:
            text: (B,) string.

        Returns:
            `label` (B,) string, `probability` of that label (B,) and `scores` of all
            classes (B, C), float32. Of several labels `labels` (B, C) string, those that apply
            in front and empty texts behind them, `scores` and `thresholds` (B, C). Of a number
            `value` (B,) and `quantiles` (B, 4).
        """
        return self._answers(self._logits(self.ids(text)))

    def classify(self, inputs: Any) -> dict[str, Any]:
        """Classify tf.Examples, for TF Serving's Classify API.

        Args:
            inputs: (B,) string, each a serialized tf.Example with one string feature `text`.

        Returns:
            `classes` (B, C) string, the same in each row, and their `scores` (B, C), float32. Of
            several labels all are there, whatever their thresholds: the API has as many in each
            row, and clients read from it which column of `scores` is which label.
        """
        features = tf.io.parse_example(inputs, {"text": tf.io.FixedLenFeature((), tf.string)})
        scores = self._scores(self._logits(self.ids(features["text"])))
        return {
            "classes": tf.broadcast_to(self._classes, tf.shape(scores)),
            "scores": scores,
        }

    def regress(self, inputs: Any) -> dict[str, Any]:
        """Estimate the number of tf.Examples, for TF Serving's Regress API.

        Args:
            inputs: Serialized tf.Examples (B,) string, as in `classify`.

        Returns:
            `outputs` (B,) float32.
        """
        features = tf.io.parse_example(inputs, {"text": tf.io.FixedLenFeature((), tf.string)})
        return {"outputs": self._scores(self._logits(self.ids(features["text"])))[:, 0]}

    def gates(self, text: Any) -> dict[str, Any]:
        """Show what the gates did at each token.

        Args:
            text: (B,) string.

        Returns:
            `tokens` (B, T) string, as the model reads them, padded with empty strings;
            `update_gate`, `reset_gate` and `state` (B, T, L, R, U) float32, the forward
            direction first; `scores` (B, T, C) float32, the answer to the text up to that
            token, a number in its own units. Zero where there is padding.
        """
        ids = self.ids(text)
        shown = self._unroll(ids)
        mask = tf.cast(tf.not_equal(ids, PADDING), tf.float32)[..., tf.newaxis]
        return {
            "tokens": self._tokens(text, ids),
            "update_gate": shown.update_gate,
            "reset_gate": shown.reset_gate,
            "state": shown.state,
            "scores": self._scores(shown.logits) * mask,
        }

    def attribution(self, text: Any, label: Any = None) -> dict[str, Any]:
        """Say which words an answer is due to, by integrated gradients.

        Args:
            text: (B,) string.
            label: (B,) string, the class or label to explain; where it is empty, the one answered.
                A model of numbers has no such input.

        Returns:
            `tokens` (B, T) string, padded with empty strings; `attribution` (B, T) float32, above
            0 for words that speak for it and 0 where there is padding; `label` (B,) string, what
            is explained; `value` and `baseline` (B,) float32, its score for the text and for as
            many words without any meaning. The attributions add up to `value - baseline`. Scores
            are log-odds: of a class against the mean of the others, of a label by itself. Of a
            number they are in its own units, and there is no `label`.
        """
        ids = self.ids(text)
        logits = self._logits(ids)
        place = self._foremost(logits) if label is None else self._chosen(label, logits)
        weights = self._contrast(place)
        outputs = {
            "tokens": self._tokens(text, ids),
            "attribution": self._attribution(ids, weights),
            "value": tf.reduce_sum(logits * weights, axis=1) + self._middle,
            "baseline": tf.reduce_sum(self._attribution.baseline(ids) * weights, axis=1)
            + self._middle,
        }
        if label is not None:
            outputs["label"] = tf.gather(self._classes, place)
        return outputs

    def _chosen(self, label: Any, logits: Any) -> Any:
        """The numbers of labels, (B,); what is answered where they are empty."""
        found = tf.equal(label[:, tf.newaxis], self._classes)
        given = tf.not_equal(label, "")
        unknown = given & ~tf.reduce_any(found, axis=1)
        got = tf.strings.reduce_join(tf.boolean_mask(label, unknown)[:1])
        message = tf.strings.join(
            [f"label: expected an empty text or one of {self._named}; got ", got]
        )
        known = tf.debugging.Assert(~tf.reduce_any(unknown), [message], name="known")
        with tf.control_dependencies([known]):
            return tf.where(given, tf.argmax(found, axis=1), self._foremost(logits))

    def step(self, token: Any, state: Any) -> dict[str, Any]:
        """Read on: the answer to everything read so far. The caller keeps the state.

        Args:
            token: (B,) string, the next word of each row's text; a longer piece is read token by
                token, and a blank one changes nothing.
            state: (B, S) float32, zeros at the beginning, then what the step before returned.

        Returns:
            the outputs of `serving_default`, and the new
            `state` (B, S).
        """
        logits, after = self._advance(self._preprocessor(token, limit=False), state)
        return {**self._answers(logits), "state": after}

    def _tokens(self, text: Any, ids: Any) -> Any:
        """The tokens, padded with empty strings to the length of the ids (B, T)."""
        tokens = self._read(text).to_tensor("")
        return tf.pad(tokens, [[0, 0], [0, tf.shape(ids)[1] - tf.shape(tokens)[1]]])

    def _answers(self, logits: Any) -> dict[str, Any]:
        return self._answers_of(logits)

    def _scores(self, logits: Any) -> Any:
        return self._scores_of(logits)


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

    module: SentimentSignatures

    def __init__(self, run: SentimentRun) -> None:
        self._run = run
        self._model = run.load_model()
        self._preprocessor = run.preprocessor()
        # As a graph: hundreds of short texts run through it, each of another length.
        self._logits = tf.function(
            functools.partial(self._model, training=False),
            input_signature=[tf.TensorSpec((None, None), tf.int32)],
            autograph=False,
        )
        with portable():  # else XLA would compile for many of the lengths
            self._logits.get_concrete_function()
        self._head = run.head()
        module = SentimentSignatures(self._model, self._preprocessor, self._head)
        super().__init__(module, module.by_name())
        self._texts = ["", *(row.text for row in itertools.islice(run.test_predictions(), 200))]

    def golden(self) -> list[Request]:
        """Requests on held-out texts, with the answers of the Keras model."""
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

    def warmup(self) -> list[Request]:
        """Requests with the batch sizes and text lengths in use.

        Of all signatures but `attribution`: few ask it, and it would double the time of a start.
        """
        texts = sorted(self._texts[1:], key=len)
        lengths = [texts[round(q * (len(texts) - 1))] for q in (0.0, 0.5, 0.95, 1.0)]
        batches = [list(itertools.islice(itertools.cycle(lengths), n)) for n in WARMUP_BATCHES]
        batches = [[text] for text in lengths] + batches[1:]
        requests = [Request("serving_default", {"text": encoded(batch)}) for batch in batches]
        api: Literal["classify", "regress"] = (
            "regress" if self._head.kind == "number" else "classify"
        )
        requests += [Request(api, {"text": encoded(batch)}, method=api) for batch in batches[::3]]
        requests.append(Request("gates", {"text": encoded(lengths[:2])}))
        if "step" in self.signatures:
            for size in WARMUP_BATCHES:
                state = np.zeros((size, self.module.state_size), np.float32)
                words = encoded(texts[0].split()[:1] * size)
                requests.append(Request("step", {"token": words, "state": state}))
        return requests

    def streamed(self) -> Iterator[tuple[np.ndarray, np.ndarray]] | None:
        """Scores of held-out texts token by token: the Keras model beside `step`."""
        return self._stream() if "step" in self.signatures else None

    def _stream(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        texts = self._texts[1 : _STREAMED_TEXTS + 1]
        state = tf.zeros((len(texts), self.module.state_size))
        ids = np.zeros((len(texts), 0), np.int32)
        for tokens, alive in self._token_columns(texts):
            answer = self.signatures["step"](token=tokens, state=state)
            state = answer["state"]
            ids = np.concatenate([ids, self.module.ids(tokens)], axis=1)
            yield self._scores_of(ids)[alive], answer["scores"].numpy()[alive]

    def reference(self) -> Request:
        """Held-out texts with the answers that the run keeps of them."""
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
        """The signatures as graphs of ONNX."""
        return sentiment_onnx(self._model, self._preprocessor, self._run.vocabulary, self._head)

    def card(self) -> dict[str, Any]:
        """Return the entries of this task on the model card."""
        return {
            "target": self._head.kind,
            "classes": list(self._run.classes),
            "parameters": self._model.count_params(),
            **self._calibration(),
            "vocabulary_size": len(self._run.vocabulary),
            "attribution": self._completeness(),
            "streaming": "step" in self.signatures,
            "streaming_state_size": self.module.state_size if "step" in self.signatures else None,
        }

    def _calibration(self) -> dict[str, Any]:
        run = self._run
        if run.kind == "number":
            return {"scale": to_dict(run.scale), "levels": list(LEVELS)}
        return {"temperature": run.temperature.value, "decision": to_dict(run.decision)}

    def _attribution_of(self, texts: Sequence[str], named: bool = False) -> Request:
        """A request to `attribution`, with the answers of the signature's own arithmetic.

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
        """Measure the gap between attributions and what they explain, on held-out texts."""
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
        """A request to the API of TF Serving that takes tf.Examples."""
        scores = self._scores_of(self._ids(texts))
        inputs = {"text": encoded(texts)}
        if self._head.kind == "number":
            return Request("regress", inputs, {"outputs": scores[:, 0]}, "regress")
        classes = np.tile(encoded(self._run.classes), (len(texts), 1))
        return Request("classify", inputs, {"classes": classes, "scores": scores}, "classify")

    def _ids(self, texts: Sequence[str]) -> Any:
        return self.module.ids(tf.constant(texts))

    def _scores_of(self, token_ids: Any) -> np.ndarray:
        scores: np.ndarray = self._head.scores(self._logits(token_ids)).numpy()
        return scores

    def _answers(self, token_ids: Any) -> dict[str, np.ndarray]:
        answers = self._head.answers(self._logits(token_ids))
        return {name: value.numpy() for name, value in answers.items()}

    def _golden_gates(self, texts: list[str]) -> Request:
        # The signature's own arithmetic for the gates; for the scores the model on each prefix.
        answer = self.signatures["gates"](tf.constant(texts))
        outputs = {name: value.numpy() for name, value in answer.items()}
        ids = self._ids(texts).numpy()
        for t in range(ids.shape[1]):
            so_far = self._scores_of(ids[:, : t + 1])
            outputs["scores"][:, t] = so_far * (ids[:, t : t + 1] != 0)
        return Request("gates", {"text": encoded(texts)}, outputs)

    def _golden_steps(self, texts: list[str]) -> list[Request]:
        """A chain of steps; each takes the state that the Keras model's own layers lead to."""
        requests = []
        state = np.zeros((len(texts), self.module.state_size), np.float32)
        ids = np.zeros((len(texts), 0), np.int32)
        for tokens, _ in self._token_columns(texts):
            answer = self.signatures["step"](token=tokens, state=tf.constant(state))
            ids = np.concatenate([ids, self.module.ids(tokens)], axis=1)
            after = answer["state"].numpy()
            outputs = {**self._answers(ids), "state": after}
            requests.append(Request("step", {"token": tokens.numpy(), "state": state}, outputs))
            state = after
        return requests

    def _token_columns(self, texts: Sequence[str]) -> Iterator[tuple[Any, np.ndarray]]:
        """The tokens of texts, one of each at a time, and which texts have one there."""
        columns = self._preprocessor.tokens(tf.constant(texts)).to_tensor("")
        for t in range(min(columns.shape[1], _STREAMED_TOKENS)):
            yield columns[:, t], columns[:, t].numpy() != b""
