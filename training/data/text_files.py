"""Labelled texts from the user's own CSV, TSV or JSON-lines file, plain or gzipped."""

import ast
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from training.data.file_content import read_utf8
from training.data.problems import Problems
from training.errors import DataError, ForeignDataError
from training.tables.csv_rows import csv_rows
from training.tables.text_columns import TEXT_COLUMNS, column_called

LABEL_COLUMNS = ("label", "sentiment", "class", "category", "target", "polarity", "score")
SUFFIXES = (".csv", ".tsv", ".jsonl")


class LabelledRow(NamedTuple):
    """One text with the name of its class."""

    text: str
    label: str
    line: int = 0
    """Of the file, from 1; 0 for a row of no file."""


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

    Raises:
        ForeignDataError: No column looks like the text, or like the label.
        DataError: The file cannot be read, has no such columns, or, without `problems`, a row
            lacks text or label.
    """
    found = problems or Problems(str(path))
    suffix = _kind(path)
    content = read_utf8(path)
    records = (
        _json_records(content, found)
        if suffix == ".jsonl"
        else csv_records(path, content, "," if suffix == ".csv" else "\t", found)
    )
    rows: list[LabelledRow] = []
    text_key = label_key = ""
    for record in records:
        if not text_key:
            columns = list(record.cells)
            text_key = find_column(path, columns, text_column, TEXT_COLUMNS, "text")
            label_key = find_column(path, columns, label_column, LABEL_COLUMNS, "label")
        text, label = record.cells.get(text_key), record.cells.get(label_key)
        problem = _problem(record, text_key, label_key)
        if problem:
            found.bad_row(problem.partition(",")[0], record.line, problem)
        elif text is not None and label is not None:
            rows.append(LabelledRow(text, label.strip(), record.line))
    if not rows and not found.bad_rows:
        raise DataError(f"{path} has no rows")
    if problems is None:
        found.close_rows()
        found.raise_errors()
    return rows


def _problem(record: Record, text_key: str, label_key: str) -> str | None:
    """The reason why a row cannot be used, or None."""
    text, label = record.cells.get(text_key), record.cells.get(label_key)
    if text is None or not text.strip():
        return f"the text is empty (column {text_key!r})"
    if text_key in record.nested:
        return f"expected a text in column {text_key!r}, got {text:.40}"
    if label is None or not label.strip():
        return f"the label is missing (column {label_key!r})"
    if label_key in record.nested or _is_list(label):
        return f"expected one label in column {label_key!r}, got {label:.40}"
    if any("\ud800" <= character <= "\udfff" for character in text + label):
        return "expected Unicode text, got half a surrogate pair"
    return None


def _is_list(label: str) -> bool:
    """Whether a cell holds a list or an object in the notation of JSON or Python."""
    if not label.lstrip().startswith(("[", "{")):
        return False
    try:
        return isinstance(ast.literal_eval(label.strip()), list | dict | set)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False


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
    raise ForeignDataError(
        f"{source}: no column looks like the {what}; its columns are {list(columns)}, "
        f"name one with --{what}-column"
    )
