"""The Keras model of a run as a scorer of texts, for runs that ONNX cannot express."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pyarrow as pa
import tensorflow as tf

from gru_training.scoring.class_columns import answer_columns
from gru_training.scoring.scorer import BatchLimits
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.served.head import Head
from gru_training.sentiment.served.scorer import SLICE, STORED, TokenizedTexts, strings
from gru_training.words.vocabulary import TextPreprocessor
from keras_gru import portable


class KerasScorer:
    """The model of a sentiment run in TensorFlow, with the answers of the exported model.

    A missing text counts as empty; its answer is about the shares of the classes.

    Args:
        run: A complete run.
    """

    inputs = ("text",)
    limits = BatchLimits(steps=1 << 14, rows=512, in_flight=2)  # the fastest on two cores

    def __init__(self, run: SentimentRun) -> None:
        self.identity = {"run": STORED.digest(run)}
        self._columns = answer_columns(run.kind, run.classes)
        self.answers = self._columns.schema
        self._preprocessor = run.preprocessor()
        self._answers = _answers(run.load_model(), run.head())

    def read(self, rows: pa.RecordBatch) -> TokenizedTexts:
        """Tokenize texts, in the background.

        Raises:
            RowError: The column holds no texts.
        """
        parts = _tokenized(strings(rows.column("text")), self._preprocessor)
        return TokenizedTexts(self.answer, lambda: parts)

    def answer(self, ids: np.ndarray) -> pa.RecordBatch:
        """Label texts of word ids, (B, T) int32, padded with 0."""
        outputs = {name: value.numpy() for name, value in self._answers(ids).items()}
        return self._columns.batch(outputs)


def _answers(model: keras.Model, head: Head) -> Any:
    """Trace the computation from word ids (B, T) to answers by name, as in the exported model."""

    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int32)], autograph=False)
    def answers(ids: tf.Tensor) -> dict[str, tf.Tensor]:
        return head.answers(model(ids, training=False))

    with portable():  # else XLA would compile for every shape, which few files would repay
        return answers.get_concrete_function()


def _tokenized(
    texts: list[bytes], preprocessor: TextPreprocessor
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield word ids and their counts, slice by slice.

    Started at once on TensorFlow's own threads.
    """

    def read(part: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        ids = preprocessor.ragged_ids(part)
        return ids.flat_values, ids.row_lengths()

    slices = tf.data.Dataset.from_tensor_slices(tf.constant(texts, tf.string)).batch(SLICE)
    parts = slices.map(read, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    return iter(parts.as_numpy_iterator())
