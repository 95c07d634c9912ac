"""The labels of a text, read from the cells of its row.

A text has one class, any number of labels, or a number; these are the names that are read, of which
a number is one.
"""

import ast
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

TargetKind = Literal["class", "labels", "number"]
"""One class for each text, any number of labels, or a number."""
_YES = frozenset(
    (
        *("true", "yes", "y", "t", "on", "x", "+", "✓", "✔", "☑", "✅"),
        # Excel in German, French, Spanish, Italian, Portuguese, Dutch, Polish, Swedish, Danish
        *("wahr", "vrai", "verdadero", "vero", "verdadeiro", "waar", "prawda", "sant", "sand"),
        *("ja", "oui", "sí", "si", "sì", "sim", "tak"),
    )
)
_NO = frozenset(
    (
        *("false", "no", "n", "f", "off", "-", "–", "☐", "✗", "✘", "❌"),
        *("falsch", "faux", "falso", "onwaar", "fałsz", "falskt", "falsk"),
        *("nein", "non", "não", "nao", "nee", "nie", "nej"),
    )
)
_MISSING = frozenset(("", "nan", "na", "n/a", "#n/a", "<na>", "null", "none"))
"""Cells that pandas, R, Excel and JSON write for missing values; in columns of yes and no they mean
no.
"""
_YES_AND_NO = "1 and 0, true and false, yes and no, or x and an empty cell"
_OPEN_STATES = frozenset(("discarded", "draft"))
"""States in which Argilla stores responses that answer no question."""
_SPANS = frozenset(("start", "end", "start_offset", "end_offset", "points"))
"""Keys of labels that belong to a part of a text."""
ONE_IN_LISTS = (
    "each list of labels holds one, which is read as the class of the row (--target-type labels "
    "says otherwise)"
)
_ONE_IN_COLUMNS = (
    "each row has one of --label-columns; --target-type class makes them classes, of which one "
    "applies"
)
_MIN_LIST_SHARE = 0.5
Cells = Mapping[str, str | None]


@dataclass(frozen=True)
class LabelCells:
    """The columns that hold the label of a row, and their format."""

    kind: TargetKind | None = "class"
    """Kind of label; None to determine it from the rows (`settled`)."""
    columns: tuple[str, ...] = ()
    """Columns that hold labels if there are several; otherwise the labels are in one column."""
    separator: str | None = None
    """Character between several labels in one cell."""
    flags: bool | None = None
    """Whether the columns hold yes and no under the names of the labels, rather than names; None to
    determine it from the rows (`settled`).
    """
    no_names: frozenset[str] = frozenset()
    """Columns whose cells cannot be names of labels."""
    remarks: tuple[str, ...] = ()
    """Notes for a reader on what the rows showed."""

    def settled(self, rows: Sequence[tuple[Cells, frozenset[str]]], column: str) -> "LabelCells":
        """Return these settings with the kind, and the meaning of 0 and 1, that a file's rows show.

        Args:
            rows: Cells of each row by column, and the columns that hold lists in JSON.
            column: Name of the column of the label, where there is one.
        """
        if self.columns:
            if self.flags is not None:
                return replace(self, remarks=())
            flags, no_names = _form([[row.get(name) for row, _ in rows] for name in self.columns])
            refused = frozenset(self.columns[number] for number in no_names)
            form = replace(self, kind=self.kind or "labels", flags=flags, no_names=refused)
            if (
                self.kind is None
                and len(self.columns) > 1
                and form._holds_one([r for r, _ in rows])
            ):
                return replace(form, remarks=(_ONE_IN_COLUMNS,))
            return form
        if self.kind is not None or self.separator:
            return replace(self, kind=self.kind or "labels", remarks=())
        lists = [value for row in rows if (value := _list_in(*row, column)) is not None]
        if len(lists) <= _MIN_LIST_SHARE * len(rows):
            return replace(self, kind="class")
        counts = {count for value in lists if (count := _count_of_names(value)) is not None}
        if counts != {1}:
            return replace(self, kind="labels")
        return replace(self, kind="class", remarks=(ONE_IN_LISTS,))

    def _holds_one(self, rows: Sequence[Cells]) -> bool:
        """Tell whether columns of yes and no say yes to exactly one label of each row."""
        return bool(self.flags) and all(
            sum(bool(yes_or_no(row.get(name) or "")) for name in self.columns) == 1 for row in rows
        )

    def read(self, cells: Cells, nested: frozenset[str], column: str) -> tuple[str, ...]:
        """Return the class, the labels or the number of a row, each label once.

        Args:
            cells: Cells of the row by column.
            nested: Columns in which JSON has a list or an object.
            column: Name of the column of the label, where it stands in one.

        Raises:
            ValueError: The row has no label that can be used; says why.
        """
        if self.columns:
            names = self._of_columns(cells, nested)
            if self.kind != "class":
                return _each_once(names)
            found = ", ".join(map(repr, names)) or "none"
            return _only_one(names, f"one of --label-columns {' '.join(self.columns)}", found)
        cell = cells.get(column)
        if cell is None or (not cell.strip() and self.kind != "labels"):
            raise ValueError(f"the label is missing (column {column!r})")
        if self.kind == "number":
            if not is_number(cell):
                comma = "" if _number(cell) is None else "; write decimal points, not commas"
                raise ValueError(
                    f"expected a number in column {column!r}, got {cell.strip():.40}{comma}"
                )
            return (cell.strip(),)
        value = _list_in(cells, nested, column)
        if value is None:
            labels = self.kind == "labels"
            return _each_once(self._parts(cell.strip())) if labels else (cell.strip(),)
        try:
            names = listed_names(value)
        except ValueError as error:
            what = "a list of labels" if self.kind == "labels" else "one label"
            raise ValueError(
                f"expected {what} in column {column!r}, got {cell:.40}{error}"
            ) from None
        if self.kind == "labels":
            return _each_once(names)
        if not names:
            raise ValueError(f"the label is missing (column {column!r})")
        return _only_one(names, f"one label in column {column!r}", f"{cell:.40}")

    def notes(self, rows: Sequence[Cells]) -> list[str]:
        """List notes for a reader on how the labels were read.

        Args:
            rows: The cells of each row by column.
        """
        if not self.flags or not rows:
            return list(self.remarks)
        cells = [row.get(name) or "" for row in rows for name in self.columns]
        empty = sum(cell.strip().casefold() in _MISSING for cell in cells)
        found = list(self.remarks)
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

    def _parts(self, cell: str) -> list[str]:
        parts = [cell] if self.separator is None else cell.split(self.separator)
        return [name for part in parts if (name := part.strip())]


def listed_names(value: Any) -> list[str]:
    """List the labels in a list or an object of an annotation tool.

    These are lists of names; Label Studio's `{"choices": [...]}`; Argilla's `[{"value": ...}]`
    without discarded responses and drafts; doccano's `[{"label": ...}]`; and objects with yes or no
    for the name of each label, such as spaCy's `cats`.

    Raises:
        ValueError: The value is none of these; the message says what to do, behind a semicolon.
    """
    if isinstance(value, dict):
        value = _items_of(value)
    elif isinstance(value, set):
        value = sorted(value, key=str)
    items = list(value)
    if _are_bits(items):
        raise ValueError(
            "; yes and no by their place say no names: write the names of the labels that apply, "
            'or an object such as {"bug": 1, "billing": 0}'
        )
    names: list[str] = []
    for item in items:
        if isinstance(item, dict):
            names += listed_names(item)
        elif isinstance(item, list | tuple | set):
            raise ValueError("")
        elif item is not None and (name := str(item).strip()):
            names.append(name)
    return list(dict.fromkeys(names))


def _are_bits(items: Sequence[Any]) -> bool:
    """Tell whether a list holds yes and no by position, as an encoder of labels writes it.

    The numbers 0 and 1, once each and in this order, may be names.
    """
    bits = all(isinstance(item, bool | int | float) and item in (0, 1) for item in items)
    return bits and len(items) > 1 and (items != [0, 1] or isinstance(items[0], bool))


def _items_of(value: Mapping[str, Any]) -> list[Any]:
    if _SPANS & value.keys():
        raise ValueError("; labels of parts of a text are not read")
    if "score" in value:
        raise ValueError("; probabilities to learn from are given with --soft-data")
    for key in ("choices", "value", "label"):
        if key in value:
            inner = [] if value.get("status") in _OPEN_STATES else value[key]
            return inner if isinstance(inner, list) else [inner]
    said = {name: yes_or_no(str(cell)) for name, cell in value.items()}
    if None in said.values():
        odd = next((value[name] for name, yes in said.items() if yes is None), None)
        if isinstance(odd, float):
            raise ValueError(
                f"; write yes and no to each label as {_YES_AND_NO}, not {odd}; probabilities to "
                "learn from are given with --soft-data"
            )
        raise ValueError("")
    return [name for name, yes in said.items() if yes]


def _list_in(cells: Cells, nested: frozenset[str], column: str) -> Any:
    """Read the list or object in a cell; None for plain text."""
    cell = cells.get(column) or ""
    return json.loads(cell) if column in nested else read_literal(cell)


def _count_of_names(value: Any) -> int | None:
    try:
        return len(listed_names(value))
    except ValueError:
        return None


def _each_once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _only_one(names: Sequence[str], what: str, found: str) -> tuple[str, ...]:
    """Return the only label of a row that must have one class."""
    if len(names) == 1:
        return tuple(names)
    raise ValueError(
        f"expected {what}, got {found}; --target-type labels reads any number of labels"
    )


def yes_or_no(cell: str) -> bool | None:
    """Read a cell of yes and no as a truth value; False if empty, None if neither."""
    word = cell.strip().casefold()
    if word in _YES:
        return True
    if word in _NO or word in _MISSING:
        return False
    number = _number(word)
    return bool(number) if number in (0, 1) else None


def flag_columns(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Find the columns that hold yes and no, each at least once, and nothing else.

    Args:
        columns: Names of the columns to look at.
        rows: Cells of each row by column; numbers and truth values, too.
    """
    said = {
        name: {
            "" if cell is None else yes_or_no(str(cell)) for cell in (row.get(name) for row in rows)
        }
        for name in columns
    }
    return tuple(name for name in columns if said[name] - {""} == {True, False})


def label_flags(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the flags that read columns of yes and no as labels; none without such columns.

    A single such column holds the class.
    """
    found = flag_columns(columns, rows)
    if len(found) < 2:
        return ("--label-column", *found) if found else ()
    one = all(sum(yes_or_no(str(row.get(name))) is True for name in found) == 1 for row in rows)
    return (*(("--target-type", "class") if one else ()), "--label-columns", *found)


def _form(columns: Sequence[Sequence[str | None]]) -> tuple[bool, list[int]]:
    """Tell whether columns hold yes and no, and which of them cannot hold names either.

    The majority of the cells decides; the other cells are refused one by one.
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
        # These are marks for each of several questions, rather than codes of topics.
        marks = bool(numbers[place]) and len(numbers[place]) == len(cells) and not gaps
        same_two = len(columns) > 1 and len(words) <= 2 and not gaps  # as "ja" and "nein"
        codes = sum(map(len, numbers)) == total
        alone = bool(cells) and said[place] == len(cells) and not codes
        if shares or marks or same_two or alone:
            refused.append(place)
    return False, refused


def _expected(what: str, column: str, value: str) -> str:
    other = (
        f"write yes and no as {_YES_AND_NO}"
        if what == "yes or no"
        else f"columns of yes and no have {_YES_AND_NO}, and are not mixed with columns of names"
    )
    return f"expected {what} in column {column!r}, got {value!r:.40}; {other}"


def _number(cell: str) -> float | None:
    """Read the finite number in a cell, which may have a decimal comma."""
    cell = cell.replace(",", ".")
    return float(cell) if is_number(cell) else None


def read_literal(cell: str) -> list[Any] | dict[str, Any] | set[Any] | None:
    """Read a list or an object from a text of JSON or Python; None for other texts."""
    cell = cell.strip()
    if not cell.startswith(("[", "{")):
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(cell)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
        return value if isinstance(value, list | dict | set) else None
    return None


def is_number(cell: str) -> bool:
    """Tell whether a cell holds a finite number."""
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False
