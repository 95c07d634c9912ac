"""N-grams smoothed by interpolated, modified Kneser-Ney discounting.

Chen and Goodman (1998), "An Empirical Study of Smoothing Techniques for Language Modeling",
sections 2.7 and 3: the longest n-grams are counted by their occurrences, all shorter ones by the
different tokens that precede them. A discount D1, D2 or D3 (for counts of 1, 2 and more) is
subtracted from each count and given to the next shorter context; after the shortest one all tokens
are equally likely. As usual, n-grams at the beginning of a document count by their occurrences,
since nothing precedes them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_BEGIN = 0
"""Number that precedes a document: that of padding, which no document contains."""


class _Order(NamedTuple):
    """All n-grams of one length, sorted by their keys."""

    keys: np.ndarray
    """(G,) int64: number of the context, times V, plus the token; distinct and sorted."""
    kept: np.ndarray
    """(G,) remainder of the n-gram's probability after the discount."""
    given: np.ndarray
    """(C,) share of each context that is left for the shorter one."""


class KneserNey:
    """Probabilities of tokens after up to `order - 1` others.

    Args:
        rows: Token ids of each document to count, each (T_i,), with the end of the document as the
            last one; none is 0.
        vocabulary_size: V; ids from 1 to V - 1 are tokens.
        order: Tokens in the longest n-gram.
    """

    def __init__(self, rows: Sequence[np.ndarray], vocabulary_size: int, order: int):
        self.order, self._size = order, vocabulary_size
        tokens, counted = _laid_out(rows, order)
        numbers = _numbered(tokens, vocabulary_size, order)
        self._orders = [
            self._counted(numbers, length, tokens, counted) for length in range(1, order + 1)
        ]

    def probabilities(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        """Compute the probability of each token given those before it, document by document, (N,).

        Args:
            rows: Token ids of each document, as for the constructor.
        """
        tokens, counted = _laid_out(rows, self.order)
        places = np.flatnonzero(counted)
        found = np.full(len(places), 1 / (self._size - 1))
        for length, order in enumerate(self._orders, start=1):
            context = self._contexts(tokens, places, length - 1)
            known = context >= 0
            at, seen = _look_up(order.keys, context[known] * self._size + tokens[places[known]])
            # A context without any counts passes everything on.
            found[known] *= order.given[context[known]]
            found[known] += np.where(seen, order.kept[at], 0)
        return found

    def _contexts(self, tokens: np.ndarray, places: np.ndarray, length: int) -> np.ndarray:
        """Return the numbers of the `length` tokens before places, -1 for unseen ones."""
        numbers = np.zeros(len(places), np.int64)
        for back in range(length, 0, -1):
            order = self._orders[length - back]
            keys = np.where(numbers >= 0, numbers, 0) * self._size + tokens[places - back]
            at, seen = _look_up(order.keys, keys)
            numbers = np.where(seen & (numbers >= 0), at, -1)
        return numbers

    def _counted(
        self, numbers: list["_Numbers"], length: int, tokens: np.ndarray, counted: np.ndarray
    ) -> _Order:
        keys, number = numbers[length - 1]
        size = len(keys)
        counts = np.bincount(number[counted], minlength=size)  # occurrences
        if length < self.order:
            longer_keys, longer = numbers[length]
            # Each different longer n-gram counts once at the place where it ends.
            first = np.full(len(longer_keys), -1)
            places = np.flatnonzero(counted)
            first[longer[places]] = places
            ends = number[first[first >= 0]]
            before = np.bincount(ends, minlength=size)
            begins = np.zeros(size, bool)
            begins[number[places]] = tokens[places - (length - 1)] == _BEGIN
            counts = np.where(begins, counts, before)
        contexts = keys // self._size
        discounts = _discounts(counts)
        taken = discounts[np.minimum(counts, 3)]
        many = int(contexts.max(initial=0)) + 1
        many = max(many, 1 if length == 1 else len(numbers[length - 2].keys))
        totals = np.bincount(contexts, counts, many)
        left = np.bincount(contexts, taken, many)
        some = totals > 0
        given = np.where(some, left / np.where(some, totals, 1), 1.0)
        kept = np.divide(counts - taken, totals[contexts], out=np.zeros(size), where=counts > 0)
        return _Order(keys, kept, given)


class _Numbers(NamedTuple):
    """The different n-grams of one length, and the one that ends at each place."""

    keys: np.ndarray
    number: np.ndarray


def _laid_out(rows: Sequence[np.ndarray], order: int) -> tuple[np.ndarray, np.ndarray]:
    """Concatenate documents with beginnings between them; also returns which places are tokens."""
    pause = np.full(order, _BEGIN, np.int64)
    pieces = [piece for row in rows for piece in (pause, row)]
    tokens = np.concatenate([np.zeros(0, np.int64), *pieces]).astype(np.int64)
    return tokens, tokens != _BEGIN


def _numbered(tokens: np.ndarray, size: int, order: int) -> list[_Numbers]:
    """Number the n-grams that end at each place, including those of beginnings."""
    found: list[_Numbers] = []
    context = np.zeros(len(tokens), np.int64)
    for _ in range(order):
        keys, number = np.unique(context * size + tokens, return_inverse=True)
        found.append(_Numbers(keys, number))
        context = np.concatenate([np.zeros(1, np.int64), number[:-1]])
    return found


def _discounts(counts: np.ndarray) -> np.ndarray:
    """Return the discounts of counts of 0, 1, 2 and more; equation (26) of Chen and Goodman.

    If too few n-grams have these counts for the formula, they are 1/2, 1 and 3/2, as in KenLM.
    """
    n = np.bincount(np.minimum(counts, 5), minlength=5)[1:5].astype(float)
    fallback = np.array([0, 0.5, 1, 1.5])
    if not n.all():
        return fallback
    share = n[0] / (n[0] + 2 * n[1])
    found = np.array([0, *(k - (k + 1) * share * n[k] / n[k - 1] for k in (1, 2, 3))])
    return found if (found[1:] > 0).all() and (found[1:] <= (1, 2, 3)).all() else fallback


def _look_up(keys: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the positions of keys among sorted ones; also returns whether each was found."""
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return at, keys[at] == wanted
