"""Labelled texts from tables in files, and the form in which rows in memory are given."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any, NamedTuple

from gru_training.data.label_cells import Cells, LabelCells, TargetKind, is_number, label_flags
from gru_training.data.problems import Problems
from gru_training.errors import DataError, ForeignDataError
from gru_training.tables.file_form import DETECTED_FORMAT, TextFormat
from gru_training.tables.rows import cell_text, read_rows, require_calculated
from gru_training.tables.text_columns import (
    HEADER_HINT,
    HEADING_COLUMNS,
    LABEL_COLUMNS,
    TEXT_COLUMNS,
    column_called,
    header_hint,
    own_column,
)

_NAMES_SHOWN = 4
_MOST_CLASSES, _ROWS_EACH = 50, 3
"""Most different values, and fewest rows per value on average, of a column that is taken for
classes.
"""
_PROBE_ROWS, _WORDS = 200, 3
"""Rows in which a column of texts is looked for, and the fewest words of its median cell."""
_LABEL_STUDIO = frozenset(("annotations", "data"))
"""Columns of Label Studio's complete record of a text."""
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_NONE = frozenset[str]()
_ANSWER = "answer"
"""Column in which Prodigy states whether the label beside it applies."""
_ANSWERS = frozenset(("accept", "reject", "ignore"))
_NOTHING: Mapping[str, str | None] = MappingProxyType({})


class LabelledRow(NamedTuple):
    """One text with its labels."""

    text: str
    labels: tuple[str, ...]
    """Class, each of the labels, or digits of the number; none where the class is missing."""
    line: int = 0
    """Line or row of the text, see `gru_training.tables.rows.Row`; 0 for a row without a file."""
    further: Mapping[str, str | None] = _NOTHING
    """Contents of other requested cells by their meaning."""


def read_text_file(
    path: Path,
    text_column: str | None = None,
    label_column: str | None = None,
    problems: Problems | None = None,
    labels: LabelCells = LabelCells(),  # noqa: B008  frozen
    further: Mapping[str, str] = MappingProxyType({}),
    given: TextFormat = DETECTED_FORMAT,
    like: Mapping[str, str] = MappingProxyType({}),
) -> tuple[list[LabelledRow], LabelCells]:
    """Read all rows of a table that `gru_training.tables.rows.read_rows` reads.

    Args:
        path: The file.
        text_column: Name of the column with the text; by default one named in `TEXT_COLUMNS`
            (in any case).
        label_column: Name of the column with the label; by default one named in `LABEL_COLUMNS` (in
            any case).
        problems: Collector of rows that cannot be used, which are left out, and of notes; by
            default they raise.
        labels: Columns and format of the labels.
        further: Other columns to keep, by what they mean.
        given: Format of the text, as far as it is known.
        like: Columns of an earlier file by input, which are preferred to the usual names.

    Returns:
        Rows, and how their labels turned out to be written.

    Raises:
        ForeignDataError: No column looks like the text, or like the label.
        DataError: The file cannot be read, has no such columns, or, without `problems`, a row
            lacks text or label.
    """
    if problems is None:
        raised = Problems(str(path))
        result = read_text_file(
            path, text_column, label_column, raised, labels, further, given, like
        )
        raised.close_rows()
        raised.raise_errors()
        return result
    opened = read_rows(path, given, problems.bad_row, bounded=True)
    problems.unit = opened.form.unit
    for note in opened.form.notes:
        problems.note(note)
    columns, read = opened.with_columns()
    rest = iter(read)
    first = list(islice(rest, _PROBE_ROWS))
    read = chain(first, rest)
    text_key = label_key = ""
    text_column = text_column or own_column(like, "text", columns)
    label_column = label_column or own_column(like, "label", columns)
    if columns:
        source = opened.form.named(path)
        text_key = _find_text_column(source, columns, text_column, [cells for _, cells in first])
        unread = (cells for _, cells in read)
        if not labels.columns:
            label_key = find_label_column(source, columns, label_column, unread, text_key)
        for name in (*labels.columns, *further.values()):
            find_column(source, columns, name, (), "label")
    answer = _ANSWER if _ANSWER in columns and label_key not in ("", _ANSWER) else ""
    names = tuple({text_key, label_key, answer, *labels.columns, *further.values()} & set(columns))
    texts = _texts if opened.form.kind == "csv" else _as_texts
    records = [(place, *texts(cells, names)) for place, cells in read]
    if header_hint([text_key]) and any(row[1].get(label_key) == label_key for row in records):
        raise DataError(
            f"{path}: its columns are {list(columns)}{HEADER_HINT}: {label_key!r} stands below, too"
        )
    for name in (text_key, label_key) if records else ():
        require_calculated(path, opened.form, name, (cells.get(name) for _, cells, _ in records))
    labels = labels.settled([record[1:] for record in records], label_key)
    if text_key:
        problems.reading = _reading(text_key, label_key, labels)
        problems.columns = {"text": text_key, **({"label": label_key} if label_key else {})}
    answered = answer and {cells.get(answer) for _, cells, _ in records} <= _ANSWERS
    for note in labels.notes([cells for _, cells, _ in records]):
        problems.note(note)
    for name in columns:
        if name not in names and _is_second_text(name, (cells.get(name) for _, cells in first)):
            problems.note(
                f"the column {name!r} is not read; to learn from it, too, write both texts into "
                f"{text_key!r}"
            )
    rows: list[LabelledRow] = []
    for place, cells, nested in records:
        try:
            if cells and all(cell == name for name, cell in cells.items()):
                raise ValueError("expected a row, got the names of the columns once more")
            if answered:
                _require_accepted(cells[_ANSWER], label_key)
            text = _text_of(cells, nested, text_key)
            found = labels.read(cells, nested, label_key)
            for each in (text, *found):
                _require_unicode(each)
        except ValueError as error:
            problems.bad_row(str(error).partition(",")[0], place, str(error))
            continue
        kept = {meaning: cells.get(name) for meaning, name in further.items()} or _NOTHING
        rows.append(LabelledRow(text, found, place, kept))
    if not rows and not problems.bad_rows:
        raise DataError(f"{path} has no rows")
    return rows, labels


def _texts(cells: Mapping[str, str], names: Sequence[str]) -> tuple[Cells, frozenset[str]]:
    """Return some cells of a row of CSV."""
    return {name: cells[name] for name in names}, _NONE


def _as_texts(cells: Mapping[str, Any], names: Sequence[str]) -> tuple[Cells, frozenset[str]]:
    """Return some cells as texts, and which columns hold a list or an object, written as JSON."""
    nested = frozenset(name for name in names if isinstance(cells.get(name), list | dict))
    return {name: cell_text(cells.get(name)) for name in names}, nested


def _require_accepted(answer: str | None, label_column: str) -> None:
    if answer == "reject":
        raise ValueError(
            f"expected the label in column {label_column!r} to apply to the text, got one that "
            f"Prodigy's 'answer' rejects; of a single label --label-column {_ANSWER} says whether "
            "it applies"
        )
    if answer != "accept":
        raise ValueError(f"expected a text with a label, got Prodigy's 'answer' {answer!r}")


def _text_of(cells: Cells, nested: frozenset[str], column: str) -> str:
    """Return the text of a row."""
    text = cells.get(column)
    if text is None or not text.strip():
        raise ValueError(f"the text is empty (column {column!r})")
    if column in nested:
        raise ValueError(
            f"expected a text in column {column!r}, got {text:.40}; write the text itself there, "
            f'as in {{"{column}": "..."}}'
        )
    return text


def _require_unicode(text: str) -> None:
    if not text.isascii() and _HALF_PAIR.search(text):
        raise ValueError("expected Unicode text, got half a surrogate pair")


def find_column(
    source: Path | str,
    columns: Sequence[str],
    wanted: str | None,
    known: tuple[str, ...],
    what: str,
) -> str:
    """Find the wanted column, or else the first one whose name is in `known`, in any case.

    Args:
        source: Name of the table in errors.
        columns: Names of the table's columns.
        wanted: Name of the column, if the user gave it.
        known: Names by which it is found.
        what: `text` or `label`.

    Raises:
        ForeignDataError: The table has no such column.
    """
    if wanted is not None:
        if wanted in columns:
            return wanted
        raise ForeignDataError(
            f"{source} has no column {wanted!r}; its columns are {list(columns)}"
        )
    if (found := column_called(known, columns)) is not None:
        return found
    hint = header_hint(columns)
    if set(columns) >= _LABEL_STUDIO:
        hint = ". Is that all that Label Studio knows of the texts? Export them as JSON-MIN or CSV"
    raise ForeignDataError(
        f"{source}: no column looks like the {what}; its columns are {list(columns)}, "
        f"name one with --{what}-column{hint}"
    )


def _find_text_column(
    source: Path | str,
    columns: Sequence[str],
    wanted: str | None,
    rows: Sequence[Mapping[str, Any]],
) -> str:
    """Find the column of the texts like `find_column`; the error names the only one of words."""
    try:
        return find_column(source, columns, wanted, TEXT_COLUMNS, "text")
    except ForeignDataError as error:
        if wanted is not None:
            raise
        wordy = [name for name in columns if _median_words(row.get(name) for row in rows) >= _WORDS]
        if len(wordy) != 1:
            raise
        flags, reason = ("--text-column", wordy[0]), f"the column {wordy[0]!r} holds words"
        message = f"{error}; {reason}, which {shlex.join(flags)} reads"
        raise ForeignDataError(message, flags, reason) from None


def _median_words(cells: Iterable[Any]) -> float:
    """Count the words of the median cell."""
    counts = [len((cell_text(cell) or "").split()) for cell in cells]
    return median(counts) if counts else 0


def _is_second_text(name: str, cells: Iterable[Any]) -> bool:
    """Tell whether a column is called like texts and holds more than a word in most cells."""
    called = column_called((*TEXT_COLUMNS, *HEADING_COLUMNS), [name])
    return called is not None and _median_words(cells) > 1


def find_label_column(
    source: Path | str,
    columns: Sequence[str],
    wanted: str | None,
    rows: Iterable[Mapping[str, Any]],
    text_column: str = "",
) -> str:
    """Find the column of the labels like `find_column`.

    Args:
        source: Name of the table in errors.
        columns: Names of the table's columns.
        wanted: Name of the column, if the user gave it.
        rows: Cells of each row by column, among which columns of yes and no are looked for where no
            column has such a name.
        text_column: Name of the column of texts.

    Raises:
        ForeignDataError: The table has no such column; of columns of yes and no it has the flags
            that read them.
        DataError: The first line seems to be a row, whose label stands below, too.
    """
    try:
        return find_column(source, columns, wanted, LABEL_COLUMNS, "label")
    except ForeignDataError as error:
        if wanted is not None:
            raise
        table = list(rows)
        flags, reason = _flags_of(columns, table, text_column)
        below = [name for name in flags if any(str(row.get(name)) == name for row in table)]
        if below:  # as in a file without names
            hint = "" if HEADER_HINT in str(error) else HEADER_HINT
            raise DataError(f"{error}{hint}: {below[0]!r} stands below, too") from None
        if not flags:
            numbers = sum(is_number(str(row.get(text_column) or "")) for row in table)
            raise ForeignDataError(str(error), near=numbers <= len(table) / 2) from None
        raise ForeignDataError(
            f"{error}; {reason}, which {shlex.join(flags)} reads", flags, reason
        ) from None


def _flags_of(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], text_column: str
) -> tuple[tuple[str, ...], str]:
    """Suggest flags that read columns of yes and no, or the only one of classes, with the reason.

    Of several columns that may hold classes, it is one that has a usual name as a part of its own.
    """
    flags = label_flags(columns, rows)
    names = [flag for flag in flags if flag in columns]
    if names:
        each = ", to one of them in each row" if "class" in flags else ""
        says = "say" if len(names) > 1 else "says"
        return flags, f"{_listed(names)} {says} yes or no{each}"
    candidates = {}
    for name in columns:
        values = {str(row.get(name) or "") for row in rows} - {""}
        if name != text_column and 1 < len(values) <= min(_MOST_CLASSES, len(rows) / _ROWS_EACH):
            candidates[name] = len(values)
    called = [
        name for name in candidates if set(re.split(r"\W|_", name.lower())) & {*LABEL_COLUMNS}
    ]
    for names in (called, [*candidates]):
        if len(names) == 1:
            reason = f"{_listed(names)} holds {candidates[names[0]]} different values"
            return ("--label-column", names[0]), reason
    return (), ""


def _reading(text_column: str, label_column: str, labels: LabelCells) -> str:
    """Describe the columns that were read."""
    what = {"class": "classes", "labels": "labels", "number": "numbers"}[labels.kind or "class"]
    where = _listed(labels.columns) if labels.columns else repr(label_column)
    return f"texts in {text_column!r}, {what} in {where}"


def _listed(names: Sequence[str]) -> str:
    """Write the first names for a sentence."""
    if len(names) == 1:
        return f"the column {names[0]!r}"
    shown = [*map(repr, names[:_NAMES_SHOWN])]
    if len(names) > len(shown):
        shown.append(f"{len(names) - len(shown):,} more")
    return f"the columns {', '.join(shown[:-1])} and {shown[-1]}"


@dataclass(frozen=True)
class TextTable:
    """Labelled texts, with parts for validation and test unless these are to be drawn."""

    rows: Sequence[LabelledRow]
    """Rows to train on, from which missing parts are drawn."""
    validation: Sequence[LabelledRow] | None = None
    test: Sequence[LabelledRow] | None = None
    name: str = "table"
    """Name in reports and in names of runs."""
    kind: TargetKind = "class"
    """Kind of the labels."""
    notes: Sequence[str] = ()
    """Notes for a reader on the form of the labels."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Values that describe the table in `config.json` since it has no path; JSON values."""
