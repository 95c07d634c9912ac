"""Texts whose label would teach a model most: those it is least sure of, and the most unlike."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gru_serving.drift.histogram import NumberBins
from gru_serving.drift.quantities import SCORES, Rows

_SURENESS = f"{SCORES}: highest"


class Worth(NamedTuple):
    """A text to label.

    Attributes:
        text: Text of the request.
        answer: Name that the model answered; empty where it answers no name.
        reason: Reason to label the text, in words.
        weight: Degree of doubt or unlikeness, larger for more; comparable for one kind of reason.
    """

    text: str
    answer: str
    reason: str
    weight: float


class WorthLabelling:
    """Keeps the best few of all rows seen.

    Args:
        bins: Bins of the quantities of the reference, by name.
        most: Rows to keep of each kind.
    """

    def __init__(self, bins: Mapping[str, NumberBins], most: int) -> None:
        self._bins, self._most = bins, most
        self._unsure: list[tuple[float, str, Worth]] = []
        self._unlike: list[tuple[float, str, Worth]] = []
        self._seen: set[str] = set()

    def add(self, rows: Rows) -> None:
        """Take rows in; a text that was there before counts no more."""
        if not rows.texts:
            return
        answers = [", ".join(names) for names in rows.said] or [""] * len(rows.texts)
        sure = rows.numbers.get(_SURENESS)
        far, most_unlike = self._distances(rows)
        for place, text in enumerate(rows.texts):
            if text in self._seen:
                continue
            self._seen.add(text)
            if sure is not None:
                said = f"the highest score is {sure[place]:.3f}"
                self._keep(self._unsure, Worth(text, answers[place], said, 1 - float(sure[place])))
            if far[place] > 0:
                name = most_unlike[place]
                value = rows.numbers[name][place]
                bins = self._bins[name]
                said = f"{name} is {value:.3g}; 98 % are between {bins.low:.3g} and {bins.high:.3g}"
                self._keep(self._unlike, Worth(text, answers[place], said, float(far[place])))

    def rows(self) -> list[Worth]:
        """The least sure, then the most unlike, each kind from the top; no text twice."""
        found: dict[str, Worth] = {}
        for heap in (self._unsure, self._unlike):
            for _, _, worth in sorted(heap, reverse=True):
                found.setdefault(worth.text, worth)
        return list(found.values())

    def _keep(self, heap: list[tuple[float, str, Worth]], worth: Worth) -> None:
        entry = (worth.weight, worth.text, worth)
        if len(heap) < self._most:
            heapq.heappush(heap, entry)
        else:
            heapq.heappushpop(heap, entry)

    def _distances(self, rows: Rows) -> tuple[np.ndarray, list[str]]:
        """(B,) how far each row is outside of the reference, and in what most."""
        far, which = np.zeros(len(rows.texts)), [""] * len(rows.texts)
        for name, values in rows.numbers.items():
            if name in self._bins and name != _SURENESS:
                distance = self._bins[name].outside(values)
                for place in np.flatnonzero(distance > far):
                    which[place] = name
                far = np.maximum(far, distance)
        return far, which
