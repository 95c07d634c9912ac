"""The export of a text classifier: its signatures, golden requests, warmup and parity.

Besides `serving.export` the only module here that imports keras_gru or training.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_gru import portable
from serving.json_example import parse_examples
from serving.protos.prediction_log_pb2 import PredictionLog
from serving.signature import CLASSIFY_METHOD
from serving.warmup import predict_record
from training.sentiment_run import SentimentRun
from training.sentiment_signatures import SentimentSignatures

_GOLDEN_BATCHES = (1, 1, 2, 12, 32)
_WARMUP_BATCHES = (1, 2, 8, 32)
_SHOWN_WORDS = 12
_PARITY_TEXTS, _PARITY_TOKENS = 32, 64


class SentimentExport:
    """What `serving.export` asks of a task.

    Args:
        run: a complete run of the sentiment task.
    """

    task = "sentiment"

    def __init__(self, run: SentimentRun) -> None:
        self._run = run
        self.methods = {"classify": CLASSIFY_METHOD}
        self._model = run.load_model()
        self._preprocessor = run.preprocessor()
        # As a graph: hundreds of short texts run through it, each of another length.
        self._logits = tf.function(
            functools.partial(self._model, training=False),
            input_signature=[tf.TensorSpec((None, None), tf.int32)],
        )
        with portable():  # else XLA would compile for many of the lengths
            self._logits.get_concrete_function()
        self._temperature = run.temperature.value
        self.module = SentimentSignatures(
            self._model, self._preprocessor, run.classes, self._temperature
        )
        self.signatures: dict[str, Any] = self.module.by_name()
        self._texts = ["", *(row.text for row in itertools.islice(run.test_predictions(), 200))]

    def golden(self) -> list[dict[str, Any]]:
        """Requests on held-out texts, with the answers of the Keras model."""
        requests: list[dict[str, Any]] = []
        start = 0
        for size in _GOLDEN_BATCHES:
            batch = self._texts[start : start + size] or self._texts[:size]
            start += size
            requests.append(
                {
                    "method": "predict",
                    "signature_name": "serving_default",
                    "inputs": {"text": batch},
                    "outputs": self._answers(self._scores(batch)),
                }
            )
        examples = self._texts[:8]
        outputs = {
            "classes": [list(self._run.classes)] * len(examples),
            "scores": _plain(self._scores(examples)),
        }
        requests.append(
            {
                "method": "classify",
                "signature_name": "classify",
                "examples": [{"text": text} for text in examples],
                "outputs": outputs,
            }
        )
        shown = [" ".join(text.split()[:_SHOWN_WORDS]) for text in self._texts[1:4]]
        requests += [self._golden_gates(batch) for batch in (shown[:1], shown)]
        if "step" in self.signatures:
            requests += self._golden_steps(shown)
        return requests

    def warmup(self) -> list[PredictionLog]:
        """Requests for every signature, with the batch sizes and text lengths in use."""
        texts = sorted(self._texts[1:], key=len)
        lengths = [texts[round(q * (len(texts) - 1))] for q in (0.0, 0.5, 0.95, 1.0)]
        batches = [list(itertools.islice(itertools.cycle(lengths), n)) for n in _WARMUP_BATCHES]
        batches = [[text] for text in lengths] + batches[1:]
        records = [
            predict_record({"text": _strings(batch)}, "serving_default") for batch in batches
        ]
        records += [
            _classify_record([{"text": text} for text in batch], "classify")
            for batch in batches[::3]
        ]
        records.append(predict_record({"text": _strings(lengths[:2])}, "gates"))
        if "step" in self.signatures:
            for size in _WARMUP_BATCHES:
                state = np.zeros((size, self.module.state_size), np.float32)
                words = _strings(texts[0].split()[:1] * size)
                records.append(predict_record({"token": words, "state": state}, "step"))
        return records

    def parity(self) -> dict[str, Any] | None:
        """How far streaming, token by token, is from the Keras model on the text so far.

        None where the model cannot stream.
        """
        if "step" not in self.signatures:
            return None
        largest, steps, differing = 0.0, 0, 0
        texts = self._texts[1 : _PARITY_TEXTS + 1]
        for tokens, alive in self._token_columns(texts):
            if steps == 0:
                state = tf.zeros((len(texts), self.module.state_size))
                ids = np.zeros((len(texts), 0), np.int32)
            answer = self.signatures["step"](token=tokens, state=state)
            state = answer["state"]
            ids = np.concatenate([ids, self._preprocessor(tokens)], axis=1)
            expected = self._scores_of(ids)
            gap = np.abs(expected - answer["scores"].numpy())[alive]
            largest, steps = max(largest, float(gap.max())), steps + 1
            differing += int((gap.max(axis=1) > 0).sum())
        return {
            "rows": len(texts),
            "steps": steps,
            "steps_that_differ_at_all": differing,
            "largest_difference": largest,
        }

    def card(self) -> dict[str, Any]:
        """What of this task belongs on the model card."""
        return {
            "task": self.task,
            "classes": list(self._run.classes),
            "parameters": self._model.count_params(),
            "temperature": self._temperature,
            "vocabulary_size": len(self._run.vocabulary),
            "streaming": "step" in self.signatures,
            "streaming_state_size": self.module.state_size if "step" in self.signatures else None,
        }

    def _scores(self, texts: Sequence[str]) -> np.ndarray:
        return self._scores_of(self._preprocessor(tf.constant(texts)))

    def _scores_of(self, token_ids: Any) -> np.ndarray:
        logits = self._logits(token_ids) / np.float32(self._temperature)
        scores: np.ndarray = keras.ops.convert_to_numpy(keras.ops.softmax(logits))
        return scores

    def _answers(self, scores: np.ndarray) -> dict[str, Any]:
        return {
            "label": [self._run.classes[i] for i in scores.argmax(-1)],
            "probability": _plain(scores.max(-1)),
            "scores": _plain(scores),
        }

    def _golden_gates(self, texts: list[str]) -> dict[str, Any]:
        # The signature's own arithmetic for the gates; for the scores the model on each prefix.
        outputs = {
            name: value.numpy()
            for name, value in self.signatures["gates"](tf.constant(texts)).items()
        }
        ids = self._preprocessor(tf.constant(texts)).numpy()
        for t in range(ids.shape[1]):
            so_far = self._scores_of(ids[:, : t + 1])
            outputs["scores"][:, t] = so_far * (ids[:, t : t + 1] != 0)
        tokens = [[token.decode() for token in row] for row in outputs.pop("tokens")]
        return {
            "method": "predict",
            "signature_name": "gates",
            "inputs": {"text": texts},
            "outputs": {"tokens": tokens, **{k: _plain(v) for k, v in outputs.items()}},
        }

    def _golden_steps(self, texts: list[str]) -> list[dict[str, Any]]:
        """A chain of steps; each takes the state that the Keras model's own layers lead to."""
        requests = []
        state = np.zeros((len(texts), self.module.state_size), np.float32)
        ids = np.zeros((len(texts), 0), np.int32)
        for tokens, _ in self._token_columns(texts):
            answer = self.signatures["step"](token=tokens, state=tf.constant(state))
            ids = np.concatenate([ids, self._preprocessor(tokens)], axis=1)
            scores = self._scores_of(ids)
            requests.append(
                {
                    "method": "predict",
                    "signature_name": "step",
                    "inputs": {
                        "token": [token.decode() for token in tokens.numpy()],
                        "state": _plain(state),
                    },
                    "outputs": {**self._answers(scores), "state": _plain(answer["state"].numpy())},
                }
            )
            state = answer["state"].numpy()
        return requests

    def _token_columns(self, texts: Sequence[str]) -> Iterator[tuple[Any, np.ndarray]]:
        """The tokens of texts, one of each at a time, and which texts have one there."""
        columns = self._preprocessor.tokens(tf.constant(texts)).to_tensor("")
        for t in range(min(columns.shape[1], _PARITY_TOKENS)):
            yield columns[:, t], columns[:, t].numpy() != b""


def _classify_record(examples: Sequence[Mapping[str, Any]], signature_name: str) -> PredictionLog:
    """A warmup record that runs Classify with these examples, values by feature name."""
    log = PredictionLog()
    request = log.classify_log.request
    request.model_spec.signature_name = signature_name
    request.input.CopyFrom(parse_examples(json.dumps({"examples": list(examples)}).encode())[0])
    return log


def _plain(array: np.ndarray) -> Any:
    """Float32 as JSON numbers with the digits that a float32 has."""
    if array.ndim == 0:
        return float(f"{array:.9g}")
    return [_plain(row) for row in array]


def _strings(texts: Sequence[str]) -> np.ndarray:
    array = np.empty(len(texts), object)
    array[:] = [text.encode() for text in texts]
    return array
