"""The labels of a text, read from the cells of its row.

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
_YES = frozenset(("true", "yes", "y", "t", "on", "x", "✓", "✔", "☑"))
_NO = frozenset(("false", "no", "n", "f", "off", "-", "☐"))
_MISSING = frozenset(("", "nan", "na", "n/a", "#n/a", "<na>", "null", "none"))
"""Cells that pandas, R, Excel and JSON write for nothing; in columns of yes and no they say no."""
_WAYS = "1 and 0, true and false, yes and no, or x and an empty cell"
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
    """The columns that hold the label of a row, and their format."""

    kind: TargetKind | None = "class"
    """Kind of label; None where the rows are to tell it (`settled`)."""
    columns: tuple[str, ...] = ()
    """Columns that hold labels where there are several; else the labels stand in one."""
    separator: str | None = None
    """Character between several labels in one cell."""
    flags: bool | None = None
    """Whether the columns hold yes and no under the names of the labels, rather than names; None:
    to be found from the rows (`settled`)."""
    no_names: frozenset[str] = frozenset()
    """Columns whose cells cannot be names of labels."""

    def settled(self, rows: Sequence[tuple[Cells, frozenset[str]]], column: str) -> "LabelCells":
        """Return these settings with the kind, and the use of 0 and 1, that rows of a file show.

        Args:
            rows: Cells of each row by column, and the columns that hold lists in JSON.
            column: Name of the column of the label, where there is one.
        """
        if self.columns:
            if self.flags is not None:
                return self
            flags, no_names = _form([[row.get(name) for row, _ in rows] for name in self.columns])
            refused = frozenset(self.columns[number] for number in no_names)
            return replace(self, kind="labels", flags=flags, no_names=refused)
        if self.kind is not None:
            return self
        lists = sum(column in nested or is_list(row.get(column) or "") for row, nested in rows)
        found = self.separator or (rows and lists > _MOSTLY * len(rows))
        return replace(self, kind="labels" if found else "class")

    def read(self, cells: Cells, nested: frozenset[str], column: str) -> str:
        """Return the label of a row.

        Args:
            cells: Cells of the row by column.
            nested: Columns in which JSON has a list or an object.
            column: Name of the column of the label, where it stands in one.

        Raises:
            ValueError: The row has no label that can be used; says why.
        """
        if self.columns:
            return several(self._of_columns(cells, nested))
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

    def notes(self, rows: Sequence[Cells]) -> list[str]:
        """List notes for a reader on columns that hold yes and no.

        Args:
            rows: The cells of each row by column.
        """
        if not self.flags or not rows:
            return []
        cells = [row.get(name) or "" for row in rows for name in self.columns]
        empty = sum(cell.strip().casefold() in _MISSING for cell in cells)
        found = []
        if empty and sum(yes_or_no(cell) is False for cell in cells) > empty:
            what = "cell" if empty == 1 else "cells"
            found.append(f"{empty:,} empty {what} in --label-columns read as no, as 0 is")
        for name in self.columns:
            if not any(yes_or_no(row.get(name) or "") for row in rows):
                found.append(f"no row has the label {name!r}: its column holds no 1, true or yes")
        return found

    def _of_columns(self, cells: Cells, nested: frozenset[str]) -> list[str]:
        found = []
        for name in self.columns:
            value = (cells.get(name) or "").strip()
            if name in nested or (name in self.no_names and value):
                raise ValueError(_expected("the name of a label", name, value))
            if not self.flags:
                found += [value] if value else []
                continue
            applies = yes_or_no(value)
            if applies is None:
                raise ValueError(_expected("yes or no", name, value))
            found += [name] if applies else []
        return found

    def _of_cell(self, cell: str, nested: bool, column: str) -> list[str]:
        if nested or is_list(cell):
            items = json.loads(cell) if nested else ast.literal_eval(cell)
            if isinstance(items, dict) or any(isinstance(item, list | dict) for item in items):
                raise ValueError(f"expected a list of labels in column {column!r}, got {cell:.40}")
            return [name for item in items if (name := str(item).strip())]
        parts = [cell] if self.separator is None else cell.split(self.separator)
        return [name for part in parts if (name := part.strip())]


def yes_or_no(cell: str) -> bool | None:
    """Return the truth value of a cell of yes and no; False if empty, None if neither."""
    word = cell.strip().casefold()
    if word in _YES:
        return True
    if word in _NO or word in _MISSING:
        return False
    number = _number(word)
    return bool(number) if number in (0, 1) else None


def _form(columns: Sequence[Sequence[str | None]]) -> tuple[bool, list[int]]:
    """Whether columns hold yes and no, and the numbers of those that can hold no names either.

    Most of the cells decide; then the others are refused one by one.
    """
    filled = [
        [cell for value in column if (cell := (value or "").strip()).casefold() not in _MISSING]
        for column in columns
    ]
    said = [sum(yes_or_no(cell) is not None for cell in cells) for cells in filled]
    total = sum(map(len, filled))
    if sum(said) * 2 > total or not total:
        return True, []
    numbers = [[number for cell in cells if (number := _number(cell)) is not None]
               for cells in filled]  # fmt: skip
    gaps = any(len(cells) < len(column) for cells, column in zip(filled, columns, strict=True))
    words = {cell.casefold() for cells in filled for cell in cells}
    refused = []
    for place, cells in enumerate(filled):
        shares = any(number % 1 for number in numbers[place])
        # Marks for each of several questions, rather than codes of topics.
        marks = bool(numbers[place]) and len(numbers[place]) == len(cells) and not gaps
        same_two = len(columns) > 1 and len(words) <= 2 and not gaps  # as "ja" and "nein"
        codes = sum(map(len, numbers)) == total
        alone = bool(cells) and said[place] == len(cells) and not codes
        if shares or marks or same_two or alone:
            refused.append(place)
    return False, refused


def _expected(what: str, column: str, value: str) -> str:
    other = (
        f"write yes and no as {_WAYS}"
        if what == "yes or no"
        else f"columns of yes and no have {_WAYS}, and are not mixed with columns of names"
    )
    return f"expected {what} in column {column!r}, got {value!r:.40}; {other}"


def _number(cell: str) -> float | None:
    """The finite number in a cell, whose decimal sign may be a comma."""
    cell = cell.replace(",", ".")
    return float(cell) if is_number(cell) else None


def is_list(label: str) -> bool:
    """Whether a cell holds a list or an object as JSON or Python write it."""
    if not label.lstrip().startswith(("[", "{")):
        return False
    try:
        return isinstance(ast.literal_eval(label.strip()), list | dict | set)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False


def is_number(cell: str) -> bool:
    """Whether a cell holds a finite number."""
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False
