"""Labelled texts from the user's own tables in files."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from gru_training.data.label_cells import Cells, LabelCells
from gru_training.data.problems import Problems
from gru_training.errors import DataError, ForeignDataError
from gru_training.tables.file_form import AS_FOUND, TextFormat
from gru_training.tables.rows import cell_text, read_rows
from gru_training.tables.text_columns import LABEL_COLUMNS, TEXT_COLUMNS, column_called

_HALF_PAIR = re.compile("[\ud800-\udfff]")
_NONE = frozenset[str]()
_NOTHING: Mapping[str, str | None] = MappingProxyType({})


class LabelledRow(NamedTuple):
    """One text with its label."""

    text: str
    label: str
    """Label in the form of `gru_training.data.label_cells`: the name of a class, as a rule."""
    line: int = 0
    """Line or row of the text, see `gru_training.tables.rows.Row`; 0 for a row of no file."""
    further: Mapping[str, str | None] = _NOTHING
    """Contents of other cells that were asked for, by what they mean."""


def read_text_file(
    path: Path,
    text_column: str | None = None,
    label_column: str | None = None,
    problems: Problems | None = None,
    *,
    labels: LabelCells = LabelCells(),  # noqa: B008  frozen
    further: Mapping[str, str] = MappingProxyType({}),
    given: TextFormat = AS_FOUND,
) -> list[LabelledRow]:
    """Read all rows of a table that `gru_training.tables.rows.read_rows` reads.

    Args:
        path: The file.
        text_column: Name of the column with the text; by default one named in `TEXT_COLUMNS`
            (in any case).
        label_column: Name of the column with the label; by default one named in `LABEL_COLUMNS` (in
            any case).
        problems: Collector of rows that cannot be used, which are left out; by default they raise.
        labels: Columns and format of the labels; of a kind that is known.
        further: Other columns to keep, by what they mean.
        given: Format of the text, as far as it is known.

    Raises:
        ForeignDataError: No column looks like the text, or like the label.
        DataError: The file cannot be read, has no such columns, or, without `problems`, a row
            lacks text or label.
    """
    found = problems or Problems(str(path))
    rows, _ = read_text_rows(path, text_column, label_column, found, labels, further, given)
    if problems is None:
        found.close_rows()
        found.raise_errors()
    return rows


def read_text_rows(
    path: Path,
    text_column: str | None,
    label_column: str | None,
    problems: Problems,
    labels: LabelCells,
    further: Mapping[str, str],
    given: TextFormat = AS_FOUND,
) -> tuple[list[LabelledRow], LabelCells]:
    """Read as `read_text_file`, and tell how the labels turned out to be written.

    Problems count in the units of the file, and get a note of what was assumed of it.
    """
    opened = read_rows(path, given, problems.bad_row, bounded=True)
    problems.unit = opened.form.unit
    for note in opened.form.notes:
        problems.note(note)
    columns, read = opened.with_columns()
    text_key = label_key = ""
    if columns:
        text_key = find_column(path, columns, text_column, TEXT_COLUMNS, "text")
        if not labels.columns:
            label_key = find_column(path, columns, label_column, LABEL_COLUMNS, "label")
        for name in (*labels.columns, *further.values()):
            find_column(path, columns, name, (), "label")
    names = tuple({text_key, label_key, *labels.columns, *further.values()} & set(columns))
    texts = _texts if opened.form.kind == "csv" else _as_texts
    records = [(place, *texts(cells, names)) for place, cells in read]
    labels = labels.settled([record[1:] for record in records], label_key)
    for note in labels.notes([cells for _, cells, _ in records]):
        problems.note(note)
    rows: list[LabelledRow] = []
    for place, cells, nested in records:
        try:
            text = _text_of(cells, nested, text_key)
            label = labels.read(cells, nested, label_key)
            _require_unicode(text)
            _require_unicode(label)
        except ValueError as error:
            problems.bad_row(str(error).partition(",")[0], place, str(error))
            continue
        kept = {meaning: cells.get(name) for meaning, name in further.items()} or _NOTHING
        rows.append(LabelledRow(text, label, place, kept))
    if not rows and not problems.bad_rows:
        raise DataError(f"{path} has no rows")
    return rows, labels


def _texts(cells: Mapping[str, str], names: Sequence[str]) -> tuple[Cells, frozenset[str]]:
    """Some of the cells of a row of CSV."""
    return {name: cells[name] for name in names}, _NONE


def _as_texts(cells: Mapping[str, Any], names: Sequence[str]) -> tuple[Cells, frozenset[str]]:
    """The texts of some cells, and which columns hold a list or an object, written as JSON."""
    nested = frozenset(name for name in names if isinstance(cells.get(name), list | dict))
    return {name: cell_text(cells.get(name)) for name in names}, nested


def _text_of(cells: Cells, nested: frozenset[str], column: str) -> str:
    """The text of a row; ValueError says why there is none."""
    text = cells.get(column)
    if text is None or not text.strip():
        raise ValueError(f"the text is empty (column {column!r})")
    if column in nested:
        raise ValueError(f"expected a text in column {column!r}, got {text:.40}")
    return text


def _require_unicode(text: str) -> None:
    if not text.isascii() and _HALF_PAIR.search(text):
        raise ValueError("expected Unicode text, got half a surrogate pair")


def find_column(
    source: Path | str,
    columns: Sequence[str],
    wanted: str | None,
    known: tuple[str, ...],
    what: str,
) -> str:
    """Find the wanted column, or else the first whose name is in `known`, in any case.

    Args:
        source: Name of the table in errors.
        columns: Names of the table's columns.
        wanted: Name of the column, if the user gave it.
        known: Names by which it is found.
        what: `text` or `label`.

    Raises:
        ForeignDataError: The table has no such column.
    """
    if wanted is not None:
        if wanted in columns:
            return wanted
        raise ForeignDataError(
            f"{source} has no column {wanted!r}; its columns are {list(columns)}"
        )
    if (found := column_called(known, columns)) is not None:
        return found
    a_row = any(len(name.split()) > 3 for name in columns)
    raise ForeignDataError(
        f"{source}: no column looks like the {what}; its columns are {list(columns)}, "
        f"name one with --{what}-column"
        + (
            ". Is that a row? The first line must have the names, such as text,label"
            if a_row
            else ""
        )
    )
