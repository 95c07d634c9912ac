"""Tags the rows of a table: lists of digits, of the same length or not."""

import numpy as np
import pyarrow as pa
import tensorflow as tf

from gru_training.scoring.scorer import BatchLimits, RowError
from keras_gru import portable


class TaggingScorer:
    inputs = ("tokens",)
    limits = BatchLimits(steps=256, rows=20)
    answers = pa.schema([("tags", pa.list_(pa.int64())), ("sure", pa.float32())])

    def __init__(self, run):
        self.identity = {"run": run.digest(["model.keras"])}
        model = run.load_model()

        @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int32)])
        def scores(tokens):
            return tf.nn.softmax(model(tokens, training=False))

        with portable():
            self.scores = scores.get_concrete_function()

    def read(self, rows):
        return Sequences(self, rows.column("tokens").to_pylist())


class Sequences:
    def __init__(self, scorer, rows):
        for number, row in enumerate(rows):
            if not row:
                raise RowError(number, "tokens", f"expected digits, got {row!r}")
        self._scorer, self._rows = scorer, rows
        self.lengths = np.array([len(row) for row in rows], np.int64)

    def answer(self, rows):
        tokens = np.zeros((len(rows), self.lengths[rows].max()), np.int32)
        for target, row in zip(tokens, rows, strict=True):
            target[: self.lengths[row]] = self._rows[row]
        scores = self._scorer.scores(tokens).numpy()
        pairs = list(zip(scores, self.lengths[rows], strict=True))
        tags = [one[:length].argmax(-1).tolist() for one, length in pairs]
        sure = [one[:length].max(-1).min() for one, length in pairs]
        return pa.RecordBatch.from_arrays(
            [pa.array(tags, pa.list_(pa.int64())), pa.array(sure, pa.float32())],
            schema=self._scorer.answers,
        )
