"""Search for texts that are almost the same: a prefix-filtered join of sets of letter sequences.

Two texts are compared exactly by the Jaccard index of their sets of five consecutive letters.
Chaudhuri, Ganti and Kaushik (2006), "A Primitive Operator for Similarity Joins in Data Cleaning":
with all sets in one order, sets with an index of at least t share one of their first |A| - ceil(t
|A|) + 1 elements; with the rarest elements first, few other pairs do.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

_LETTERS = 5
_SAMPLE = 2000
"""Number of texts in which elements are counted to order them."""
_ROUNDING = 1e-9
_MAX_PAIRS = 500_000
"""Number of pairs that are compared, which takes some seconds; among texts from one template all
pairs could be similar.
"""
_MIN_CANDIDATES = 50
"""Number of others with which each text is compared beyond that."""


class NearDuplicate(NamedTuple):
    """A text and the one that it resembles most, by their positions."""

    place: int
    other: int
    similarity: float
    """Similarity of the two texts, from 0 to 1."""


def near_duplicates(
    texts: Sequence[str], others: Sequence[str], least: float
) -> list[NearDuplicate]:
    """Find the texts that resemble one of the others.

    Args:
        texts: N texts, normalised as the caller likes.
        others: M further ones, likewise.
        least: Jaccard index from which on two texts resemble each other, above 0.

    Returns:
        One per such text, in the order of the texts. If more than half a million pairs could be
        similar, the other text is the most similar of fifty, and a text may be missed.
    """
    counts = Counter(
        piece
        for part in (texts, others)
        for text in part[:: max(1, len(part) // _SAMPLE)]
        for piece in _pieces(text)
    )
    sets = [_pieces(text) for text in others]
    index: dict[str, list[int]] = defaultdict(list)
    for number, pieces in enumerate(sets):
        for piece in _first(pieces, counts, least):
            index[piece].append(number)
    found = []
    left = _MAX_PAIRS
    for place, text in enumerate(texts):
        pieces = _pieces(text)
        first = _first(pieces, counts, least)
        candidates = itertools.chain.from_iterable(index.get(piece, ()) for piece in first)
        near = list(itertools.islice(_each_once(candidates), max(left, _MIN_CANDIDATES)))
        left -= len(near)
        similar = [(_jaccard(pieces, sets[number]), -number) for number in near]
        similarity, number = max(similar, default=(0.0, 0))
        if similarity >= least - _ROUNDING:
            found.append(NearDuplicate(place, -number, similarity))
    return found


def _each_once(numbers: Iterable[int]) -> Iterator[int]:
    seen = set[int]()
    for number in numbers:
        if number not in seen:
            seen.add(number)
            yield number


def _pieces(text: str) -> frozenset[str]:
    """Return the sequences of five consecutive letters; a shorter text is a single one."""
    return frozenset(text[k : k + _LETTERS] for k in range(max(1, len(text) - _LETTERS + 1)))


def _first(pieces: frozenset[str], counts: Counter[str], least: float) -> list[str]:
    """Return the rarest elements, of which sufficiently similar sets share one."""
    order = sorted(pieces, key=lambda piece: (counts[piece], piece))
    return order[: len(order) - math.ceil(least * len(order) - _ROUNDING) + 1]


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    both = len(one & other)
    return both / (len(one) + len(other) - both)
