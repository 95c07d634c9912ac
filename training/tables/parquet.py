"""Parquet files."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from training.errors import DataError
from training.tables.lines import open_hashed
from training.tables.table_file import PIECE_BYTES, PIECE_ROWS, TableFile

_FEWEST = 256
"""Rows of a piece, however large they are."""


class ParquetFile(TableFile):
    """A Parquet file; see :func:`training.tables.table_file.open_table`."""

    def place(self, row: int) -> str:
        """The row's number, from 1."""
        return f"row {row + 1}"

    def _pieces(self, schema: pa.Schema, skip: int) -> Iterator[pa.RecordBatch]:
        try:
            with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=1 << 20) as file:
                groups: list[int] = []
                passed = 0
                for group in range(file.metadata.num_row_groups):
                    rows = file.metadata.row_group(group).num_rows
                    if passed + rows > skip or groups:
                        groups.append(group)
                    else:
                        passed += rows
                rest = skip - passed
                stream = file.iter_batches(
                    _rows_at_once(file), row_groups=groups, columns=schema.names, use_threads=False
                )
                for batch in stream:
                    left = batch.slice(rest)
                    rest = max(0, rest - batch.num_rows)
                    if left.num_rows:
                        yield left.select(schema.names).cast(schema)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"cannot read {self.path}: {error}") from error


def open_parquet(path: Path) -> ParquetFile:
    """Opens a file.

    Raises:
        DataError: it is no complete Parquet file.
    """
    try:
        with pq.ParquetFile(path) as file:
            schema, rows = file.schema_arrow.remove_metadata(), file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is no complete Parquet file: {error}") from error
    if len(set(schema.names)) < len(schema.names):
        raise DataError(f"{path}: two columns have the same name: {schema.names}")
    with open_hashed(path) as file:
        return ParquetFile(path, schema, rows, file.digest())


def _rows_at_once(file: pq.ParquetFile) -> int:
    """So many rows that a piece is about as large as it may be."""
    metadata = file.metadata
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    row = max((group.total_byte_size / max(1, group.num_rows) for group in groups), default=0)
    return max(_FEWEST, min(PIECE_ROWS, int(PIECE_BYTES / max(row, 1))))
