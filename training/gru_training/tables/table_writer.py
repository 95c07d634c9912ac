"""Writes a table to a file, piece by piece."""

import csv
import datetime
import gzip
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gru_training.errors import DataError
from gru_training.tables.output_file import FileKind
from gru_training.tables.table_file import is_json, json_text

_GROUP_ROWS, _GROUP_BYTES = 1 << 17, 64 << 20
"""Rows and bytes of a row group of Parquet, roughly."""


class TableWriter(ABC):
    """A context manager; the file is complete once the context is left without an error."""

    @abstractmethod
    def write(self, piece: pa.RecordBatch) -> None:
        """Append rows."""

    @abstractmethod
    def close(self) -> None:
        """Write what is left."""

    def __enter__(self) -> "TableWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def table_writer(path: Path, kind: FileKind, schema: pa.Schema) -> TableWriter:
    """Begin a file.

    In CSV and TSV missing values are empty cells and lists are JSON; float32 numbers have as many
    digits as tell them apart. In JSON lines times are texts as ISO 8601 has them.

    Args:
        path: Of the file, which is written over.
        kind: Of its content, whatever its name.
        schema: Of the pieces.

    Raises:
        DataError: The kind of file cannot hold a column.
    """
    if kind.suffix == ".parquet":
        return ParquetWriter(path, schema)
    for field in schema:
        if _is_binary(field.type):
            raise DataError(
                f"column {field.name!r}: expected what a {kind.suffix} file can hold, got bytes; "
                "leave it out with --keep, or write .parquet"
            )
    stream = _open_text(path, kind.gzipped)
    if kind.suffix == ".jsonl":
        return JsonLinesWriter(stream, schema)
    return DelimitedWriter(stream, schema, "," if kind.suffix == ".csv" else "\t")


def _open_text(path: Path, gzipped: bool) -> IO[str]:
    if gzipped:
        return gzip.open(path, "wt", encoding="utf-8", newline="")
    return path.open("w", encoding="utf-8", newline="")


class ParquetWriter(TableWriter):
    """Parquet, compressed with Zstandard."""

    def __init__(self, path: Path, schema: pa.Schema):
        self._schema = schema
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")
        self._waiting: list[pa.RecordBatch] = []

    def write(self, piece: pa.RecordBatch) -> None:
        """Append rows."""
        self._waiting.append(piece)
        rows = sum(piece.num_rows for piece in self._waiting)
        if rows >= _GROUP_ROWS or sum(piece.nbytes for piece in self._waiting) >= _GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        """Write what is left."""
        if self._waiting:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        self._writer.write_table(pa.Table.from_batches(self._waiting, self._schema))
        self._waiting = []


class DelimitedWriter(TableWriter):
    """CSV or TSV with a header line; cells are quoted where they must be."""

    def __init__(self, stream: IO[str], schema: pa.Schema, delimiter: str):
        self._stream = stream
        self._writer = csv.writer(_UnixLines(stream), delimiter=delimiter)
        self._writer.writerow(schema.names)

    def write(self, piece: pa.RecordBatch) -> None:
        """Append rows."""
        columns = [_cells(column) for column in piece.columns]
        self._writer.writerows(zip(*columns, strict=True))

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


class _UnixLines:
    """Ends lines with a line feed alone.

    A csv.writer told to do so would not quote a carriage return in a cell.
    """

    def __init__(self, stream: IO[str]):
        self._stream = stream

    def write(self, line: str) -> None:
        """Write one line, which comes with a carriage return and a line feed."""
        self._stream.write(line[:-2] + "\n")


class JsonLinesWriter(TableWriter):
    """One JSON object per line."""

    def __init__(self, stream: IO[str], schema: pa.Schema):
        self._stream, self._schema = stream, schema

    def write(self, piece: pa.RecordBatch) -> None:
        """Append rows."""
        names = self._schema.names
        columns = [
            _json_values(column, is_json(field))
            for field, column in zip(self._schema, piece.columns, strict=True)
        ]
        for row in zip(*columns, strict=True):
            text = json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=_text)
            self._stream.write(text + "\n")

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def _cells(column: pa.Array) -> list[Any]:
    """The texts of cells; None is written as an empty one."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_nested(column.type):
        return [None if value is None else json_text(value) for value in column.to_pylist()]
    if pa.types.is_floating(column.type):
        values: list[Any] = pc.cast(column, pa.string()).to_pylist()  # the shortest digits
        return values
    if pa.types.is_temporal(column.type):
        return [None if value is None else _text(value) for value in column.to_pylist()]
    cells: list[Any] = column.to_pylist()
    return cells


def _json_values(column: pa.Array, parse: bool) -> list[Any]:
    if pa.types.is_float32(column.type) or pa.types.is_float16(column.type):
        column = pc.cast(pc.cast(column, pa.string()), pa.float64())  # of the shortest digits
    values: list[Any] = column.to_pylist()
    if parse:
        return [None if value is None else json.loads(value) for value in values]
    if pa.types.is_floating(column.type):
        return [None if value is None or not math.isfinite(value) else value for value in values]
    return values


def _text(value: Any) -> str:
    """ISO 8601 for what has to do with time."""
    if isinstance(value, datetime.date | datetime.time):  # a datetime is a date
        return value.isoformat()
    return str(value)


def _is_binary(kind: pa.DataType) -> bool:
    is_one: tuple[Callable[[pa.DataType], bool], ...] = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
    )
    return any(test(kind) for test in is_one)
