"""From a file of rows to a file with their answers, of any size."""

import hashlib
import json
import signal
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from rich.console import Console

from gru_training.errors import DataError, InterruptedWork, ScoringError
from gru_training.scoring.engine import score_batches
from gru_training.scoring.parts import Parts, others_began
from gru_training.scoring.progress import ScoringProgress
from gru_training.scoring.scorer import RowError, Scorer
from gru_training.tables.file_form import AS_FOUND, TextFormat
from gru_training.tables.output_file import file_kind, require_writable
from gru_training.tables.table_file import JSON_VALUE, is_json, open_table
from gru_training.tables.text_columns import column_called
from gru_training.termination import check_interrupt, remembered_interrupts

_FORM = 1
"""The form of the parts; raised if earlier parts could not be continued."""


@dataclass(frozen=True)
class Scored:
    """The result."""

    rows: int
    """All rows of the output."""
    resumed: int
    """Those that an earlier run had done."""
    seconds: float
    """The time that the others took."""

    def summary(self) -> str:
        """All this in one line."""
        new = self.rows - self.resumed
        before = f", {self.resumed:,} of them before" if self.resumed else ""
        return (
            f"{self.rows:,} rows{before}; {self.seconds:,.1f} s, "
            f"{new / max(self.seconds, 1e-9):,.0f} rows/s"
        )


class FileJob:
    """A file of rows to be answered, checked as far as that goes without the model.

    Args:
        data: Table that `gru_training.tables.rows.read_rows` reads; read twice.
        output: A .csv, .tsv, .jsonl (also .gz) or .parquet file; it appears when it is complete.
        inputs: The columns that the model reads, each with the names by which it is found.
        columns: Names of those columns in the file, unless they are to be found by name.
        keep: Columns of the file that the output gets, too; all by default.
        overwrite: Whether the output may be there already.
        console: Shows that the file is being read, and what was assumed of it.
        given: How the text is written, where that is known.

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
        given: TextFormat = AS_FOUND,
    ):
        self._console = console or Console(quiet=True)
        self._output, self._overwrite = output, overwrite
        self._kind = file_kind(output, "--output")
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
        """Answer the rows that are not done yet, and write the output.

        Args:
            scorer: Reads the columns that were checked.

        Raises:
            DataError: A row cannot be read; names the line.
            ScoringError: The output cannot be written.
            InterruptedWork: On Ctrl-C; what is done is kept.
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
        """A digest of everything that determines a row of the output."""
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
    """The columns of a table that a model reads.

    Args:
        source: Of the table, for messages.
        schema: Of the table.
        inputs: What the model reads, each with the names by which it is found (in any case).
        given: Names of columns, for inputs that are not to be found like that.

    Raises:
        DataError: There is no such column, or it holds values of several kinds.
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
                f"{', '.join(names)}; name one with --{name}-column"
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
    """The columns of the output: those that are kept, then the answers.

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
