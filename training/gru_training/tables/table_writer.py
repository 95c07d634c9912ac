"""The writing of a table to a file, piece by piece."""

import csv
import datetime
import gzip
import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gru_training.errors import DataError, ScoringError
from gru_training.tables.table_file import is_json, json_text

_KINDS = (".csv", ".tsv", ".jsonl", ".parquet")


class FileKind(NamedTuple):
    """The kind of content given by an output's name."""

    suffix: Literal[".csv", ".tsv", ".jsonl", ".parquet"]
    gzipped: bool


def file_kind(output: Path) -> FileKind:
    """Recognise the kind of a table to write by the end of the file's name.

    Raises:
        DataError: The name does not name a kind.
    """
    gzipped = output.suffix.lower() == ".gz"
    suffix = (Path(output.stem) if gzipped else output).suffix.lower()
    for kind in _KINDS:
        if suffix == kind and not (gzipped and kind == ".parquet"):
            return FileKind(kind, gzipped)  # type: ignore[arg-type]
    raise DataError(
        f"--output {output}: expected a file name ending in {', '.join(_KINDS)}, or .gz after one "
        "of the first three"
    )


def require_writable(output: Path, overwrite: bool) -> None:
    """Raise ScoringError if the file cannot be written, or exists and must be kept.

    Args:
        output: Path given with `--output`.
        overwrite: Whether a file that is there already is replaced.
    """
    folder = output.parent
    if not folder.is_dir():
        raise ScoringError(f"--output {output}: there is no folder {folder}")
    if output.is_dir():
        raise ScoringError(f"--output {output}: expected the name of a file, got a folder")
    if not os.access(folder, os.W_OK):
        raise ScoringError(f"--output {output}: the folder {folder} cannot be written to")
    _require_free(output, overwrite)


def put_in_place(aside: Path, output: Path, overwrite: bool) -> None:
    """Rename a complete file to the output.

    Raises:
        ScoringError: The output has come into being meanwhile, and is to stay.
        OSError: The file cannot be put there.
    """
    to_disk(aside)
    _require_free(output, overwrite)
    aside.replace(output)


def to_disk(path: Path) -> None:
    """Flush a file to disk; this is done before it is renamed, so that it is never empty."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def unwritten(output: Path, error: OSError) -> ScoringError:
    """Make the error for an output that the system does not let us write."""
    return ScoringError(f"cannot write {output}: {error.strerror or error}")


def _require_free(output: Path, overwrite: bool) -> None:
    if os.path.lexists(output) and not overwrite:
        raise ScoringError(
            f"{output} exists already; remove it, choose another --output, or add --overwrite"
        )


_GROUP_ROWS, _GROUP_BYTES = 1 << 17, 64 << 20
"""Approximate rows and bytes of a row group of Parquet."""


@contextmanager
def table_writer(
    path: Path, kind: FileKind, schema: pa.Schema
) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """Open a file of rows for writing inside the context, at whose end it is complete.

    In CSV and TSV missing values are empty cells and lists are JSON; float32 numbers have as many
    digits as needed to distinguish them. In JSON lines times are texts in ISO 8601.

    Args:
        path: Path of the file, which is written over.
        kind: Kind of the content, whatever the file's name.
        schema: Schema of the pieces.

    Yields:
        Function that appends rows.

    Raises:
        DataError: The kind of file cannot hold a column.
    """
    if kind.suffix == ".parquet":
        with pq.ParquetWriter(path, schema, compression="zstd") as file:
            waiting = list[pa.RecordBatch]()

            def flush() -> None:
                file.write_table(pa.Table.from_batches(waiting, schema))
                waiting.clear()

            def gather(piece: pa.RecordBatch) -> None:
                waiting.append(piece)
                rows = sum(piece.num_rows for piece in waiting)
                if rows >= _GROUP_ROWS or sum(each.nbytes for each in waiting) >= _GROUP_BYTES:
                    flush()

            yield gather
            if waiting:
                flush()
        return
    for field in schema:
        if _is_binary(field.type):
            raise DataError(
                f"column {field.name!r}: expected what a {kind.suffix} file can hold, got bytes; "
                "leave it out with --keep, or write .parquet"
            )
    opened: Any = gzip.open if kind.gzipped else open
    with opened(path, "wt", encoding="utf-8", newline="") as stream:
        if kind.suffix == ".jsonl":
            yield partial(_write_objects, stream, schema)
        else:
            separator = "," if kind.suffix == ".csv" else "\t"
            lines = csv.writer(_UnixLines(stream), delimiter=separator)
            lines.writerow(schema.names)
            yield partial(_write_lines, lines)


def _write_lines(lines: Any, piece: pa.RecordBatch) -> None:
    lines.writerows(zip(*map(_cells, piece.columns), strict=True))


def _write_objects(stream: IO[str], schema: pa.Schema, piece: pa.RecordBatch) -> None:
    columns = [
        _json_values(column, is_json(field))
        for field, column in zip(schema, piece.columns, strict=True)
    ]
    for row in zip(*columns, strict=True):
        values = dict(zip(schema.names, row, strict=True))
        stream.write(json.dumps(values, ensure_ascii=False, default=_text) + "\n")


class _UnixLines:
    """Ends lines with a line feed alone.

    A csv.writer with that line end would not quote a carriage return in a cell.
    """

    def __init__(self, stream: IO[str]):
        self._stream = stream

    def write(self, line: str) -> None:
        """Write one line, which ends with a carriage return and a line feed."""
        self._stream.write(line[:-2] + "\n")


def _cells(column: pa.Array) -> list[Any]:
    """Return the texts of cells; None becomes an empty one."""
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
    """Write times in ISO 8601."""
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
