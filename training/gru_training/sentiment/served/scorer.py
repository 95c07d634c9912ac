"""What a trained text classifier answers to the texts of a table."""

import functools
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pyarrow as pa
import tensorflow as tf

from gru_training.scoring.class_columns import answer_columns
from gru_training.scoring.scorer import BatchLimits
from gru_training.scoring.text_column import text_column
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.served.head import Head
from gru_training.words.vocabulary import PADDING, TextPreprocessor
from keras_gru import portable

_SLICE = 512
"""Texts tokenized at once, by one core."""
_FILES = (
    "config.json",
    "model.keras",
    "classes.json",
    "vocabulary.txt",
    "temperature.json",
    "text_rules.json",
    "decision.json",
    "scale.json",
)


class SentimentScorer:
    """The model of a sentiment run; answers as the exported model does.

    A missing text is read as an empty one. Of an empty text the answer is what the model says
    before it has read a word.

    Args:
        run: Complete.
    """

    inputs = ("text",)
    limits = BatchLimits(steps=1 << 14, rows=512, in_flight=2)  # the fastest on two cores

    def __init__(self, run: SentimentRun) -> None:
        files = [name for name in _FILES if (run.path / name).is_file()]
        self.identity = {"run": run.digest(files)}
        self._columns = answer_columns(run.kind, run.classes)
        self.answers = self._columns.schema
        self._preprocessor = run.preprocessor()
        self._answers = _answers(run.load_model(), run.head())

    def read(self, rows: pa.RecordBatch) -> "TokenizedTexts":
        """Tokenize texts, in the background.

        Raises:
            RowError: The column holds no texts.
        """
        return TokenizedTexts(self, rows.column("text"), self._preprocessor)

    def answer(self, ids: np.ndarray) -> pa.RecordBatch:
        """Label texts of word ids, (B, T) int32, padded with 0."""
        outputs = {name: value.numpy() for name, value in self._answers(ids).items()}
        return self._columns.batch(outputs)


class TokenizedTexts:
    """N texts as word ids.

    Args:
        scorer: Answers them.
        texts: A string array; missing ones are read as empty.
        preprocessor: From text to word ids.
    """

    def __init__(self, scorer: SentimentScorer, texts: pa.Array, preprocessor: TextPreprocessor):
        self._scorer = scorer
        self._parts = _tokenized(_strings(texts), preprocessor)

    @functools.cached_property
    def _ids(self) -> tuple[np.ndarray, np.ndarray]:
        """All word ids, (sum of lengths,) int32, and the lengths, (N,) int64."""
        flat, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        for ids, counts in self._parts:
            flat.append(ids)
            lengths.append(counts)
        return np.concatenate(flat), np.concatenate(lengths)

    @functools.cached_property
    def _starts(self) -> np.ndarray:
        """Where in the ids each text begins, (N,)."""
        starts: np.ndarray = np.cumsum(self.lengths) - self.lengths
        return starts

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each text, (N,) int64."""
        lengths: np.ndarray = self._ids[1]
        return lengths

    def answer(self, rows: np.ndarray) -> pa.RecordBatch:
        """The labels of some of the texts."""
        lengths = self.lengths[rows]
        padded = np.full((len(rows), max(1, lengths.max())), PADDING, np.int32)  # (B, T)
        steps = np.arange(padded.shape[1])
        there = steps < lengths[:, np.newaxis]
        padded[there] = self._ids[0][(self._starts[rows][:, np.newaxis] + steps)[there]]
        return self._scorer.answer(padded)


def _strings(texts: pa.Array) -> np.ndarray:
    """Texts as bytes."""
    packed = text_column(texts).cast(pa.large_binary())
    strings: np.ndarray = packed.to_numpy(zero_copy_only=False)
    return strings


def _answers(model: keras.Model, head: Head) -> Any:
    """From word ids (B, T) to answers by name, as the exported model computes them."""

    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int32)], autograph=False)
    def answers(ids: tf.Tensor) -> dict[str, tf.Tensor]:
        return head.answers(model(ids, training=False))

    with portable():  # else XLA would compile for every shape, which few files would repay
        return answers.get_concrete_function()


def _tokenized(
    texts: np.ndarray, preprocessor: TextPreprocessor
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Word ids and their counts, slice by slice; begun at once, on TensorFlow's own threads."""

    def read(part: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        ids = preprocessor.ragged_ids(part)
        return ids.flat_values, ids.row_lengths()

    slices = tf.data.Dataset.from_tensor_slices(tf.constant(texts, tf.string)).batch(_SLICE)
    parts = slices.map(read, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    return iter(parts.as_numpy_iterator())
