"""Tables of vectors in the terminal, with bars where there is room."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from keras_gru.teaching.network_fields import Array

_LABELS = 38  # columns of the terminal taken by equation and label


@dataclass(frozen=True)
class Layout:
    """What fits into a terminal of some width."""

    width: int = 120
    decimals: int = 4
    most: int = 8
    """Columns of numbers, and rows of a matrix, at most; the JSON holds all of them."""

    def shown(self, count: int) -> int:
        """Columns shown of `count`."""
        fitting = (self.width - _LABELS) // (self.decimals + 5)
        return count if count <= min(self.most, fitting) else max(1, min(self.most, fitting - 1))

    def bar(self, count: int) -> int:
        """Width of a bar beside each number; 0 where there is no room."""
        room = (self.width - _LABELS) // self.shown(count) - (self.decimals + 6)
        return 0 if room < 3 or self.shown(count) < count else min(10, room)


class ValueTable:
    """A table of labelled vectors.

    Args:
        columns: Names of the elements.
        layout: Of the terminal.
        first: Heading of the labels.
    """

    def __init__(self, columns: Sequence[str], layout: Layout, first: str = "") -> None:
        self._layout = layout
        self._shown = layout.shown(len(columns))
        self._bar = layout.bar(len(columns))
        self.table = Table(box=None, pad_edge=False)
        self.table.add_column("", style="dim", no_wrap=True, min_width=5)
        self.table.add_column(first, no_wrap=True, min_width=27)
        for column in columns[: self._shown]:
            self.table.add_column(column, justify="right", no_wrap=True)
        if len(columns) > self._shown:
            self.table.add_column(f"… {len(columns) - self._shown} more", no_wrap=True)

    def add(
        self,
        equation: str,
        label: str,
        values: Array,
        *,
        decimals: int | None = None,
        bars: bool = False,
        signed: bool = False,
        strong: bool = False,
    ) -> None:
        """Add one vector; `bars` and `signed` draw its elements where there is room."""
        places = self._layout.decimals if decimals is None else decimals
        cells = []
        for value in values[: self._shown]:
            text = number(value, places)
            if self._bar and bars:
                text = f"{gate_bar(float(value), self._bar)} {text}"
            elif self._bar and signed:
                text = f"{signed_bar(float(value), self._bar // 2)} {text:>{places + 3}}"
            cells.append(Text(text, style="bold" if strong else ""))
        self.table.add_row(f"({equation})" if equation else "", label, *cells)


def matrix(values: Array, layout: Layout, width: int) -> str:
    """Rows of numbers, cut to a width."""
    digits = layout.decimals + 1
    shown = min(layout.most, max(1, (width - 2) // (digits + 4)))
    rows = [
        " ".join(f"{number(value, digits):>{digits + 3}}" for value in row[:shown])
        + (" …" if len(row) > shown else "")
        for row in values[: layout.most]
    ]
    return "\n".join([*rows, "…"] if len(values) > layout.most else rows)


def number(value: float, decimals: int) -> str:
    """A number with fixed decimals, and no minus before a zero; empty for NaN."""
    if math.isnan(value):
        return ""
    return f"{round(float(value), decimals) + 0.0:.{decimals}f}"


def gate_bar(value: float, width: int = 10) -> str:
    """A value in [0, 1] as a bar."""
    full = round(width * min(max(value, 0.0), 1.0))
    return "█" * full + "░" * (width - full)


def signed_bar(value: float, width: int = 5) -> str:
    """A value in [−1, 1] as a bar to the left or to the right of the middle."""
    full = round(width * min(abs(value), 1.0))
    left, right = ("", "█" * full) if value >= 0 else ("█" * full, "")
    return f"{left:>{width}}│{right:<{width}}"
