"""Labelled texts from the user's own CSV, TSV or JSON-lines file, plain or gzipped."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from gru_training.data.file_content import read_utf8
from gru_training.data.label_cells import LabelCells
from gru_training.data.problems import Problems
from gru_training.errors import DataError, ForeignDataError
from gru_training.tables.csv_rows import csv_rows
from gru_training.tables.text_columns import LABEL_COLUMNS, TEXT_COLUMNS, column_called

SUFFIXES = (".csv", ".tsv", ".jsonl")
_NOTHING: Mapping[str, str | None] = MappingProxyType({})


class LabelledRow(NamedTuple):
    """One text with its label."""

    text: str
    label: str
    """As of `gru_training.data.label_cells`: the name of its class, as a rule."""
    line: int = 0
    """Of the file, from 1; 0 for a row of no file."""
    further: Mapping[str, str | None] = _NOTHING
    """Other cells that were asked for, by what they mean."""


class Record(NamedTuple):
    """A row of a file, by column name."""

    line: int
    cells: dict[str, str | None]
    nested: frozenset[str] = frozenset()
    """Columns in which JSON has a list or an object."""


def read_text_file(
    path: Path,
    text_column: str | None = None,
    label_column: str | None = None,
    problems: Problems | None = None,
    *,
    labels: LabelCells = LabelCells(),  # noqa: B008  frozen
    further: Mapping[str, str] = MappingProxyType({}),
) -> list[LabelledRow]:
    """Read all rows of a .csv, .tsv or .jsonl file (or the same with .gz).

    CSV and TSV files need a header and follow the usual quoting rules: a cell may be put in
    double quotes and then hold the separator, line breaks and doubled quotes.

    Args:
        path: The file.
        text_column: Name of the column with the text; by default one named in `TEXT_COLUMNS`
            (in any case).
        label_column: The same for the label and `LABEL_COLUMNS`.
        problems: Receives rows that cannot be used, which are left out; by default they raise.
        labels: How labels are written; of a kind that is known.
        further: Other columns to keep, by what they mean.

    Raises:
        ForeignDataError: No column looks like the text, or like the label.
        DataError: The file cannot be read, has no such columns, or, without `problems`, a row
            lacks text or label.
    """
    found = problems or Problems(str(path))
    rows, _ = read_text_rows(path, text_column, label_column, found, labels, further)
    if problems is None:
        found.close_rows()
        found.raise_errors()
    return rows


def read_text_rows(
    path: Path,
    text_column: str | None,
    label_column: str | None,
    problems: Problems,
    labels: LabelCells,
    further: Mapping[str, str],
) -> tuple[list[LabelledRow], LabelCells]:
    """As `read_text_file`; and how the labels turned out to be written."""
    records, text_key, label_key = _records(
        path, text_column, label_column, problems, labels.columns, tuple(further.values())
    )
    labels = labels.settled([(record.cells, record.nested) for record in records], label_key)
    for note in labels.notes([record.cells for record in records]):
        problems.note(note)
    rows: list[LabelledRow] = []
    for record in records:
        try:
            text = _text_of(record, text_key)
            label = labels.read(record.cells, record.nested, label_key)
            _require_unicode(text + label)
        except ValueError as error:
            problems.bad_row(str(error).partition(",")[0], record.line, str(error))
            continue
        kept = {meaning: record.cells.get(name) for meaning, name in further.items()}
        rows.append(LabelledRow(text, label, record.line, kept))
    if not rows and not problems.bad_rows:
        raise DataError(f"{path} has no rows")
    return rows, labels


def _records(
    path: Path,
    text_column: str | None,
    label_column: str | None,
    problems: Problems,
    label_columns: Sequence[str],
    further: Sequence[str],
) -> tuple[list[Record], str, str]:
    """The rows of a file as they stand there, and its columns of texts and of labels.

    The latter is empty with `label_columns`; arguments and errors as of `read_text_file`.
    """
    suffix = _kind(path)
    content = read_utf8(path)
    records = list(
        _json_records(content, problems)
        if suffix == ".jsonl"
        else csv_records(path, content, "," if suffix == ".csv" else "\t", problems)
    )
    if not records:
        return records, "", ""
    columns = list(dict.fromkeys(name for record in records for name in record.cells))
    text_key = find_column(path, columns, text_column, TEXT_COLUMNS, "text")
    label_key = ""
    if not label_columns:
        label_key = find_column(path, columns, label_column, LABEL_COLUMNS, "label")
    for name in (*label_columns, *further):
        find_column(path, columns, name, (), "label")
    return records, text_key, label_key


def _text_of(record: Record, column: str) -> str:
    """The text of a row; ValueError says why there is none."""
    text = record.cells.get(column)
    if text is None or not text.strip():
        raise ValueError(f"the text is empty (column {column!r})")
    if column in record.nested:
        raise ValueError(f"expected a text in column {column!r}, got {text:.40}")
    return text


def _require_unicode(text: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("expected Unicode text, got half a surrogate pair")


def _kind(path: Path) -> str:
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix.lower() not in SUFFIXES:
        raise DataError(f"{path}: expected a file name ending in {', '.join(SUFFIXES)} (or .gz)")
    return suffix.lower()


def csv_records(path: Path, content: str, delimiter: str, problems: Problems) -> Iterator[Record]:
    """The rows of a file with a header line, with the line on which each begins.

    Args:
        path: For messages.
        content: Of the file.
        delimiter: Between cells.
        problems: Receives rows that do not fit the header, which are left out.

    Raises:
        DataError: There is no header, or a quote has no end; names the line.
    """
    lines = io.StringIO(content, newline="")
    rows = csv_rows(path, lines, delimiter, lambda *row: problems.bad_row("cells", *row))
    header = next(rows).cells
    for line, cells in rows:
        yield Record(line, dict(zip(header, cells, strict=True)))


def _json_records(content: str, problems: Problems) -> Iterator[Record]:
    for line, source in enumerate(content.split("\n"), start=1):
        if not source.strip():
            continue
        try:
            value = json.loads(source)
        except (ValueError, RecursionError) as error:
            problems.bad_row("JSON", line, f"not JSON ({error})")
            continue
        if not isinstance(value, dict):
            problems.bad_row("object", line, f"expected a JSON object, got {source[:40]!r}")
            continue
        nested = frozenset(key for key, cell in value.items() if isinstance(cell, list | dict))
        yield Record(line, {key: _json_cell(cell) for key, cell in value.items()}, nested)


def _json_cell(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def find_column(
    source: Path | str,
    columns: Sequence[str],
    wanted: str | None,
    known: tuple[str, ...],
    what: str,
) -> str:
    """The column that is wanted, or else the first whose name is in `known`, in any case.

    Args:
        source: Of the columns, for errors.
        columns: To choose from.
        wanted: The name of one of them, if the user gave it.
        known: Names by which it is found.
        what: `text` or `label`.

    Raises:
        ForeignDataError: There is none.
    """
    if wanted is not None:
        if wanted in columns:
            return wanted
        raise ForeignDataError(
            f"{source} has no column {wanted!r}; its columns are {list(columns)}"
        )
    if (found := column_called(known, columns)) is not None:
        return found
    a_row = any(len(name.split()) > 3 for name in columns)
    raise ForeignDataError(
        f"{source}: no column looks like the {what}; its columns are {list(columns)}, "
        f"name one with --{what}-column"
        + (
            ". Is that a row? The first line must have the names, such as text,label"
            if a_row
            else ""
        )
    )
