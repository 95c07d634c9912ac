"""The finished parts of an output file, kept beside it until it is complete."""

import contextlib
import glob
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

from gru_training.errors import ScoringError
from gru_training.runs.lock import RunLock
from gru_training.tables.output_file import FileKind, put_in_place, to_disk, unwritten
from gru_training.tables.table_writer import table_writer


class Parts:
    """The rows of an output file that are done, in `.NAME.partial-DIGEST`; a context manager.

    Killed at any moment, and after a power cut, a part is there as a whole or not at all. Only
    one process at a time works on it. Leaving the context keeps the parts; `publish`
    makes the output of them.

    Args:
        output: Where the whole is to be.
        digest: Of all that the rows depend on: parts with another digest are not continued.
        schema: Of the rows.
    """

    def __init__(self, output: Path, digest: str, schema: pa.Schema):
        self._output, self._schema = output, schema
        self._folder = output.with_name(f".{output.name}.partial-{digest[:16]}")
        self._lock = RunLock(output.with_name(f"{self._folder.name}.lock"))
        self._parts: list[Path] = []
        self.rows = 0
        """How many rows are done."""

    def __enter__(self) -> "Parts":
        try:
            if not self._lock.acquire():
                raise ScoringError(f"{self._output} is being written by another process")
            self._folder.mkdir(exist_ok=True)
            self._find()
        except OSError as error:
            self._lock.release()
            raise unwritten(self._output, error) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self._folder.rmdir()  # if nothing is done
        self._lock.release()

    def _find(self) -> None:
        """Take the parts that follow each other, and remove all others."""
        for path in sorted(self._folder.iterdir()):
            rows = 0
            if path.name == _part_name(self.rows):
                with contextlib.suppress(pa.ArrowException, OSError):
                    rows = pq.read_metadata(path).num_rows
            if rows:
                self._parts.append(path)
                self.rows += rows
            else:
                path.unlink()

    def append(self, piece: pa.RecordBatch) -> None:
        """Add the next rows.

        Raises:
            ScoringError: They cannot be written.
        """
        path = self._folder / _part_name(self.rows)
        aside = path.with_suffix(".aside")
        try:
            table = pa.Table.from_batches([piece], self._schema)
            pq.write_table(table, aside, compression="zstd", write_page_checksum=True)
            to_disk(aside)
            aside.replace(path)
        except OSError as error:
            raise unwritten(self._output, error) from error
        self._parts.append(path)
        self.rows += piece.num_rows

    def publish(self, kind: FileKind, overwrite: bool) -> None:
        """Write all rows to the output, which appears when it is whole, and remove the parts.

        Parts that other settings have left are removed, too.

        Args:
            kind: Of the output.
            overwrite: Whether it may be there already.

        Raises:
            ScoringError: It cannot be written, or is there already.
            DataError: Files of this kind cannot hold a column.
        """
        aside = self._folder / "whole.aside"
        try:
            with table_writer(aside, kind, self._schema) as writer:
                for piece in self._pieces():
                    writer.write(piece)
            put_in_place(aside, self._output, overwrite)
        except OSError as error:
            raise unwritten(self._output, error) from error
        for folder in self._output.parent.glob(f".{glob.escape(self._output.name)}.partial-*"):
            if folder.is_dir():
                shutil.rmtree(folder, ignore_errors=True)

    def _pieces(self) -> Iterator[pa.RecordBatch]:
        for path in self._parts:
            # Not by read_table, which loads pandas.
            with pq.ParquetFile(path, page_checksum_verification=True) as part:
                yield from part.read().cast(self._schema).to_batches()


def others_began(output: Path, digest: str) -> bool:
    """Whether there are parts of this output with other data or settings."""
    pattern = f".{glob.escape(output.name)}.partial-*"
    return any(
        folder.is_dir() and not folder.name.endswith(digest[:16])
        for folder in output.parent.glob(pattern)
    )


def _part_name(first_row: int) -> str:
    return f"{first_row:015d}.parquet"
