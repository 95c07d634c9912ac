"""Texts whose targets are probabilities, from another model or from several annotators.

Each row has a text and a probability for every class, in columns with the names of the classes (as
written by `gru-train predict`) or as a JSON object in one column.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gru_training.data.label_cells import TargetKind
from gru_training.data.problems import Problems, counted
from gru_training.data.text_files import find_column
from gru_training.errors import DataError
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.rows import text_key
from gru_training.tables.rows import cell_text, read_rows
from gru_training.tables.text_columns import TEXT_COLUMNS, own_column

OBJECT_COLUMN = "probabilities"
"""Column of JSON objects unless the settings name another one."""
_TOLERANCE = 0.011
"""Largest difference of a row's sum from 1, which probabilities of two digits may have."""


@dataclass(frozen=True)
class SoftTexts:
    """Texts with the probability of each class or label."""

    texts: tuple[str, ...]
    probabilities: np.ndarray
    """(M, C) float32; for classes each row sums to 1."""

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class SoftTable:
    """Rows from which `SoftTexts` are read."""

    name: str
    columns: Sequence[str]
    rows: Iterable[tuple[int, Mapping[str, Any]]]
    """Line or number of each row, and its cells by column."""
    unit: str = "row"


def _open_soft(path: Path, config: SentimentConfig, problems: Problems) -> SoftTable:
    """Open the table of `--soft-data`, and collect its malformed rows."""
    opened = read_rows(path, config.data.text_format, problems.bad_row, bounded=True)
    for note in opened.form.notes:
        problems.note(note)
    columns, rows = opened.with_columns()
    return SoftTable(str(path), columns, rows, opened.form.unit)


def soft_table(data: Any) -> SoftTable | None:
    """Wrap the rows of a table in memory: pandas, Polars, PyArrow and others; None for None.

    Raises:
        DataError: The data are no table.
    """
    if data is None:
        return None
    from gru_training.data.frames import as_frame

    frame = as_frame(data)
    if frame is None:
        raise DataError(
            "soft: expected a table with a column of texts and one of each class, got "
            f"{type(data).__name__}; of a file name it in the setting soft_data"
        )
    return SoftTable("soft", frame.columns, enumerate(frame.iter_rows(named=True)))


def read_soft(
    config: SentimentConfig,
    classes: Sequence[str],
    kind: TargetKind,
    held_out: Iterable[str],
    problems: Problems,
    table: SoftTable | None = None,
) -> SoftTexts | None:
    """Read the rows of `--soft-data`, or given ones, without texts that are held out.

    Args:
        config: Settings of the training.
        classes: The C classes or labels of the data.
        kind: Kind of target of the data.
        held_out: Texts of the validation and test rows.
        problems: Collector of what is wrong with the rows, and how many are left out.
        table: Rows in memory, in place of the file.

    Returns:
        Texts; None without soft data, or if problems keep them from being used.

    Raises:
        DataError: The file cannot be read, its columns are not those of the classes, or no row is
            left.
    """
    path = config.soft.soft_data
    if path is None and table is None:
        return None
    if kind == "number":
        raise DataError(
            "--soft-data: expected data with classes or labels, whose probabilities are learned; "
            "got numbers to estimate; put rows with estimated numbers into --more-data"
        )
    found = Problems(table.name if table else str(path), config.data.drop_bad)
    if table is None:
        assert path is not None
        table = _open_soft(path, config, found)
    found.unit = table.unit
    found.columns = problems.columns
    texts, values = _rows(table, config, tuple(classes), kind, found)
    found.close_rows(bool(texts))
    excluded = {text_key(text) for text in held_out}
    kept = [number for number, text in enumerate(texts) if text_key(text) not in excluded]
    if len(kept) < len(texts):
        found.note(
            f"{counted(len(texts) - len(kept), 'row')} left out, whose text is held out for "
            "validation or test"
        )
    problems.absorb(found)
    if found.errors:
        return None
    if not kept:
        raise DataError(f"{table.name}: expected texts that are not held out, got none")
    return SoftTexts(tuple(texts[k] for k in kept), values[kept])


def _rows(
    table: SoftTable,
    config: SentimentConfig,
    classes: tuple[str, ...],
    kind: TargetKind,
    problems: Problems,
) -> tuple[list[str], np.ndarray]:
    """Read texts and probabilities (M, C) float32 of the rows that can be used."""
    wanted = own_column(problems.columns, "text", table.columns)
    text_column = find_column(table.name, table.columns, wanted, TEXT_COLUMNS, "text")
    columns = _probability_columns(table, config.soft.soft_column, classes)
    texts, values = list[str](), list[list[float]]()
    for place, cells in table.rows:
        text = cell_text(cells.get(text_column))
        try:
            if text is None or not text.strip():
                raise ValueError(f"the text is empty (column {text_column!r})")
            if isinstance(columns, str):
                given = _object(cells.get(columns), columns, classes)
            else:
                given = [cells.get(column) for column in columns]
            row = [_share(value, name) for value, name in zip(given, classes, strict=True)]
            if kind == "class" and abs(sum(row) - 1) > _TOLERANCE:
                raise ValueError(f"expected probabilities that sum to 1, got {sum(row):.4g}")
        except ValueError as error:
            problems.bad_row(str(error).partition(",")[0], place, str(error))
            continue
        texts.append(text)
        values.append(row)
    probabilities = np.array(values, np.float64).reshape(len(values), len(classes))
    if kind == "class":
        probabilities /= probabilities.sum(axis=1, keepdims=True)
    return texts, probabilities.astype(np.float32)


def _probability_columns(
    table: SoftTable, wanted: str | None, classes: Sequence[str]
) -> list[str] | str:
    """Find the columns of the classes, or the one with objects."""
    from gru_training.scoring.class_columns import class_columns

    columns = class_columns(classes)
    missing = [column for column in columns if column not in table.columns]
    if not missing and wanted is None:
        return columns
    named = wanted or OBJECT_COLUMN
    if named in table.columns:
        return named
    classes_shown = ", ".join(map(repr, columns))
    lacking = "" if len(missing) == len(columns) else f" without {', '.join(map(repr, missing))}"
    raise DataError(
        f"{table.name}: expected a column with the probability of each class, {classes_shown}, or "
        f"a column {named!r} with JSON objects (--soft-column); got the columns "
        f"{', '.join(map(repr, table.columns))}{lacking}"
    )


def _object(cell: Any, column: str, classes: Sequence[str]) -> list[Any]:
    """Return the values of a JSON object in the order of the classes."""
    value = cell
    if isinstance(cell, str):
        try:
            value = json.loads(cell)
        except (ValueError, RecursionError):
            value = None
    if isinstance(value, list):  # a map of Arrow
        value = dict(value) if all(isinstance(pair, tuple) for pair in value) else None
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a JSON object in column {column!r}, got {cell!s:.60}")
    unknown = [name for name in value if name not in classes]
    if unknown:
        raise ValueError(
            f"expected the classes {', '.join(map(repr, classes))}, got {unknown[0]!r:.60}"
        )
    return [value.get(name) for name in classes]


def _share(value: Any, name: str) -> float:
    """Read a probability."""
    if value is None or (isinstance(value, str) and not value.strip()):
        raise ValueError(f"the probability of {name!r} is missing")
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number <= 1:
        raise ValueError(f"expected a probability from 0 to 1 of {name!r}, got {value!s:.40}")
    return number
