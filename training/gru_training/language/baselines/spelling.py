"""What it costs to spell words that a vocabulary lacks, so that vocabularies can be compared.

A model of words gives an unknown word the probability of `unknown`, and would be the better the
fewer words it knows. With the letters of the unknown word paid for too, the bits are those of a
code from which the text can be read again.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

_STOP = ""
"""Stands for the end of a word."""
_LETTERS = 0x110000
"""Code points that Unicode has; each could be the next."""


@dataclass(frozen=True)
class Spelling:
    """A unigram model of the letters of rare words, with the end of the word as a letter."""

    counts: Mapping[str, int]
    total: int

    @classmethod
    def of(cls, words: Mapping[str, int]) -> "Spelling":
        """Count letters.

        Args:
            words: Rare words with how often they occur.
        """
        counts: Counter[str] = Counter()
        for word, n in words.items():
            for letter in (*word, _STOP):
                counts[letter] += n
        return cls(counts, sum(counts.values()))

    def bits(self, word: str) -> float:
        """What a word costs, in bits.

        A letter that was never counted is one of all code points: these share one count.
        """
        return sum(map(self._bits, (*word, _STOP)))

    def bits_of(self, words: Mapping[str, int]) -> float:
        """What words cost, each as often as it occurs."""
        return sum(n * self.bits(word) for word, n in words.items())

    def _bits(self, letter: str) -> float:
        count = self.counts.get(letter, 0)
        if not count:
            return math.log2(self.total + 1) + math.log2(_LETTERS)
        return math.log2(self.total + 1) - math.log2(count)
