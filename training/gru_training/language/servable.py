"""The export of a language model: its signatures, and requests with their answers."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from gru_serving.preprocessing.operations import encoded
from gru_serving.preprocessing.texts import PADDING
from gru_training.language.model import LanguageModel, target_log_probabilities
from gru_training.language.reading import END_ID, shown_texts
from gru_training.language.run import LanguageRun
from gru_training.scoring.class_columns import TokenizedTexts, answer_columns, text_column
from gru_training.scoring.scorer import BatchLimits
from gru_training.servable import Request, Servable
from gru_training.words.vocabulary import TextPreprocessor
from keras_gru import portable


def log_probabilities(model: LanguageModel, token_ids: Any) -> tuple[Any, Any]:
    """Compute log-probabilities of the tokens of texts, each given those before it.

    Args:
        model: Model that reads.
        token_ids: (B, T) int32, padded with 0 at the end.

    Returns:
        Log-probabilities of each token (B, T), zero where there is padding, and of the end of each
        text (B,), in nats.
    """
    shape = tf.shape(token_ids)
    ends = tf.fill([shape[0], 1], END_ID)
    lengths = tf.math.count_nonzero(token_ids, axis=1, dtype=tf.int32)  # (B,)
    places = tf.range(shape[1] + 1)
    last = tf.equal(places, lengths[:, tf.newaxis])  # (B, T + 1)
    padded = tf.pad(token_ids, [[0, 0], [0, 1]], constant_values=PADDING)
    targets = tf.where(last, END_ID, padded)
    # Padding follows the text, where what is read no longer matters.
    features, _ = model.read(tf.concat([ends, token_ids], axis=1))
    there = tf.not_equal(targets, PADDING)
    found = target_log_probabilities(
        model, tf.boolean_mask(features, there), tf.boolean_mask(targets, there)
    )
    whole = tf.scatter_nd(tf.where(there), found, tf.shape(targets, out_type=tf.int64))
    zero = tf.zeros((), whole.dtype)
    of_end = tf.reduce_sum(tf.where(last, whole, zero), axis=1)
    return tf.where(last, zero, whole)[:, :-1], of_end


MOST_NEXT = 128
"""Most next tokens that `step` returns."""


class LanguageSignatures(tf.Module):
    """The signatures of a language model on raw strings.

    B texts, T tokens of the longest text, K next tokens, S the size of the streaming state.

    Args:
        model: Model from token ids to log-odds.
        preprocessor: Preprocessor from texts to token ids.
        tokens: V, the vocabulary.
        shown: V, what each token adds to a text.
    """

    def __init__(
        self,
        model: LanguageModel,
        preprocessor: TextPreprocessor,
        tokens: Sequence[str],
        shown: Sequence[str],
    ) -> None:
        super().__init__(name="language")
        # These are bare functions: for a model as attribute, the writer would also save Keras' own
        # graphs.
        self._log_probabilities = partial(log_probabilities, model)
        self._read, self._logits = partial(model.read), partial(model.logits)
        self._project = partial(model.projection)
        self._weights = [variable.value for variable in model.variables]
        self._preprocessor = preprocessor
        self._tokens = tf.constant(list(tokens), tf.string)
        self._shown = tf.constant(list(shown), tf.string)
        self._units = [gru.units for gru in model.grus]
        self.state_size = sum(self._units) + 1
        self.next_count = min(len(tokens) - 1, MOST_NEXT)

    def by_name(self) -> dict[str, Any]:
        """Return the concrete functions by signature name."""
        # They are not attributes of the module, as the writer would trace and save them a second
        # time.
        text = tf.TensorSpec((None,), tf.string, "text")
        with portable():
            score = tf.function(self.score, autograph=False).get_concrete_function(text)
            step = tf.function(self.step, autograph=False).get_concrete_function(
                tf.TensorSpec((None,), tf.string, "token"),
                tf.TensorSpec((None, self.state_size), tf.float32, "state"),
            )
        return {"serving_default": score, "score": score, "step": step}

    def score(self, text: Any) -> dict[str, Any]:
        """Compute the likelihood of texts.

        Args:
            text: (B,) string.

        Returns:
            `log_likelihood` (B,) float32, natural logarithm of the probability that a document
            begins so; `end_log_probability` (B,), to add where it also ends so; `tokens` (B, T)
            string as the model reads them, padded with empty strings, and `log_probabilities`
            (B, T) of each given those before it, zero where there is padding; `length` (B,) int32,
            how many tokens there are. A token that the model does not know has the probability of
            all unknown ones together.
        """
        ids = self._preprocessor(text, limit=False)
        found, of_end = self._log_probabilities(ids)
        tokens = self._preprocessor.tokens(text, limit=False).to_tensor("")
        missing = tf.shape(ids)[1] - tf.shape(tokens)[1]
        return {
            "log_likelihood": tf.reduce_sum(found, axis=1),
            "end_log_probability": of_end,
            "tokens": tf.pad(tokens, [[0, 0], [0, missing]]),
            "log_probabilities": found,
            "length": tf.math.count_nonzero(ids, axis=1, dtype=tf.int32),
        }

    def step(self, token: Any, state: Any) -> dict[str, Any]:
        """Read further, and return the likeliest next tokens. The caller keeps the state.

        Args:
            token: (B,) string, the next word or character of each row's text; a longer piece is
                read token by token, and an empty one changes nothing.
            state: (B, S) float32, zeros at the beginning of a document, then what the step before
                returned.

        Returns:
            `next_token` (B, K) string, the likeliest first: `[END]` is the end of the document and
            `[UNK]` any token that the model does not know; `next_text` (B, K), what each adds to
            the text so far, a word its blank; `log_probability` (B, K) float32, natural logarithms,
            of which those of all tokens add up to a probability of 1; and the new `state` (B, S).
        """
        ids = self._preprocessor(token, limit=False)
        *carried, begun = tf.split(state, [*self._units, 1], axis=-1)
        _, behind_end = self._read(tf.fill([1, 1], END_ID))
        states = [
            tf.where(begun > 0, own, first) for own, first in zip(carried, behind_end, strict=True)
        ]
        _, states = self._read(ids, states, mask=tf.not_equal(ids, PADDING))
        logits = self._logits(self._project(states[-1]))  # the output of a GRU is its state
        values, classes = tf.math.top_k(tf.nn.log_softmax(logits), self.next_count)
        return {
            "next_token": tf.gather(self._tokens, classes + 1),
            "next_text": tf.gather(self._shown, classes + 1),
            "log_probability": values,
            "state": tf.concat([*states, tf.ones_like(begun)], axis=-1),
        }


_FILES = ("config.json", "model.keras", "vocabulary.txt")


class LanguageScorer:
    """The model of a language run, which answers like the signature `score` of its export.

    A missing text counts as empty.

    Args:
        run: Complete run.
    """

    inputs = ("text",)
    limits = BatchLimits(steps=1 << 14, rows=128)
    _columns = answer_columns("likelihood", ())
    answers = _columns.schema

    def __init__(self, run: LanguageRun) -> None:
        self.identity = {"run": run.digest(_FILES)}
        self.preprocessor: TextPreprocessor = run.preprocessor()
        self._graph = _graph(run.load_model())

    def read(self, rows: pa.RecordBatch) -> TokenizedTexts:
        """Split texts into tokens.

        Raises:
            RowError: The column holds no texts.
        """
        texts = text_column(rows.column("text")).to_pylist()
        ids = self.preprocessor.ragged_ids(tf.constant(texts, tf.string), limit=False)
        parts = [(ids.flat_values.numpy(), ids.row_lengths().numpy())]
        return TokenizedTexts(self.answer, lambda: parts)

    def answer(self, ids: np.ndarray) -> pa.RecordBatch:
        """Score texts of token ids, (B, T) int32, padded with 0."""
        found, of_end = (value.numpy() for value in self._graph(ids))
        return self._columns.batch(
            {
                "log_likelihood": found.sum(axis=1),
                "end_log_probability": of_end,
                "length": np.count_nonzero(ids != PADDING, axis=1),
            }
        )


def _graph(model: LanguageModel) -> Any:
    """Trace the computation of log-probabilities from token ids (B, T), as in exports."""

    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int32)], autograph=False)
    def scores(ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        found: tuple[tf.Tensor, tf.Tensor] = log_probabilities(model, ids)
        return found

    with portable():  # else XLA would compile for every shape, which few files would repay
        return scores.get_concrete_function()


_GOLDEN_BATCHES = (1, 1, 3, 8)
_GOLDEN_LETTERS = 200
_STEPPED_TOKENS = 12
_STREAMED_TEXTS, _STREAMED_TOKENS = 16, 48
_GAP = 1e-4
"""Least difference of two next tokens that other machines must answer in this order."""


class LanguageServable(Servable):
    """The model of a language run.

    Args:
        run: Complete run.
    """

    module: LanguageSignatures

    def __init__(self, run: LanguageRun) -> None:
        self._run, self._model = run, run.load_model()
        self._preprocessor = run.preprocessor()
        tokens = run.vocabulary.tokens
        module = LanguageSignatures(
            self._model, self._preprocessor, tokens, shown_texts(tokens, run.unit)
        )
        super().__init__(module, module.by_name())
        self._texts = ["", *(text[:_GOLDEN_LETTERS] for text in run.held_out_texts())]

    def golden(self) -> list[Request]:
        """Return requests on held-out texts with the answers of the Keras model."""
        requests = []
        for number, size in enumerate(_GOLDEN_BATCHES):
            batch = [self._texts[(number + place) % len(self._texts)] for place in range(size)]
            name = "score" if number % 2 else "serving_default"
            requests.append(self._golden_scores(name, batch))
        return requests + self._golden_steps(self._texts[:4])

    def streamed(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Compute log-probabilities of the next token by the Keras model and by `step`."""
        texts = self._texts[1 : _STREAMED_TEXTS + 1]
        state = tf.zeros((len(texts), self.module.state_size))
        columns = self._preprocessor.tokens(tf.constant(texts), limit=False).to_tensor("")
        ids = np.zeros((len(texts), 0), np.int32)
        for tokens in tf.transpose(columns)[:_STREAMED_TOKENS]:
            answer = self.signatures["step"](token=tokens, state=state)
            state = answer["state"]
            ids = np.concatenate([ids, self._preprocessor(tokens, limit=False)], axis=1)
            alive = tokens.numpy() != b""
            yield self._next(ids)[alive], answer["log_probability"].numpy()[alive]

    def card(self) -> dict[str, Any]:
        """Return this task's entries of the model card."""
        return {
            "unit": self._run.unit,
            "vocabulary_size": len(self._run.vocabulary),
            "parameters": self._model.count_params(),
            "streaming": True,
            "streaming_state_size": self.module.state_size,
            "next_tokens": self.module.next_count,
        }

    def _log_softmax(self, ids: np.ndarray) -> np.ndarray:
        """Return log-probabilities of the token after each place of (B, T), (B, T + 1, V - 1)."""
        ends = np.full((len(ids), 1), END_ID, np.int32)
        logits = self._model(np.concatenate([ends, ids], axis=1), training=False)
        found: np.ndarray = tf.nn.log_softmax(logits).numpy()
        return found

    def _next(self, ids: np.ndarray) -> np.ndarray:
        """Compute log-probabilities of the likeliest next tokens after texts (B, T), (B, K)."""
        lengths = (ids != PADDING).sum(axis=1)
        after = self._log_softmax(ids)[np.arange(len(ids)), lengths]
        return -np.sort(-after, axis=1)[:, : self.module.next_count]

    def _golden_scores(self, name: str, texts: Sequence[str]) -> Request:
        ids = self._preprocessor(tf.constant(texts), limit=False).numpy()
        whole = self._log_softmax(ids)
        lengths = (ids != PADDING).sum(axis=1).astype(np.int32)
        places = np.maximum(ids - 1, 0)[..., np.newaxis]
        found = np.take_along_axis(whole[:, :-1], places, axis=2)[..., 0] * (ids != PADDING)
        tokens = self._preprocessor.tokens(tf.constant(texts), limit=False)
        padded = tokens.to_tensor("", shape=(None, ids.shape[1])).numpy()
        outputs = {
            "log_likelihood": found.sum(axis=1),
            "end_log_probability": whole[np.arange(len(ids)), lengths, END_ID - 1],
            "tokens": padded,
            "log_probabilities": found,
            "length": lengths,
        }
        return Request(name, {"text": encoded(texts)}, outputs)

    def _golden_steps(self, texts: Sequence[str]) -> list[Request]:
        """Make a chain of steps; each takes the state returned by the previous one."""
        requests = []
        state = np.zeros((len(texts), self.module.state_size), np.float32)
        columns = self._preprocessor.tokens(tf.constant(texts), limit=False)
        ids = np.zeros((len(texts), 0), np.int32)
        for tokens in tf.transpose(columns.to_tensor(""))[:_STEPPED_TOKENS]:
            answer = self.signatures["step"](token=tokens, state=tf.constant(state))
            outputs = {name: value.numpy() for name, value in answer.items()}
            ids = np.concatenate([ids, self._preprocessor(tokens, limit=False)], axis=1)
            outputs["log_probability"] = self._next_of_rows(ids)
            request = Request("step", {"token": tokens.numpy(), "state": state}, outputs)
            if -np.diff(outputs["log_probability"], axis=1).max(initial=-np.inf) > _GAP:
                requests.append(request)
            state = outputs["state"]
        return requests or [request]

    def _next_of_rows(self, ids: np.ndarray) -> np.ndarray:
        """Return the next tokens of rows with padding between tokens, where texts had ended."""
        rows = [row[row != PADDING] for row in ids]
        padded = np.zeros((len(rows), max(map(len, rows))), np.int32)
        for target, row in zip(padded, rows, strict=True):
            target[: len(row)] = row
        return self._next(padded)
