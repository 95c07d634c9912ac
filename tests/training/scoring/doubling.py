"""A scorer without a model, whose answers follow from the rows alone."""

import threading
import time

import numpy as np
import pyarrow as pa

from gru_training.scoring.scorer import BatchLimits, RowError


class Doubling:
    """Reads `word`; answers it twice over, and its length.

    It notes the sizes of its batches, (rows, longest).
    """

    inputs = ("word",)
    answers = pa.schema([("twice", pa.string()), ("size", pa.int32())])

    def __init__(self, limits=None, delay=0.0, identity="doubling"):
        self.limits, self.delay = limits or BatchLimits(steps=60, rows=8), delay
        self.identity = {"model": identity}
        self.asked, self.most_at_once, self._now = [], 0, 0
        self._lock = threading.Lock()

    def read(self, rows):
        return Words(self, rows.column("word").to_pylist())


class Words:
    def __init__(self, scorer, words):
        if None in words:
            raise RowError(words.index(None), "word", "expected a word, got none")
        self._scorer, self._words = scorer, words
        self.lengths = np.array([len(word) for word in words], np.int64)

    def answer(self, rows):
        scorer, words = self._scorer, [self._words[row] for row in rows]
        with scorer._lock:
            scorer.asked.append((len(words), max(map(len, words))))
            scorer._now += 1
            scorer.most_at_once = max(scorer.most_at_once, scorer._now)
        time.sleep(scorer.delay)
        with scorer._lock:
            scorer._now -= 1
        return pa.RecordBatch.from_pylist(
            [{"twice": word * 2, "size": len(word)} for word in words], schema=scorer.answers
        )
