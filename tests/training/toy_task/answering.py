"""The same task with runs that answer the rows of tables and can be compared."""

import numpy as np
import pyarrow as pa
import tensorflow as tf

from gru_training.errors import TrainingError
from gru_training.outcomes import Answers, Outcomes, mean_measure
from gru_training.scoring.scorer import BatchLimits, RowError
from gru_training.task import Comparable, Scorable

from .task import TaggingTask


class TaggingScorer:
    inputs = ("tokens",)
    limits = BatchLimits(steps=256, rows=20)
    answers = pa.schema([("tags", pa.list_(pa.int64())), ("sure", pa.float32())])

    def __init__(self, run):
        self.identity, self.model = {"run": run.digest(["model.keras"])}, run.load_model()

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
        tags, sure = [], []
        for row in rows:
            (scores,) = tf.nn.softmax(self._scorer.model(np.array([self._rows[row]]))).numpy()
            tags.append(scores.argmax(-1).tolist())
            sure.append(scores.max(-1).min())
        columns = [pa.array(tags, pa.list_(pa.int64())), pa.array(sure, pa.float32())]
        return pa.RecordBatch.from_arrays(columns, schema=self._scorer.answers)


COLUMNS = {"tokens": ("tokens", "digits")}


class AnsweringTask(TaggingTask, Scorable, Comparable):
    scored_columns = COLUMNS

    def scorer(self, run):
        return TaggingScorer(run)

    def outcomes(self, run, data, like):
        if data is not None:
            raise TrainingError(f"{data}: made-up sequences are not read from files")
        tokens = np.load(run.path / "test.npy")
        answered = run.load_model().predict(tokens, verbose=0).argmax(-1)
        right = answered[:, 1:] == (tokens[:, 1:] < tokens[:, :-1])
        whole = right.all(axis=1)
        measures = (
            mean_measure("sequences right", whole, higher_is_better=True, style=".1%"),
            mean_measure("tags wrong", (~right).sum(axis=1), higher_is_better=False),
        )
        keys = np.array([f"{number} {row}" for number, row in enumerate(tokens.tolist())])
        return Outcomes("held-out sequences", keys, Answers(measures, whole))


TASK = AnsweringTask()
