"""What a text is labelled with, read from the cells of its row.

One class, any number of labels, or a number. Labels travel as one text each: the class' name, the
number, or the names of several labels as a JSON list (`several`, `names_in`).
"""

import ast
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

TargetKind = Literal["class", "labels", "number"]
"""One class for each text, any number of labels, or a number."""
_YES, _NO = ("1", "true", "yes"), ("0", "false", "no", "")
_MOSTLY = 0.5
Cells = Mapping[str, str | None]


def several(names: Iterable[str]) -> str:
    """The names of a text's labels as one text, each once."""
    return json.dumps(list(dict.fromkeys(names)), ensure_ascii=False)


def names_in(label: str) -> tuple[str, ...]:
    """The inverse of `several`."""
    return tuple(json.loads(label))


@dataclass(frozen=True)
class LabelCells:
    """Where the label of a row stands, and how it is written."""

    kind: TargetKind | None = "class"
    """None: to be found from the rows (`settled`)."""
    columns: tuple[str, ...] = ()
    """Several columns that hold labels; else they stand in one."""
    separator: str | None = None
    """Between several labels in one cell."""
    flags: bool = False
    """The columns hold 0 and 1, under the names of the labels."""

    def settled(self, rows: Sequence[tuple[Cells, frozenset[str]]], column: str) -> "LabelCells":
        """With the kind, and whether columns hold 0 and 1, as the rows of a file have it.

        Args:
            rows: The cells of each row by column, and which columns hold lists in JSON.
            column: That of the label, where there is one.
        """
        if self.columns:
            cells = ((row.get(name) or "").strip().lower() for row, _ in rows for name in
                     self.columns)  # fmt: skip
            return replace(self, kind="labels", flags=all(cell in (*_YES, *_NO) for cell in cells))
        if self.kind is not None:
            return self
        lists = sum(column in nested or is_list(row.get(column) or "") for row, nested in rows)
        found = self.separator or (rows and lists > _MOSTLY * len(rows))
        return replace(self, kind="labels" if found else "class")

    def read(self, cells: Cells, nested: frozenset[str], column: str) -> str:
        """The label of a row.

        Args:
            cells: By column.
            nested: Columns in which JSON has a list or an object.
            column: That of the label, where it stands in one.

        Raises:
            ValueError: The row has no label that can be used; says why.
        """
        if self.columns:
            return several(self._of_columns(cells))
        cell = cells.get(column)
        if cell is None or (not cell.strip() and self.kind != "labels"):
            raise ValueError(f"the label is missing (column {column!r})")
        if self.kind == "labels":
            return several(self._of_cell(cell.strip(), column in nested, column))
        if column in nested or is_list(cell):
            what = "a number" if self.kind == "number" else "one label"
            raise ValueError(f"expected {what} in column {column!r}, got {cell:.40}")
        if self.kind == "number" and not is_number(cell):
            raise ValueError(f"expected a number in column {column!r}, got {cell.strip():.40}")
        return cell.strip()

    def _of_columns(self, cells: Cells) -> list[str]:
        values = {name: (cells.get(name) or "").strip() for name in self.columns}
        if self.flags:
            return [name for name, value in values.items() if value.lower() in _YES]
        return [value for value in values.values() if value]

    def _of_cell(self, cell: str, nested: bool, column: str) -> list[str]:
        if nested or is_list(cell):
            items = json.loads(cell) if nested else ast.literal_eval(cell)
            if isinstance(items, dict) or any(isinstance(item, list | dict) for item in items):
                raise ValueError(f"expected a list of labels in column {column!r}, got {cell:.40}")
            return [name for item in items if (name := str(item).strip())]
        parts = [cell] if self.separator is None else cell.split(self.separator)
        return [name for part in parts if (name := part.strip())]


def is_list(label: str) -> bool:
    """Whether a cell holds a list or an object as JSON or Python write it."""
    if not label.lstrip().startswith(("[", "{")):
        return False
    try:
        return isinstance(ast.literal_eval(label.strip()), list | dict | set)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False


def is_number(cell: str) -> bool:
    """Whether a cell holds a finite number."""
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False
