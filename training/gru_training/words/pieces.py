"""Pieces of words, which related and misspelt words share."""

from collections.abc import Sequence
from itertools import islice
from zlib import crc32

import numpy as np

BUCKETS = 20_000
"""Pieces are told apart by a hash of so many values."""
_LENGTHS = (3, 4, 5)
_MOST = 32  # pieces of one word


def word_pieces(tokens: Sequence[str]) -> np.ndarray:
    """The pieces of each word: its substrings of 3 to 5 letters, beginning and end marked.

    After Bojanowski et al. (2017), "Enriching Word Vectors with Subword Information", section 3.2.
    Tokens that do not begin with a letter, the reserved ones among them, have none.

    Args:
        tokens: V of them.

    Returns:
        (V, P) int32: numbers 1 to `BUCKETS`, 0 where a word has fewer than P; of longer words the
        first 32 pieces, short ones first.
    """
    rows = [list(islice(_pieces(token), _MOST)) for token in tokens]
    table = np.zeros((len(rows), max(map(len, rows), default=0)), np.int32)
    for row, pieces in zip(table, rows, strict=True):
        row[: len(pieces)] = pieces
    return table


def _pieces(token: str) -> dict[int, None]:
    """Their numbers, each once, in order."""
    if not token[:1].isalpha():
        return {}
    marked = f"<{token}>"
    return dict.fromkeys(
        1 + crc32(marked[start : start + length].encode()) % BUCKETS
        for length in _LENGTHS
        for start in range(len(marked) - length + 1)
    )
