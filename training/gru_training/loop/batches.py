"""Padded batches of rows of similar length."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np


class Batch(NamedTuple):
    """The input of one step."""

    inputs: np.ndarray
    """(B, T) int32, padded with 0 to the batch's longest row."""
    targets: np.ndarray
    """(B,) or (B, C)."""


class Drawn(NamedTuple):
    """A group of rows of which each epoch reads only some, such as earlier ones."""

    first: int
    """Number of the first of these rows among all rows."""
    rows: int
    """Number of these rows, which are consecutive."""
    share: float
    """Share of these rows that is drawn anew for each epoch."""

    @property
    def read(self) -> int:
        """Number of these rows that an epoch reads."""
        return round(self.share * self.rows)

    @property
    def left_out(self) -> int:
        """Number of these rows that an epoch does not read."""
        return self.rows - self.read

    def drawn(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the rows of an epoch, of `count` in all."""
        if not self.rows:
            return np.arange(count)
        chosen = self.first + rng.choice(self.rows, self.read, replace=False)
        after = np.arange(self.first + self.rows, count)
        return np.concatenate([np.arange(self.first), chosen, after])


ALL_ROWS = Drawn(0, 0, 1.0)
"""An epoch reads every row."""


class LengthBucketedBatches:
    """Batches over rows of different length, with little padding.

    Shuffled rows are cut into pools of many batches, each pool is sorted by length and cut into
    batches, and the batches are shuffled. The order of an epoch follows from seed and epoch
    number alone.

    Args:
        rows: N arrays of ids, each (T_i,) int32.
        targets: Targets, (N,) or (N, C).
        batch_size: Rows per batch; the last batch of a pool may hold fewer.
        seed: Seed of the shuffling.
        pool: Batches per pool: more means less padding and less mixing.
        drawn: Rows of which an epoch reads only some; none by default.
    """

    def __init__(
        self,
        rows: Sequence[np.ndarray],
        targets: np.ndarray,
        batch_size: int,
        seed: int = 0,
        pool: int = 50,
        drawn: Drawn = ALL_ROWS,
    ):
        self._rows, self._targets = rows, targets
        self._batch_size, self._seed, self._pool = batch_size, seed, pool
        self._drawn = drawn
        self._lengths = np.array([len(row) for row in rows])

    def __len__(self) -> int:
        """Number of batches per epoch."""
        return math.ceil(self._count / self._batch_size)

    @property
    def _count(self) -> int:
        """Number of rows per epoch."""
        return len(self._rows) - self._drawn.left_out

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield the batches of one epoch."""
        rng = np.random.default_rng((self._seed, number))
        order = rng.permutation(self._drawn.drawn(len(self._rows), rng))
        size = self._batch_size * self._pool
        batches: list[np.ndarray] = []
        for start in range(0, len(order), size):
            pool = order[start : start + size]
            pool = pool[np.argsort(self._lengths[pool], kind="stable")]
            batches += np.split(pool, range(self._batch_size, len(pool), self._batch_size))
        for index in rng.permutation(len(batches)):
            yield self._batch(batches[index])

    def in_length_order(self) -> Iterator[Batch]:
        """Yield the batches for evaluation, unshuffled; `length_order` maps them to the rows.

        Their sizes differ by at most one row; a small last batch would be compiled for separately.
        """
        count = math.ceil(len(self._rows) / self._batch_size)
        for indices in np.array_split(self.length_order(), count):
            yield self._batch(indices)

    def length_order(self) -> np.ndarray:
        """Return the row numbers (N,) in the order of `in_length_order`."""
        return np.argsort(self._lengths, kind="stable")

    def _batch(self, indices: np.ndarray) -> Batch:
        inputs = np.zeros((len(indices), self._lengths[indices].max()), np.int32)
        for row, index in zip(inputs, indices, strict=True):
            row[: self._lengths[index]] = self._rows[index]
        return Batch(inputs, self._targets[indices])
