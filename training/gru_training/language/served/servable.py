"""A language model as an export needs it: its signatures, and requests with its answers."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from gru_training.language.reading import END_ID
from gru_training.language.run import LanguageRun
from gru_training.language.served.signatures import LanguageSignatures
from gru_training.language.shown import shown_texts
from gru_training.servable import WARMUP_BATCHES, Request, Servable, encoded
from gru_training.words.vocabulary import PADDING

_GOLDEN_BATCHES = (1, 1, 3, 8)
_GOLDEN_LETTERS = 200
_STEPPED_TOKENS = 12
_STREAMED_TEXTS, _STREAMED_TOKENS = 16, 48
_GAP = 1e-4
"""Least distance of two next tokens in a request that other machines must answer in this order."""


class LanguageServable(Servable):
    """The model of a language run.

    Args:
        run: Complete.
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
        """Requests on held-out texts, with the answers of the Keras model."""
        requests = []
        for number, size in enumerate(_GOLDEN_BATCHES):
            batch = [self._texts[(number + place) % len(self._texts)] for place in range(size)]
            name = "score" if number % 2 else "serving_default"
            requests.append(self._golden_scores(name, batch))
        return requests + self._golden_steps(self._texts[:4])

    def warmup(self) -> list[Request]:
        """Requests with the batch sizes in use."""
        text = max(self._texts, key=len)
        requests = [Request("score", {"text": encoded([text] * size)}) for size in WARMUP_BATCHES]
        for size in WARMUP_BATCHES:
            state = np.zeros((size, self.module.state_size), np.float32)
            requests.append(Request("step", {"token": encoded(["a"] * size), "state": state}))
        return requests

    def streamed(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Log-probabilities of what comes next, token by token: the Keras model beside `step`."""
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
        """What of this task belongs on the model card."""
        return {
            "unit": self._run.unit,
            "vocabulary_size": len(self._run.vocabulary),
            "parameters": self._model.count_params(),
            "streaming": True,
            "streaming_state_size": self.module.state_size,
            "next_tokens": self.module.next_count,
        }

    def _log_softmax(self, ids: np.ndarray) -> np.ndarray:
        """Of what follows the beginning and each token of texts (B, T), (B, T + 1, V - 1)."""
        ends = np.full((len(ids), 1), END_ID, np.int32)
        logits = self._model(np.concatenate([ends, ids], axis=1), training=False)
        found: np.ndarray = tf.nn.log_softmax(logits).numpy()
        return found

    def _next(self, ids: np.ndarray) -> np.ndarray:
        """Log-probabilities of the likeliest next tokens behind texts (B, T), (B, K)."""
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
        """A chain of steps; each takes the state that the one before led to."""
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
        """As `_next`, of rows that have padding between their tokens, where texts had ended."""
        rows = [row[row != PADDING] for row in ids]
        padded = np.zeros((len(rows), max(map(len, rows))), np.int32)
        for target, row in zip(padded, rows, strict=True):
            target[: len(row)] = row
        return self._next(padded)
