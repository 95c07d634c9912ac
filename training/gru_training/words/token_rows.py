"""Labelled texts as a model reads them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from gru_training.words.vocabulary import RESERVED


@dataclass(frozen=True)
class TokenRows:
    """One part of a data set."""

    ids: Sequence[np.ndarray]
    """N rows of word ids, each (T_i,) int32."""
    labels: np.ndarray
    """Indices into the classes, (N,) int32; 0 and 1 for each label, (N, C) float32; or numbers
    (N,) float32."""
    weights: np.ndarray | None = None
    """Weights of the rows in the loss, (N,) float64; None: all count the same."""

    @property
    def row_weights(self) -> np.ndarray | None:
        """The weights with a mean of 1, (N,), so that only their ratios matter."""
        return None if self.weights is None else self.weights / self.weights.mean()


def members_of(labels: np.ndarray, number: int) -> np.ndarray:
    """Which rows are of a class or have a label, (N,) bool."""
    return np.asarray(labels == number if labels.ndim == 1 else labels[:, number] > 0.5)


def word_counts(rows: Sequence[np.ndarray], words: int) -> sp.csr_matrix:
    """How often each text holds each word.

    Args:
        rows: N rows of word ids.
        words: W; ids from there on are passed over, and so are the reserved ones.

    Returns:
        (N, W) float32.
    """
    ids = np.concatenate([np.zeros(0, np.int32), *rows])
    texts = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    known = (ids >= len(RESERVED)) & (ids < words)
    ones = np.ones(known.sum(), np.float32)
    return sp.csr_matrix((ones, (texts[known], ids[known])), (len(rows), words))
