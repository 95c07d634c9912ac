"""JSON lines."""

import json
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from gru_training.errors import DataError
from gru_training.tables.lines import open_hashed, text_lines
from gru_training.tables.table_file import (
    Progress,
    TableFile,
    gathered,
    is_json,
    json_field,
    json_text,
)

_KINDS = {
    "texts": pa.string(),
    "booleans": pa.bool_(),
    "whole numbers": pa.int64(),
    "numbers": pa.float64(),
}


class Row(NamedTuple):
    """A row, the line it stands on and how long that is."""

    line: int
    values: dict[str, Any]
    size: int


class JsonLinesFile(TableFile):
    """A file of JSON lines; see `gru_training.tables.table_file.open_table`."""

    def __init__(self, path: Path, schema: pa.Schema, rows: int, digest: str, gzipped: bool):
        super().__init__(path, schema, rows, digest)
        self._gzipped = gzipped

    def place(self, row: int) -> str:
        """The line of a row; the file is read again to find it."""
        found = next(islice(self._rows(), row, None), None)
        return f"row {row}" if found is None else f"line {found.line}"

    def _rows(self) -> Iterator[Row]:
        with open_hashed(self.path) as file:
            yield from _rows(self.path, text_lines(self.path, file, self._gzipped))

    def _pieces(self, schema: pa.Schema, skip: int) -> Iterator[pa.RecordBatch]:
        rows = islice(self._rows(), skip, None)
        for values in gathered((row.values, 1, row.size) for row in rows):
            yield _piece(schema, values)


def open_json_lines(path: Path, gzipped: bool, progress: Progress) -> JsonLinesFile:
    """Look through a file; arguments and errors as of `open_table`.

    Args:
        path: Of the file.
        gzipped: Whether to unpack it.
        progress: Told how many rows there are so far.
    """
    kinds: dict[str, dict[str, int]] = {}  # of each column, with the first line of each kind
    count, told = 0, time.monotonic()
    with open_hashed(path) as file:
        for row in _rows(path, text_lines(path, file, gzipped)):
            count += 1
            for name, value in row.values.items():
                known = kinds.setdefault(name, {})
                if (kind := _kind(value)) not in known:
                    known[kind] = row.line
                if kind == "texts" and not _is_unicode(value):
                    raise DataError(
                        f"{path}, line {row.line}, column {name!r}: expected Unicode text, got "
                        "half a surrogate pair"
                    )
            if not count % 1024 and time.monotonic() > told + 0.1:
                told = time.monotonic()
                progress(count)
        digest = file.digest()
    schema = pa.schema([_field(name, known) for name, known in kinds.items()])
    return JsonLinesFile(path, schema, count, digest, gzipped)


def _rows(path: Path, lines: Iterator[str]) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}, line {number}: not JSON ({error})") from error
        if not isinstance(values, dict):
            raise DataError(f"{path}, line {number}: expected a JSON object, got {line[:40]!r}")
        yield Row(number, values, len(line))


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


def _field(name: str, known: dict[str, int]) -> pa.Field:
    kinds = set(known) - {"none"}
    if kinds == {"whole numbers", "numbers"}:
        kinds = {"numbers"}
    if not kinds:
        return pa.field(name, pa.string())
    if len(kinds) == 1 and kinds <= set(_KINDS):
        return pa.field(name, _KINDS[kinds.pop()])
    firsts = sorted((line, kind) for kind, line in known.items() if kind in kinds)
    return json_field(name, ", ".join(f"{kind} (line {line})" for line, kind in firsts))


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _piece(schema: pa.Schema, rows: list[dict[str, Any]]) -> pa.RecordBatch:
    columns = []
    for field in schema:
        values = [row.get(field.name) for row in rows]
        if is_json(field):
            values = [None if value is None else json_text(value) for value in values]
        columns.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
