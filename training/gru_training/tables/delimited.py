"""CSV and TSV files."""

import re
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa

from gru_training.tables.arrow_array import arrow_array
from gru_training.tables.csv_rows import Row, csv_rows
from gru_training.tables.lines import open_hashed, text_lines
from gru_training.tables.table_file import Progress, TableFile, gathered

_WHOLE_NUMBER = re.compile(r"-?[1-9][0-9]{0,17}|0|")  # as a program writes it, or missing


class DelimitedFile(TableFile):
    """A CSV or TSV file; see `gru_training.tables.table_file.open_table`."""

    def __init__(
        self, path: Path, schema: pa.Schema, rows: int, digest: str, delimiter: str, gzipped: bool
    ):
        super().__init__(path, schema, rows, digest)
        self._delimiter, self._gzipped = delimiter, gzipped

    def place(self, row: int) -> str:
        """The line on which a row begins; the file is read again to find it."""
        found = next(islice(self._rows(), row + 1, None), None)
        return f"row {row}" if found is None else f"line {found.line}"

    def _rows(self) -> Iterator[Row]:
        with open_hashed(self.path) as file:
            yield from csv_rows(
                self.path, text_lines(self.path, file, self._gzipped), self._delimiter
            )

    def _pieces(self, schema: pa.Schema, skip: int) -> Iterator[pa.RecordBatch]:
        places = [self.schema.get_field_index(name) for name in schema.names]
        rows = islice(self._rows(), skip + 1, None)
        for cells in gathered((row.cells, 1, sum(map(len, row.cells))) for row in rows):
            yield _piece(schema, places, cells)


def open_delimited(path: Path, delimiter: str, gzipped: bool, progress: Progress) -> DelimitedFile:
    """Look through a file; arguments and errors as of `open_table`.

    Args:
        path: Of the file.
        delimiter: Between cells.
        gzipped: Whether to unpack it.
        progress: Told how many rows there are so far.
    """
    with open_hashed(path) as file:
        rows = csv_rows(path, text_lines(path, file, gzipped), delimiter)
        header = next(rows).cells
        numbers, filled, count, told = set(range(len(header))), set(), 0, time.monotonic()
        for row in rows:
            count += 1
            for column in list(numbers):
                cell = row.cells[column]
                if not _WHOLE_NUMBER.fullmatch(cell):
                    numbers.discard(column)
                elif cell:
                    filled.add(column)
            if not count % 1024 and time.monotonic() > told + 0.1:
                told = time.monotonic()
                progress(count)
        digest = file.digest()
    fields = [
        (name, pa.int64() if column in numbers & filled else pa.string())
        for column, name in enumerate(header)
    ]
    return DelimitedFile(path, pa.schema(fields), count, digest, delimiter, gzipped)


def _piece(schema: pa.Schema, places: list[int], rows: list[list[str]]) -> pa.RecordBatch:
    columns = []
    for field, place in zip(schema, places, strict=True):
        cells = [row[place] for row in rows]
        if field.type == pa.string():
            columns.append(arrow_array(cells, field.type))
        else:
            numbers = [int(cell) if cell else None for cell in cells]
            columns.append(arrow_array(numbers, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
