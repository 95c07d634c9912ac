"""What one task has learned of texts and another one can begin with.

Tasks do not import each other: `gru_training.task.Task.encoder` hands this over.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class EncoderWeights(NamedTuple):
    """Words, their vectors, and the GRUs that read these one after the other."""

    words: tuple[str, ...]
    """W words, without padding and the unknown word."""
    vectors: np.ndarray
    """(2 + W, E): of padding, of the unknown word, and of the words in their order."""
    grus: tuple[tuple[np.ndarray, ...], ...]
    """Of each layer, the lowest first, kernel, recurrent kernel and bias of a `keras_gru.GRU`."""


@dataclass(frozen=True)
class TextEncoder:
    """An embedding and stacked GRUs over plain words, which read from left to right."""

    embedding_size: int
    """E."""
    units: int
    """Of each GRU."""
    layers: int
    load: Callable[[], EncoderWeights]
    """Reads the weights; loads TensorFlow."""
    texts: Callable[[], Sequence[str]]
    """Reads again what it has learned from, or raises TrainingError; needs no TensorFlow."""
