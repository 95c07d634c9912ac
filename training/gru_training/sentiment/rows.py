"""Labelled texts before they are split into parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gru_training.data.label_cells import TargetKind

Target = int | tuple[int, ...] | float
"""A class number, the numbers of labels, or a number to estimate."""
_LEVELS = 10
"""Of a number to estimate, each of which gives its share to every part."""


class Row(NamedTuple):
    """One labelled text."""

    text: str
    label: Target
    """Of two classes 0 is negative and 1 positive."""
    group: str | None = None
    """Rows of one group must stay in one part of a split (IMDB: the movie)."""
    place: str = ""
    """Where it stands, as `line 7`; empty where it stands in no file."""
    time: float = 0.0
    """For a split in the order of time."""
    weight: float = 1.0
    """Weight of the row in the loss, relative to the others."""


@dataclass(frozen=True)
class SentimentRows:
    """The rows of a source before they are split; a part without official rows is None."""

    name: str
    classes: tuple[str, ...]
    """The classes or labels; of a number to estimate what it is called."""
    train: list[Row]
    validation: list[Row] | None = None
    test: list[Row] | None = None
    made_up: bool = False
    kind: TargetKind = "class"
    own: bool = False
    """Whether they are the user's, and no known set."""

    @property
    def all_rows(self) -> list[Row]:
        """Those of all parts."""
        return [*self.train, *(self.validation or ()), *(self.test or ())]


def text_key(text: str) -> str:
    """What two texts have in common that count as the same: all but case and blanks."""
    return " ".join(text.casefold().split())


def strata(rows: Sequence[Row], kind: TargetKind) -> list[int]:
    """What of each row is to have its share in every part of a split.

    The class; of several labels the rarest (-1 for a row without any); of a number its tenth.
    """
    if kind == "class":
        return [int(row.label) for row in rows if not isinstance(row.label, tuple)]
    if kind == "number":
        values = np.array([row.label for row in rows], np.float64)
        inner = np.linspace(0, 1, _LEVELS + 1)[1:-1]
        edges = np.quantile(values, inner) if len(rows) else inner
        return [int(level) for level in np.searchsorted(edges, values)]
    counts = np.bincount([k for row in rows for k in numbers_of(row)], minlength=1)
    return [min(numbers_of(row), key=lambda k: (counts[k], k), default=-1) for row in rows]


def numbers_of(row: Row) -> tuple[int, ...]:
    """The numbers of a row's labels."""
    return row.label if isinstance(row.label, tuple) else (int(row.label),)


def target_array(rows: Sequence[Row], kind: TargetKind, classes: int) -> np.ndarray:
    """What a model is to answer to N rows.

    Class numbers (N,) int32; 0 and 1 for each label, (N, C) float32; or numbers (N,) float32.
    """
    if kind == "labels":
        held = np.zeros((len(rows), classes), np.float32)
        for number, row in enumerate(rows):
            held[number, list(numbers_of(row))] = 1
        return held
    return np.array([row.label for row in rows], np.int32 if kind == "class" else np.float32)
