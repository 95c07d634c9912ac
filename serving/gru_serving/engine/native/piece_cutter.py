"""Words cut into learned pieces, as the graph of the model does it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_REMEMBERED = 50_000
"""Words whose pieces are kept."""
_MOST_REMEMBERED = 64
"""Characters of a word that is kept."""


class PieceCutter:
    """Cuts words into the longest pieces that fit, from left to right.

    Args:
        pieces: What is known.
        most: Characters of a word; longer ones are not cut.
    """

    def __init__(self, pieces: Sequence[str], most: int) -> None:
        self._pieces, self._most = frozenset(pieces), most
        self._longest = max(map(len, pieces))
        self._known: dict[str, tuple[str, ...]] = {}

    def __call__(self, words: Iterable[str]) -> list[str]:
        """The pieces of words; one that no row of pieces makes up stays whole."""
        return [piece for word in words for piece in self._of(word)]

    def _of(self, word: str) -> tuple[str, ...]:
        found = self._known.get(word)
        if found is None:
            found = self._cut(word)
            if len(self._known) < _REMEMBERED and len(word) <= _MOST_REMEMBERED:
                self._known[word] = found
        return found

    def _cut(self, word: str) -> tuple[str, ...]:
        if len(word) > self._most:
            return (word,)
        found, begin = [], 0
        while begin < len(word):
            for end in range(min(len(word), begin + self._longest), begin, -1):
                if word[begin:end] in self._pieces:
                    break
            else:
                return (word,)
            found.append(word[begin:end])
            begin = end
        return tuple(found)
