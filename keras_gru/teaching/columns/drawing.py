"""Matrices and columns in brackets, beside each other where the width allows it."""

from collections.abc import Sequence

import numpy as np

from keras_gru.teaching.columns.entry import Entry
from keras_gru.teaching.network_fields import Array
from keras_gru.teaching.value_table import number

Block = list[str]


class Drawing:
    """Draws entries within a width.

    Args:
        width: Columns of the terminal.
        decimals: Of computed numbers; given ones have as many as they need.
    """

    def __init__(self, width: int, decimals: int) -> None:
        self._width, self._decimals = width, decimals

    def entry(self, entry: Entry) -> str:
        """One equation, its matrices and its value."""
        head = f"{entry.symbol} = {entry.formula}" if entry.formula else entry.symbol
        if not entry.products:
            return self.line(f"{head} = ", entry.value)
        lines = [f"{head}:"]
        for product in entry.products:
            if product.column_symbol.startswith("["):
                lines.append("  " + self.line(f"{product.column_symbol} = ", product.column))
        parts: list[Block | str] = []
        total = np.zeros(len(entry.products[0].matrix))
        for product in entry.products:
            if parts:
                parts.append("+")
            times = f"· {product.column_symbol}"
            parts += [self.matrix(product.matrix, beside=len(times) + 3), times]
            total = total + product.matrix @ product.column
        sums: list[Block | str] = ["="]
        for product in entry.products:
            sums += [self._column(product.matrix @ product.column), "+"]
        sums.pop()
        if entry.added is not None:
            sums += ["+", self._column(entry.added[1], given=True)]
            total = total + entry.added[1]
        if len(sums) > 2:
            sums += ["=", self._column(total)]
        lines += self._beside(parts, sums)
        if not np.allclose(total, entry.value, rtol=0, atol=1e-12):
            lines.append("  " + self.line(f"{entry.symbol} = ", entry.value))
        return "\n".join(lines)

    def outer(self, symbol: str, formula: str, value: Array) -> str:
        """A matrix under its formula."""
        head = f"{symbol} = {formula}" if formula else symbol
        rows, columns = value.shape
        lines = [f"{head} ({rows}×{columns}):"]
        return "\n".join(lines + [f"  {line}" for line in self.matrix(value, given=False)])

    def matrix(self, values: Array, *, given: bool = True, beside: int = 0) -> Block:
        """Rows in brackets; a given one with as many decimals as it needs.

        `beside` is how much room is left for what stands on the same line.
        """
        texts = [[self._number(value, given) for value in row] for row in values]
        width = max(len(text) for row in texts for text in row)
        most = max(1, (self._width - 5 - beside) // (width + 1))
        if len(texts[0]) > most:
            most = max(1, (self._width - 7 - beside) // (width + 1))  # two for the …
        rows = [" ".join(f"{text:>{width}}" for text in row[:most]) for row in texts]
        return [f"[{row}{' …' if len(texts[0]) > most else ''}]" for row in rows]

    def _column(self, values: Array, *, given: bool = False) -> Block:
        return self.matrix(np.asarray(values)[:, np.newaxis], given=given)

    def row(self, values: Array, *, given: bool = False) -> str:
        """A column written as a row with a ᵀ."""
        return f"[{', '.join(self._number(value, given) for value in values)}]ᵀ"

    def line(self, head: str, values: Array) -> str:
        """A column as a row after its symbol, below it where it is too long."""
        text = self.row(values)
        if len(head) + len(text) <= self._width:
            return head + text
        return f"{head.rstrip()}\n    {text}"

    def _beside(self, parts: Sequence[Block | str], sums: Sequence[Block | str]) -> list[str]:
        together = _joined([*parts, *sums])
        if len(together[0]) + 2 <= self._width:
            return [f"  {line}".rstrip() for line in together]
        groups: list[list[Block | str]] = [[]]
        for part in [*parts, *sums]:
            wider = len(_joined([*groups[-1], part])[0]) + 2 > self._width
            if groups[-1] and (part == "=" or (part == "+" and wider)):
                groups.append([])
            elif wider and len(groups[-1]) > 2:  # the sign goes with what it stands before
                sign = groups[-1].pop()
                groups.append([sign])
            groups[-1].append(part)
        return [f"  {line}".rstrip() for group in groups for line in _joined(group)]

    def _number(self, value: float, given: bool) -> str:
        text = number(value, self._decimals)
        if not given:
            return text
        short = f"{round(float(value), 6):.6f}".rstrip("0")
        return short + "0" if short.endswith(".") else short


def _joined(parts: Sequence[Block | str]) -> list[str]:
    """Blocks side by side, signs on the middle line."""
    height = max((len(part) for part in parts if not isinstance(part, str)), default=1)
    middle = (height - 1) // 2
    lines = [""] * height
    for part in parts:
        if isinstance(part, str):
            block = [part if row == middle else " " * len(part) for row in range(height)]
        else:
            block = part + [" " * len(part[0])] * (height - len(part))
        lines = [
            f"{line} {cell}" if line else cell for line, cell in zip(lines, block, strict=True)
        ]
    return lines
