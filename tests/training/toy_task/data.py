"""Sequences of digits; the tag of a digit says whether it is lower than the one before it."""

import math
from typing import NamedTuple

import numpy as np

from gru_training.loop.batches import Batch

LENGTH = 8


class Part(NamedTuple):
    tokens: np.ndarray  # (N, T) int32
    tags: np.ndarray  # (N, T) int32


def make_up(sequences, seed):
    """Training, validation and test sequences."""
    tokens = np.random.default_rng(seed).integers(0, 10, (sequences, LENGTH), np.int32)
    tags = np.zeros_like(tokens)
    tags[:, 1:] = tokens[:, 1:] < tokens[:, :-1]
    whole = Part(tokens, tags)
    ends = {"train": (0, 0.6), "validation": (0.6, 0.8), "test": (0.8, 1)}
    return {
        name: Part(*(array[int(a * sequences) : int(b * sequences)] for array in whole))
        for name, (a, b) in ends.items()
    }


class Batches:
    def __init__(self, part, size, seed):
        self._part, self._size, self._seed = part, size, seed

    def __len__(self):
        return math.ceil(len(self._part.tokens) / self._size)

    def epoch(self, number):
        order = np.random.default_rng((self._seed, number)).permutation(len(self._part.tokens))
        for rows in np.split(order, range(self._size, len(order), self._size)):
            yield Batch(self._part.tokens[rows], self._part.tags[rows])
