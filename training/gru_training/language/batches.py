"""Batches of documents side by side, chunk by chunk, with the state carried from chunk to chunk.

Each row of a batch reads one document after the other. A chunk holds at most a fixed number of
steps of each row's document. A row whose document ends within a chunk continues with the next
document only in the next chunk, so that each document begins with a new state at the beginning of a
chunk. To waste little, documents of similar length follow each other, and a chunk is cut when no
row has any tokens left.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gru_serving.preprocessing.texts import PADDING
from gru_training.language.reading import END_ID

_POOL = 50
"""Number of batches whose documents are sorted by length together: more wastes less and mixes
less.
"""
_WIDTHS = 4
"""Lengths of chunks; the network is compiled for each."""
_PASSAGES = 4
"""Fewest passages per row into which long documents are cut."""


class Chunk(NamedTuple):
    """The inputs and targets of one step."""

    ids: np.ndarray
    """(B, T) int32: the token before each target, `END` at the beginning of a document; padded with
    0 at the end."""
    goes_on: np.ndarray
    """(B,) bool: whether the row's document began in an earlier chunk."""


class ChunkBatch(NamedTuple):
    """The input of one step with N targets."""

    inputs: Chunk
    targets: np.ndarray
    """(N,) int32: the token after each id that is not padding, row by row."""


class DocumentChunks:
    """Batches of chunks; the order of an epoch follows from seed and epoch number alone.

    Args:
        rows: Token ids of each document, without its end.
        batch_size: B, rows read side by side.
        steps: T, most steps of a chunk.
        seed: Seed of the order; None for the order of length, with no document cut, as for
            evaluation.
    """

    def __init__(
        self, rows: Sequence[np.ndarray], batch_size: int, steps: int, seed: int | None = None
    ):
        self._batch_size, self._steps, self._seed = batch_size, steps, seed
        # Chunks have few lengths, and none is much longer than the documents.
        self._grain = max(1, math.ceil(steps / _WIDTHS))
        total = sum(map(len, rows)) + len(rows)
        longest = total if seed is None else max(steps, total // (_PASSAGES * batch_size))
        self._passages = [passage for row in rows for passage in _passages(row, longest)]
        self._lengths = np.array([len(passage) - 1 for passage in self._passages])
        self.tokens = int(self._lengths.sum())
        self._count: int | None = None

    def __len__(self) -> int:
        """Number of batches of the first epoch; others may have a few more or fewer."""
        if self._count is None:
            self._count = sum(1 for _ in self.epoch(1))
        return self._count

    def epoch(self, number: int) -> Iterator[ChunkBatch]:
        """Yield the chunks of one epoch."""
        return self._chunks(self._order(number))

    def __iter__(self) -> Iterator[ChunkBatch]:
        """Yield all chunks in the order of length."""
        return self._chunks(np.argsort(-self._lengths, kind="stable"))

    def _order(self, number: int) -> np.ndarray:
        rng = np.random.default_rng((self._seed or 0, number))
        order = rng.permutation(len(self._passages))
        groups: list[np.ndarray] = []
        size = self._batch_size * _POOL
        for start in range(0, len(order), size):
            pool = order[start : start + size]
            pool = pool[np.argsort(-self._lengths[pool], kind="stable")]
            groups += np.split(pool, range(self._batch_size, len(pool), self._batch_size))
        return np.concatenate([groups[index] for index in rng.permutation(len(groups))])

    def _chunks(self, order: np.ndarray) -> Iterator[ChunkBatch]:
        waiting = iter(order)
        rows = [_Row() for _ in range(self._batch_size)]
        while True:
            for row in rows:
                if not row.left and (number := next(waiting, None)) is not None:
                    row.begin(self._passages[number])
            longest = max(row.left for row in rows)
            if not longest:
                return
            width = min(self._steps, self._grain * math.ceil(longest / self._grain))
            ids = np.full((len(rows), width), PADDING, np.int32)
            goes_on = np.array([row.place > 0 for row in rows])
            targets = [row.read(width, into) for row, into in zip(rows, ids, strict=True)]
            yield ChunkBatch(Chunk(ids, goes_on), np.concatenate(targets))


class _Row:
    """The position of one row of the batch in its document."""

    def __init__(self) -> None:
        self._ids = np.zeros(1, np.int32)
        self.place = 0

    @property
    def left(self) -> int:
        """Number of remaining targets."""
        return len(self._ids) - 1 - self.place

    def begin(self, ids: np.ndarray) -> None:
        """Take the next document."""
        self._ids, self.place = ids, 0

    def read(self, most: int, into: np.ndarray) -> np.ndarray:
        """Write the next ids and return their targets."""
        end = self.place + min(most, self.left)
        part = self._ids[self.place : end + 1]
        into[: len(part) - 1] = part[:-1]
        self.place = end
        return part[1:]


def _passages(row: np.ndarray, longest: int) -> Iterator[np.ndarray]:
    """Cut a document with its ends into passages (T + 1,) of T targets, at most this many.

    Each id but the first is a target of the one before.
    """
    ends = np.array([END_ID], np.int32)
    ids = np.concatenate([ends, row.astype(np.int32, copy=False), ends])
    for start in range(0, len(ids) - 1, longest):
        yield ids[start : start + longest + 1]
