"""Parquet files."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gru_training.errors import DataError
from gru_training.tables import table_file
from gru_training.tables.lines import open_hashed
from gru_training.tables.table_file import TableFile, gathered

_ROWS = 256
"""Rows that are decoded at once: how large they will be is not known before."""


class ParquetFile(TableFile):
    """A Parquet file; see `gru_training.tables.table_file.open_table`."""

    def place(self, row: int) -> str:
        """The row's number, from 0."""
        return f"row {row}"

    def _pieces(self, schema: pa.Schema, skip: int) -> Iterator[pa.RecordBatch]:
        try:
            for batches in gathered(
                (batch, batch.num_rows, batch.nbytes) for batch in self._batches(schema, skip)
            ):
                (piece,) = pa.Table.from_batches(batches, schema).combine_chunks().to_batches()
                yield piece
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"cannot read {self.path}: {error}") from error

    def _batches(self, schema: pa.Schema, skip: int) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(
            self.path, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True
        ) as file:
            sizes = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
            first = 0
            while first < len(sizes) and skip >= sizes[first]:
                skip -= sizes[first]
                first += 1
            for batch in file.iter_batches(
                min(_ROWS, table_file.PIECE_ROWS),
                row_groups=range(first, len(sizes)),
                columns=schema.names,
                use_threads=False,
            ):
                left = batch.slice(skip)
                skip = max(0, skip - batch.num_rows)
                if left.num_rows:
                    yield left.select(schema.names).cast(schema)


def open_parquet(path: Path) -> ParquetFile:
    """Open a file.

    Raises:
        DataError: It is not a complete Parquet file.
    """
    try:
        with pq.ParquetFile(path) as file:
            schema, rows = file.schema_arrow.remove_metadata(), file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a complete Parquet file: {error}") from error
    if len(set(schema.names)) < len(schema.names):
        raise DataError(f"{path}: two columns have the same name: {schema.names}")
    with open_hashed(path) as file:
        return ParquetFile(path, schema, rows, file.digest())
