"""The share of right answers, measured by outcomes that became known later."""

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

LEVEL = 0.95


class Accuracy(NamedTuple):
    """A share of right answers with the bounds of its 95 % interval (Wilson, 1927)."""

    right: int
    rows: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """Share of right answers, from 0 to 1."""
        return self.right / self.rows


Known = Mapping[str, frozenset[str]]
"""The true class of each text, or all of its true labels."""


class Outcomes:
    """Joins answers with their true outcomes by the text.

    A text that is asked several times counts once, with its last answer. An answer of several
    labels is right if it has all true labels and no other.

    Args:
        known: True classes or labels of texts.
    """

    def __init__(self, known: Known) -> None:
        self._known = known
        self._right: dict[str, bool] = {}

    def add(self, texts: Sequence[str], answers: Sequence[Sequence[str]]) -> None:
        """Add answers in the order in which they were given.

        Args:
            texts: Texts of the requests.
            answers: Class of each text in a sequence of one, or its labels.
        """
        for text, answer in zip(texts, answers, strict=True):
            if text in self._known:
                self._right[text] = frozenset(answer) == self._known[text]

    def accuracy(self) -> Accuracy | None:
        """Compute the accuracy on the texts with a known outcome; None without any."""
        rows, right = len(self._right), sum(self._right.values())
        if not rows:
            return None
        z = NormalDist().inv_cdf((1 + LEVEL) / 2)
        share = right / rows
        centre = (share + z**2 / (2 * rows)) / (1 + z**2 / rows)
        half = z * math.sqrt(share * (1 - share) / rows + z**2 / (4 * rows**2)) / (1 + z**2 / rows)
        # Rounding may lead slightly beyond 0 and 1.
        return Accuracy(right, rows, min(share, centre - half), max(share, centre + half))
