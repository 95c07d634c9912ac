"""A series from the user's own CSV file, plain or gzipped."""

import math
from array import array
from pathlib import Path

import numpy as np

from training.data.file_content import as_text, read_bytes
from training.data.series import Series
from training.data.text_files import Record, csv_records
from training.data.time_axis import (
    TimeCells,
    complete,
    infer_frequency,
    parse_times,
    require_ascending,
)
from training.errors import DataError

TIME_COLUMNS = ("date", "time", "datetime", "timestamp", "ds", "day", "week", "month", "year")
MISSING = ("", "na", "nan", "n/a", "null", "none", "-", "?")
"""Also those of serving/commands/series_csv.py, which must read what a model was trained on."""
_FEWEST_ROWS = 3


def read_series(
    path: Path,
    time_column: str | None = None,
    time_format: str | None = None,
    keep_rows: bool = False,
) -> Series:
    """Read a .csv file (or .csv.gz) of numbers over time.

    It needs a header, ascending times in one column and numbers in all others; a cell may be
    missing (`MISSING`, in any case). Times left out are filled with missing values.

    Args:
        path: The file.
        time_column: Name of the column with the times; by default one called as in
            `TIME_COLUMNS` (in any case), or else the first.
        time_format: As for `strptime`; guessed by default.
        keep_rows: Take the rows as they stand, whatever their times: published results on a
            public set count them so.

    Raises:
        DataError: The file is not so; names line and column.
    """
    if not path.is_file():
        raise DataError(f"--data: there is no file {path}")
    content, notes = _decode(path)
    # Column by column: as rows of dicts a table would take ten times the memory.
    time, columns = "", tuple[str, ...]()
    texts, lines, numbers = list[str](), array("q"), array("d")
    for row in csv_records(path, content, ","):
        if not texts:
            names = list(row.cells)
            time = _time_column(path, names, time_column)
            columns = tuple(name for name in names if name != time)
            if not columns:
                raise DataError(
                    f"{path}: expected columns of numbers beside the times {time!r}, got none"
                )
        texts.append(row.cells[time] or "")
        lines.append(row.line)
        numbers.extend(_number(path, row, name) for name in columns)
    if len(texts) < _FEWEST_ROWS:
        raise DataError(f"{path}: expected at least {_FEWEST_ROWS} rows, got {len(texts)}")
    values = np.array(numbers).reshape(len(texts), len(columns))
    cells = TimeCells(str(path), time, texts, lines)
    times = parse_times(cells, time_format)
    name = path.name.split(".")[0]
    if keep_rows:
        frequency = infer_frequency(times)
        return Series(name, str(path), columns, values, times, frequency, tuple(notes))
    require_ascending(times, cells)
    axis = complete(times, cells)
    table = np.full((len(axis.times), len(columns)), np.nan)
    table[axis.places] = values
    gaps = len(table) - len(values)
    if gaps:
        notes.append(f"{gaps:,} times are missing from the file and were added as missing values")
    missing = int(np.isnan(values).sum())
    if missing:
        notes.append(f"{missing:,} cells of the file are missing values")
    return Series(name, str(path), columns, table, axis.times, axis.frequency, tuple(notes))


def _decode(path: Path) -> tuple[str, list[str]]:
    """The text, and a note where it is not UTF-8: then units in the header make the difference."""
    content = read_bytes(path)
    try:
        return as_text(path, content), []
    except UnicodeDecodeError:
        return as_text(path, content, "latin-1"), ["the file is not UTF-8 and was read as Latin-1"]


def _time_column(path: Path, names: list[str], wanted: str | None) -> str:
    if wanted is None:
        known = [name for name in names if name.strip().lower() in TIME_COLUMNS]
        return known[0] if known else names[0]
    if wanted not in names:
        raise DataError(f"{path} has no column {wanted!r}; its columns are {names}")
    return wanted


def _number(path: Path, row: Record, name: str) -> float:
    cell = (row.cells[name] or "").strip()
    if cell.lower() in MISSING:
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        value = math.inf
    if math.isinf(value) or "_" in cell:
        raise DataError(
            f"{path}, line {row.line}, column {name!r}: expected a number or an empty cell, "
            f"got {cell!r:.40}"
        )
    return value
