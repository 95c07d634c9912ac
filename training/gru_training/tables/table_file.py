"""A table in a file as Arrow: examined once, then read in pieces that fit into memory."""

import hashlib
import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from gru_training.errors import DataError
from gru_training.tables.arrow_array import arrow_array
from gru_training.tables.file_form import DETECTED_FORMAT, FileForm, Kind, TextFormat, find_form
from gru_training.tables.rows import Row, arrow_file, cell_text, read_rows

PIECE_ROWS = 8192
"""Approximate number of rows of a piece."""
PIECE_BYTES = 32 << 20
"""Approximate bytes of a piece in memory, which limits the rows if they are long."""
JSON_VALUE = b"keras_gru.json"
"""Marks, in a field's metadata, texts that are JSON values of several kinds."""
_ROWS_LOOKED_AT = 128
"""Number of rows held at once while a file is examined."""
_WHOLE_NUMBER = re.compile(r"-?[1-9][0-9]{0,17}|0|")  # as a program writes it, or missing
_TYPES = {
    "texts": pa.string(),
    "booleans": pa.bool_(),
    "whole numbers": pa.int64(),
    "numbers": pa.float64(),
}

ItemT = TypeVar("ItemT")
Progress = Callable[[int], None]
"""Function that receives the number of rows so far."""


class TableFile(ABC):
    """A file that was examined once and can be read again.

    Args:
        path: The file.
        form: Format of the file.
        schema: Names and types of its columns.
        rows: The number of its rows.
    """

    def __init__(self, path: Path, form: FileForm, schema: pa.Schema, rows: int):
        self.path, self.form, self.schema, self.rows = path, form, schema, rows
        with path.open("rb") as file:
            self.digest = hashlib.file_digest(file, "sha256").hexdigest()

    def pieces(
        self, columns: Sequence[str] | None = None, skip: int = 0
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in their order, about `PIECE_ROWS` at once.

        The ends of the pieces depend only on the file and on `skip`.

        Args:
            columns: Names of the columns to read; all by default.
            skip: Number of rows to skip at the beginning.

        Raises:
            DataError: The file has changed and cannot be read any more.
        """
        names = self.schema.names if columns is None else list(columns)
        return self._pieces(pa.schema([self.schema.field(name) for name in names]), skip)

    @abstractmethod
    def _pieces(self, schema: pa.Schema, skip: int) -> Iterator[pa.RecordBatch]:
        """Yield the columns of this schema, like `pieces`."""

    @abstractmethod
    def place(self, row: int) -> str:
        """Describe the place of a row for messages.

        Lines of texts and rows of workbooks are counted from 1, as in editors; rows of other tables
        from 0, as `iloc` of pandas does.

        Args:
            row: The row's number, from 0.
        """


def open_table(
    path: Path, progress: Progress | None = None, given: TextFormat = DETECTED_FORMAT
) -> TableFile:
    """Examine a table that `read_rows` can read.

    Memory is bounded, except for workbooks and JSON lists, which are held completely.

    In CSV a column of whole numbers in their usual form (no leading zeros, no signs but minus;
    empty cells are missing) becomes one of 64-bit integers, any other one of texts, unchanged. In
    JSON the columns are all keys in the order in which they appear, and a row without a key has a
    missing value. Values of several kinds, lists and objects become texts of JSON, which are
    written as they were read.

    Args:
        path: The file, which is read twice, so it cannot be a pipe.
        progress: Function that is told the number of rows about ten times a second.
        given: Format of the text, as far as it is known.

    Raises:
        DataError: The file cannot be read; names the line, or of Parquet the column.
    """
    form = find_form(path, given)
    if form.kind in ("parquet", "arrow"):
        with arrow_file(path, form) as opened:
            return _ArrowTable(path, form, opened.schema, opened.length())
    return _open_rows(path, form, progress or (lambda _: None))


class _ArrowTable(TableFile):
    """A file of Parquet or Arrow."""

    def place(self, row: int) -> str:
        return f"row {row}"

    def _pieces(self, schema: pa.Schema, skip: int) -> Iterator[pa.RecordBatch]:
        with arrow_file(self.path, self.form) as opened:
            found = (batch.cast(schema) for batch in opened.batches(skip, schema.names, PIECE_ROWS))
            for piece in gathered((batch, batch.num_rows, batch.nbytes) for batch in found):
                (whole,) = pa.Table.from_batches(piece, schema).combine_chunks().to_batches()
                yield whole


class _RowTable(TableFile):
    """A file that is read row by row."""

    def place(self, row: int) -> str:
        found = next(islice(self._read(), row, None), None)
        return f"row {row}" if found is None else f"{self.form.unit} {found[0]}"

    def _read(self) -> Iterator[Row]:
        return iter(read_rows(self.path, form=self.form))

    def _pieces(self, schema: pa.Schema, skip: int) -> Iterator[pa.RecordBatch]:
        rows = islice(self._read(), skip, None)
        for cells in gathered((cells, 1, _size(cells)) for _, cells in rows):
            columns = [
                _column(field, [row.get(field.name) for row in cells], self.form.kind)
                for field in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _open_rows(path: Path, form: FileForm, progress: Progress) -> TableFile:
    opened = read_rows(path, form=form)
    kinds: dict[str, dict[str, int]] = {name: {} for name in opened.columns or ()}
    count, told = 0, time.monotonic()
    while rows := list(islice(opened.rows, _ROWS_LOOKED_AT)):
        count += len(rows)
        for name in opened.columns or dict.fromkeys(name for _, cells in rows for name in cells):
            known = kinds.setdefault(name, {})
            if form.kind != "csv":
                _note_kinds(path, form, name, rows, known)
            elif "texts" not in known:
                column = [cells[name] for _, cells in rows]
                if not all(map(_WHOLE_NUMBER.fullmatch, column)):
                    known["texts"] = 0
                elif any(column):
                    known["whole numbers"] = 0
        if time.monotonic() > told + 0.1:
            told = time.monotonic()
            progress(count)
    if form.kind == "csv":
        kinds = {name: {"texts": 0} if "texts" in known else known for name, known in kinds.items()}
    schema = pa.schema([_field(name, known, form) for name, known in kinds.items()])
    return _RowTable(path, opened.form, schema, count)


def _note_kinds(
    path: Path, form: FileForm, name: str, rows: Sequence[Row], known: dict[str, int]
) -> None:
    """Add the kinds of a column's values, each with the place of its first row."""
    for place, cells in rows:
        value = cells.get(name)
        if (kind := _kind(value)) not in known:
            known[kind] = place
        if isinstance(value, str) and not _is_unicode(value):
            raise DataError(
                f"{path}, {form.unit} {place}, column {name!r}: expected Unicode text, got "
                "half a surrogate pair"
            )


def _size(cells: Mapping[str, Any]) -> int:
    """Estimate the bytes of a row's cells."""
    try:
        return sum(map(len, cells.values()))  # as a rule they are texts
    except TypeError:
        return sum(len(cell) if isinstance(cell, str) else 8 for cell in cells.values())


def _kind(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, str):
        return "texts"
    if isinstance(value, bool):
        return "booleans"
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return "whole numbers"
    return {float: "numbers", list: "lists", dict: "objects"}.get(type(value), "large numbers")


def _field(name: str, known: dict[str, int], form: FileForm) -> pa.Field:
    kinds = set(known) - {"none"}
    if kinds == {"whole numbers", "numbers"}:
        kinds = {"numbers"}
    if not kinds or (form.kind == "excel" and len(kinds) > 1):
        return pa.field(name, pa.string())
    if len(kinds) == 1 and kinds <= set(_TYPES):
        return pa.field(name, _TYPES[kinds.pop()])
    firsts = sorted((place, kind) for kind, place in known.items() if kind in kinds)
    text = ", ".join(f"{kind} ({form.unit} {place})" for place, kind in firsts)
    return pa.field(name, pa.string(), metadata={JSON_VALUE: text.encode()})


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _column(field: pa.Field, values: list[Any], kind: Kind) -> pa.Array:
    if is_json(field):
        values = [None if value is None else json_text(value) for value in values]
    elif kind == "csv" and field.type != pa.string():
        values = [int(cell) if cell else None for cell in values]
    elif kind == "excel" and field.type == pa.string():  # of a column with texts and numbers
        values = [cell_text(value) for value in values]
    return arrow_array(values, field.type)


def gathered(items: Iterable[tuple[ItemT, int, int]]) -> Iterator[list[ItemT]]:
    """Gather items to pieces.

    Args:
        items: Items, each with its number of rows and its bytes.
    """
    piece: list[ItemT] = []
    rows = size = 0
    for item, count, length in items:
        piece.append(item)
        rows, size = rows + count, size + length
        if rows >= PIECE_ROWS or size >= PIECE_BYTES:
            yield piece
            piece, rows, size = [], 0, 0
    if piece:
        yield piece


def is_json(field: pa.Field) -> bool:
    """Tell whether a column's texts are JSON values of several kinds."""
    return JSON_VALUE in (field.metadata or {})


def json_text(value: object) -> str:
    """Write a value as JSON, and what JSON does not know as its text."""
    return json.dumps(value, ensure_ascii=False, default=str)
