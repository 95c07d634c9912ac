"""The scoring of a file of any size, with the answers written to a file."""

import contextlib
import glob
import hashlib
import json
import shutil
import signal
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from gru_training.errors import DataError, InterruptedWork, ScoringError
from gru_training.runs.lock import RunLock
from gru_training.scoring.engine import score_batches
from gru_training.scoring.scorer import RowError, Scorer
from gru_training.tables.file_form import DETECTED_FORMAT, TextFormat
from gru_training.tables.table_file import JSON_VALUE, is_json, open_table
from gru_training.tables.table_writer import (
    FileKind,
    file_kind,
    put_in_place,
    require_writable,
    table_writer,
    to_disk,
    unwritten,
)
from gru_training.tables.text_columns import column_called, header_hint
from gru_training.termination import check_interrupt, remembered_interrupts

_PROGRESS_SECONDS = 30.0
"""Seconds between two lines if there is no terminal."""


class ScoringProgress:
    """A context manager that shows a bar in a terminal, otherwise a line from time to time.

    Args:
        console: Console to write to.
        rows: Number of all rows.
        done: Number of rows that were done before.
    """

    def __init__(self, console: Console, rows: int, done: int):
        self._console, self._rows, self._before = console, rows, done
        self._bar = Progress(
            TextColumn("scoring"),
            BarColumn(),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=rows, completed=done, state="")

    def __enter__(self) -> "ScoringProgress":
        self._started = self._said = time.monotonic()
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def update(self, done: int) -> None:
        """Show how many rows are done."""
        now = time.monotonic()
        speed = (done - self._before) / max(now - self._started, 1e-9)
        left = time.strftime("%H:%M:%S", time.gmtime((self._rows - done) / max(speed, 1e-9)))
        state = f"{done:,} of {self._rows:,} rows, {speed:,.0f} rows/s, {left} left"
        self._bar.update(self._task, completed=done, state=state)
        if not self._console.is_terminal and now > self._said + _PROGRESS_SECONDS:
            self._said = now
            self._console.print(state, highlight=False)


class Parts:
    """The finished rows of an output file, in `.NAME.partial-DIGEST`; a context manager.

    If the process is killed at any moment, or after a power cut, a part exists completely or not at
    all. Only one process at a time can work on it. Leaving the context keeps the parts; `publish`
    turns them into the output.

    Args:
        output: Path of the whole file.
        digest: Digest of all that the rows depend on: parts with another digest are not continued.
        schema: Schema of the rows.
    """

    def __init__(self, output: Path, digest: str, schema: pa.Schema):
        self._output, self._schema = output, schema
        self._folder = output.with_name(f".{output.name}.partial-{digest[:16]}")
        self._lock = RunLock(output.with_name(f"{self._folder.name}.lock"))
        self._parts: list[Path] = []
        self.rows = 0
        """Number of rows that are done."""

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

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._folder.rmdir()  # if nothing is done
        self._lock.release()

    def _find(self) -> None:
        """Keep the consecutive parts, and remove all others."""
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
            ScoringError: The rows cannot be written.
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
        """Write all rows atomically to the output, and remove the parts.

        Parts with other settings are removed, too.

        Args:
            kind: Kind of the output.
            overwrite: Whether a file that is there already is replaced.

        Raises:
            ScoringError: The output cannot be written, or is there already.
            DataError: Files of this kind cannot hold a column.
        """
        aside = self._folder / "whole.aside"
        try:
            with table_writer(aside, kind, self._schema) as write:
                for piece in self._pieces():
                    write(piece)
            put_in_place(aside, self._output, overwrite)
        except OSError as error:
            raise unwritten(self._output, error) from error
        for folder in self._output.parent.glob(f".{glob.escape(self._output.name)}.partial-*"):
            if folder.is_dir():
                shutil.rmtree(folder, ignore_errors=True)

    def _pieces(self) -> Iterator[pa.RecordBatch]:
        for path in self._parts:
            # read_table is not used because it loads pandas.
            with pq.ParquetFile(path, page_checksum_verification=True) as part:
                yield from part.read().cast(self._schema).to_batches()


def others_began(output: Path, digest: str) -> bool:
    """Tell whether there are parts of this output with other data or settings."""
    pattern = f".{glob.escape(output.name)}.partial-*"
    return any(
        folder.is_dir() and not folder.name.endswith(digest[:16])
        for folder in output.parent.glob(pattern)
    )


def _part_name(first_row: int) -> str:
    return f"{first_row:015d}.parquet"


_FORM = 1
"""Format number of the parts; it is raised when earlier parts could not be continued."""


@dataclass(frozen=True)
class Scored:
    """The result of scoring a file."""

    rows: int
    """All rows of the output."""
    resumed: int
    """Number of rows done by an earlier run."""
    seconds: float
    """Seconds for the other rows."""

    def summary(self) -> str:
        """Write the summary in one line."""
        new = self.rows - self.resumed
        before = f", {self.resumed:,} of them before" if self.resumed else ""
        return (
            f"{self.rows:,} rows{before}; {self.seconds:,.1f} s, "
            f"{new / max(self.seconds, 1e-9):,.0f} rows/s"
        )


class FileJob:
    """A file of rows to be answered, checked as far as possible without the model.

    Args:
        data: Table that `gru_training.tables.rows.read_rows` reads; read twice.
        output: A .csv, .tsv, .jsonl (also .gz) or .parquet file; it appears when it is complete.
        inputs: The columns that the model reads, each with the names by which it is found.
        columns: Names of those columns in the file, unless they are to be found by name.
        keep: Columns of the file that the output gets, too; all by default.
        overwrite: Whether the output may be there already.
        console: Console on which to say that the file is being read, and what was assumed of it.
        given: Format of the text, as far as it is known.

    Raises:
        DataError: The file cannot be read, or lacks a column.
        ScoringError: The output cannot be written.
    """

    def __init__(
        self,
        data: Path,
        output: Path,
        inputs: Mapping[str, Sequence[str]],
        *,
        columns: Mapping[str, str] | None = None,
        keep: Sequence[str] | None = None,
        overwrite: bool = False,
        console: Console | None = None,
        given: TextFormat = DETECTED_FORMAT,
    ):
        self._console = console or Console(quiet=True)
        self._output, self._overwrite = output, overwrite
        self._kind = file_kind(output)
        _check_output(data, output, overwrite)
        with self._console.status(f"reading {data} ...") as status:
            self._table = open_table(
                data, lambda rows: status.update(f"reading {data} ... {rows:,} rows"), given
            )
        for note in self._table.form.notes:
            self._console.print(f"note: {data}: {note}", markup=False, highlight=False)
        self._columns = find_columns(data, self._table.schema, inputs, columns or {})
        self._keep = self._table.schema.names if keep is None else list(keep)
        for name in self._keep:
            if name not in self._table.schema.names:
                raise DataError(f"--keep: {_no_column(data, self._table.schema, name)}")

    def run(self, scorer: Scorer) -> Scored:
        """Answer the remaining rows, and write the output.

        Args:
            scorer: Scorer that reads the columns that were checked.

        Raises:
            DataError: A row cannot be read; names the line.
            ScoringError: The output cannot be written.
            InterruptedWork: The user pressed Ctrl-C; what is done is kept.
        """
        schema = output_schema(self._table.schema, self._keep, scorer.answers)
        digest = self._digest(scorer)
        if others_began(self._output, digest):
            self._console.print(
                f"note: {self._output} was begun earlier with other data or settings; what was "
                "finished then cannot be reused, and is removed at the end",
                markup=False,
                highlight=False,
            )
        started = time.perf_counter()
        with Parts(self._output, digest, schema) as parts:
            done = parts.rows
            if done:
                self._console.print(
                    f"continuing after row {done:,} of {self._table.rows:,}", highlight=False
                )
            try:
                self._score(scorer, schema, parts)
                with self._console.status(f"writing {self._output} ..."):
                    parts.publish(self._kind, self._overwrite)
            except RowError as error:
                raise DataError(
                    f"{self._table.path}, {self._table.place(error.row)}, column "
                    f"{error.column!r}: {error.message}"
                ) from error
            except KeyboardInterrupt as error:
                raise InterruptedWork(
                    f"interrupted; {parts.rows:,} of {self._table.rows:,} rows are done. Run the "
                    "same command again to continue"
                ) from error
        return Scored(self._table.rows, done, time.perf_counter() - started)

    def _score(self, scorer: Scorer, schema: pa.Schema, parts: Parts) -> None:
        read = [*self._keep, *(name for name in self._columns.values() if name not in self._keep)]
        waiting: deque[pa.RecordBatch] = deque()
        done = parts.rows

        def pieces() -> Iterator[pa.RecordBatch]:
            for piece in self._table.pieces(read, done):
                waiting.append(piece)
                yield piece

        with (
            remembered_interrupts(signal.SIGINT),
            ScoringProgress(self._console, self._table.rows, done) as progress,
        ):
            try:
                for answers in score_batches(scorer, pieces(), self._columns):
                    kept = waiting.popleft().select(self._keep)
                    piece = [*kept.columns, *answers.columns]
                    parts.append(pa.RecordBatch.from_arrays(piece, schema=schema))
                    progress.update(parts.rows)
                    check_interrupt()
            except RowError as error:
                raise RowError(done + error.row, error.column, error.message) from error
        if parts.rows != self._table.rows:
            raise DataError(
                f"{self._table.path} has changed: expected {self._table.rows:,} rows, got "
                f"{parts.rows:,}"
            )

    def _digest(self, scorer: Scorer) -> str:
        """Compute a digest of everything that determines a row of the output."""
        follows_from = {
            "form": _FORM,
            "data": self._table.digest,
            "written": self._table.form._replace(notes=()),
            "columns": self._columns,
            "keep": self._keep,
            "model": dict(scorer.identity),
        }
        return hashlib.sha256(json.dumps(follows_from, sort_keys=True).encode()).hexdigest()


def find_columns(
    source: Path | str,
    schema: pa.Schema,
    inputs: Mapping[str, Sequence[str]],
    given: Mapping[str, str],
) -> dict[str, str]:
    """Find the columns of a table that a model reads.

    Args:
        source: Name of the table in messages.
        schema: Schema of the table.
        inputs: Names of the model's inputs, each with the column names that suit it (in any case).
        given: Names of columns, for inputs that are not to be found like that.

    Raises:
        DataError: The table has no such column, or it holds values of several kinds.
    """
    names = schema.names
    found: dict[str, str] = {}
    for name, known in inputs.items():
        wanted = given.get(name)
        if wanted is not None and wanted not in names:
            raise DataError(f"--{name}-column: {_no_column(source, schema, wanted)}")
        column = wanted or column_called(known, names)
        if column is None:
            raise DataError(
                f"{source}: no column looks like the {name}; its columns are "
                f"{', '.join(names)}; name one with --{name}-column{header_hint(names)}"
            )
        field = schema.field(column)
        if is_json(field):
            raise DataError(
                f"{source}, column {column!r}: expected values of one kind, got "
                f"{field.metadata[JSON_VALUE].decode()}"
            )
        found[name] = column
    return found


def output_schema(rows: pa.Schema, keep: Sequence[str], answers: pa.Schema) -> pa.Schema:
    """Return the columns of the output: those that are kept, then the answers.

    A kept column with the name of an answer gets `input_` before its name.
    """
    taken = {*keep, *answers.names}
    fields = []
    for name in keep:
        column = name
        if name in answers.names:
            while column in taken:
                column = f"input_{column}"
            taken.add(column)
        fields.append(rows.field(name).with_name(column))
    return pa.schema([*fields, *answers])


def _no_column(source: Path | str, schema: pa.Schema, name: str) -> str:
    return f"{source} has no column {name!r}; its columns are {', '.join(schema.names)}"


def _check_output(data: Path, output: Path, overwrite: bool) -> None:
    if data.exists() and output.exists() and data.samefile(output):
        raise ScoringError(f"--output {output}: expected another file than --data")
    require_writable(output, overwrite)
