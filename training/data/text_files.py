"""Labelled texts from the user's own CSV, TSV or JSON-lines file, plain or gzipped."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from training.data.file_content import read_utf8
from training.errors import DataError

TEXT_COLUMNS = ("text", "sentence", "review", "content", "comment", "message", "document")
LABEL_COLUMNS = ("label", "sentiment", "class", "category", "target", "polarity", "score")
SUFFIXES = (".csv", ".tsv", ".jsonl")
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}


class LabelledRow(NamedTuple):
    """One text with the name of its class."""

    text: str
    label: str


class Record(NamedTuple):
    """A row of a file, by column name."""

    line: int
    cells: dict[str, str | None]


def read_text_file(
    path: Path, text_column: str | None = None, label_column: str | None = None
) -> list[LabelledRow]:
    """Read all rows of a .csv, .tsv or .jsonl file (or the same with .gz).

    CSV and TSV files need a header and follow the usual quoting rules: a cell may be put in
    double quotes and then hold the separator, line breaks and doubled quotes.

    Args:
        path: The file.
        text_column: Name of the column with the text; by default one called as in
            `TEXT_COLUMNS` (in any case).
        label_column: Likewise for the label and `LABEL_COLUMNS`.

    Raises:
        DataError: The file cannot be read, has no such columns, or a row lacks text or label.
    """
    suffix = _kind(path)
    content = read_utf8(path)
    records = (
        _json_records(path, content)
        if suffix == ".jsonl"
        else csv_records(path, content, "," if suffix == ".csv" else "\t")
    )
    rows: list[LabelledRow] = []
    text_key = label_key = ""
    for record in records:
        if not rows:
            columns = list(record.cells)
            text_key = _column(path, columns, text_column, TEXT_COLUMNS, "text")
            label_key = _column(path, columns, label_column, LABEL_COLUMNS, "label")
        text, label = record.cells.get(text_key), record.cells.get(label_key)
        if text is None or not text.strip():
            raise DataError(f"{path}, line {record.line}: the text is empty (column {text_key!r})")
        if label is None or not label.strip():
            raise DataError(
                f"{path}, line {record.line}: the label is missing (column {label_key!r})"
            )
        if any("\ud800" <= character <= "\udfff" for character in text + label):
            raise DataError(
                f"{path}, line {record.line}: expected Unicode text, got half a surrogate pair"
            )
        rows.append(LabelledRow(text, label.strip()))
    if not rows:
        raise DataError(f"{path} has no rows")
    return rows


def _kind(path: Path) -> str:
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix.lower() not in SUFFIXES:
        raise DataError(f"{path}: expected a file name ending in {', '.join(SUFFIXES)} (or .gz)")
    return suffix.lower()


def csv_records(path: Path, content: str, delimiter: str) -> Iterator[Record]:
    """The rows of a file with a header line, with the line each begins on.

    Raises:
        DataError: There is no header, or a row does not fit it; names the line.
    """
    # A text may be longer than the 131,072 letters that a cell may have by default.
    csv.field_size_limit(max(csv.field_size_limit(), len(content)))
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(reader, None)
        if header is None:
            raise DataError(f"{path} is empty; expected a header line")
        if len(header) == 1 and (other := _other_delimiter(header[0], delimiter)):
            raise DataError(
                f"{path}, line 1: expected columns separated by {_DELIMITERS[delimiter]}, got "
                f"{_DELIMITERS[other]}: {header[0]!r:.60}"
            )
        if len(set(header)) < len(header):
            raise DataError(f"{path}: two columns have the same name: {header}")
        line = reader.line_num + 1
        for cells in reader:
            if cells and len(cells) != len(header):
                raise DataError(
                    f"{path}, line {line}: expected {len(header)} cells as in the header, "
                    f"got {len(cells)}"
                )
            if cells:
                yield Record(line, dict(zip(header, cells, strict=True)))
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{path}, line {reader.line_num}: not well-formed ({error}); is a quote unbalanced?"
        ) from error


def _other_delimiter(cell: str, delimiter: str) -> str | None:
    """The likely delimiter of a header that was read as a single column."""
    found = [other for other in _DELIMITERS if other != delimiter and other in cell]
    return max(found, key=cell.count, default=None)


def _json_records(path: Path, content: str) -> Iterator[Record]:
    for line, source in enumerate(content.split("\n"), start=1):
        if not source.strip():
            continue
        try:
            value = json.loads(source)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}, line {line}: not JSON ({error})") from error
        if not isinstance(value, dict):
            raise DataError(f"{path}, line {line}: expected a JSON object, got {source[:40]!r}")
        yield Record(line, {key: _json_cell(cell) for key, cell in value.items()})


def _json_cell(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def _column(
    path: Path, columns: list[str], wanted: str | None, known: tuple[str, ...], what: str
) -> str:
    if wanted is not None:
        if wanted in columns:
            return wanted
        raise DataError(f"{path} has no column {wanted!r}; its columns are {columns}")
    for name in known:
        for column in columns:
            if column.strip().lower() == name:
                return column
    raise DataError(
        f"{path}: no column looks like the {what}; its columns are {columns}, "
        f"name one with --{what}-column"
    )
