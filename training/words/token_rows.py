"""Labelled texts as a model reads them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from training.words.vocabulary import RESERVED


@dataclass(frozen=True)
class TokenRows:
    """One part of a data set."""

    ids: Sequence[np.ndarray]
    """N rows of word ids, each (T_i,) int32."""
    labels: np.ndarray
    """(N,) int32: indices into the classes."""


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
