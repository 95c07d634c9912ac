"""A table in a file: looked through once, then read in pieces that fit into memory."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from gru_training.errors import DataError
from gru_training.tables.file_kind import file_kind

PIECE_ROWS = 8192
"""About this many rows make a piece."""
PIECE_BYTES = 32 << 20
"""If rows are long, a piece has fewer: about this many bytes in memory."""
JSON_VALUE = b"keras_gru.json"
"""Marks, in a field's metadata, texts that are JSON values of several kinds."""

ItemT = TypeVar("ItemT")
Progress = Callable[[int], None]
"""Told how many rows there are so far."""


class TableFile(ABC):
    """A file that was read through once and can be read again.

    Args:
        path: Of the file.
        schema: Names and types of its columns.
        rows: How many there are.
        digest: SHA-256, in hexadecimal, of the file's bytes.
    """

    def __init__(self, path: Path, schema: pa.Schema, rows: int, digest: str):
        self.path, self.schema, self.rows, self.digest = path, schema, rows, digest

    def pieces(
        self, columns: Sequence[str] | None = None, skip: int = 0
    ) -> Iterator[pa.RecordBatch]:
        """The rows in their order, about `PIECE_ROWS` at once.

        The ends of the pieces depend only on the file and on `skip`.

        Args:
            columns: Those to read; all by default.
            skip: Rows to skip at the beginning.

        Raises:
            DataError: The file has changed and cannot be read any more.
        """
        names = self.schema.names if columns is None else list(columns)
        return self._pieces(pa.schema([self.schema.field(name) for name in names]), skip)

    @abstractmethod
    def _pieces(self, schema: pa.Schema, skip: int) -> Iterator[pa.RecordBatch]:
        """As `pieces`, of the columns of this schema."""

    @abstractmethod
    def place(self, row: int) -> str:
        """Where a row is, for messages.

        Lines of text files are counted from 1, as editors do; rows of other tables from 0, as
        `iloc` of pandas does.

        Args:
            row: Its number, from 0.
        """


def open_table(path: Path, progress: Progress | None = None) -> TableFile:
    """Look through a .csv, .tsv, .jsonl (also .gz) or .parquet file, with bounded memory.

    CSV and TSV files need a header line and follow the usual quoting rules. A column of whole
    numbers as programs write them (no leading zeros, no signs but minus; empty cells are missing
    ones) is one of 64-bit integers, any other is of texts, letter by letter as in the file.

    In JSON lines each line is an object; the columns are all keys in the order in which they
    appear, and a row without a key has a missing value there. Values of several kinds, lists and
    objects become texts of JSON, which are written as they were read.

    Args:
        path: Of the file, which is read twice, so it cannot be a pipe.
        progress: Told about ten times a second.

    Raises:
        DataError: The file cannot be read; names the line, or of Parquet the column.
    """
    from gru_training.tables import delimited, json_lines, parquet

    kind = file_kind(path)
    if not path.is_file():
        what = "is not a file" if path.exists() else "there is no such file"
        raise DataError(f"cannot read {path}: {what}")
    told = progress or (lambda _: None)
    if kind.suffix == ".parquet":
        return parquet.open_parquet(path)
    if kind.suffix == ".jsonl":
        return json_lines.open_json_lines(path, kind.gzipped, told)
    delimiter = "," if kind.suffix == ".csv" else "\t"
    return delimited.open_delimited(path, delimiter, kind.gzipped, told)


def gathered(items: Iterable[tuple[ItemT, int, int]]) -> Iterator[list[ItemT]]:
    """Items until they are a piece, one piece after the other.

    Args:
        items: Each with its number of rows and its bytes.
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
    """Whether a column's texts are JSON values of several kinds."""
    return JSON_VALUE in (field.metadata or {})


def json_field(name: str, kinds: str) -> pa.Field:
    """A column of texts that are JSON values, of these kinds."""
    return pa.field(name, pa.string(), metadata={JSON_VALUE: kinds.encode()})


def json_text(value: object) -> str:
    """A value as JSON, what JSON does not know as its text."""
    return json.dumps(value, ensure_ascii=False, default=str)
