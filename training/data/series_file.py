"""A series from the user's own CSV file, plain or gzipped."""

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from training.data.file_content import as_text, read_bytes
from training.data.problems import DataProblemsError, Problems
from training.data.series import Series
from training.data.text_files import Record, csv_records
from training.data.time_axis import (
    TimeAxis,
    TimeCells,
    complete,
    gaps,
    in_order,
    infer_frequency,
    parse_times,
)
from training.errors import DataError, ForeignDataError

TIME_COLUMNS = ("date", "time", "datetime", "timestamp", "ds", "day", "week", "month", "year")
MISSING = ("", "na", "nan", "n/a", "null", "none", "-", "?")
"""Also those of serving/commands/series_csv.py, which must read what a model was trained on."""
_FEWEST_ROWS = 3
_OFTEN = 0.7
"""Different times, as a share of the rows, below which a file has several rows for a time."""


class ExpectedSeries(NamedTuple):
    """What newer values of a known series must agree with."""

    columns: tuple[str, ...]
    """All of them, in this order whatever theirs."""
    frequency: str
    """Pandas' name of the spacing."""


class SeriesRows(NamedTuple):
    """The rows of a file or table, unchanged."""

    time: str
    columns: tuple[str, ...]
    texts: Sequence[str]
    lines: Sequence[int]
    values: np.ndarray
    """(rows, C) float64."""


def read_series(
    path: Path,
    time_column: str | None = None,
    time_format: str | None = None,
    keep_rows: bool = False,
    problems: Problems | None = None,
    expected: ExpectedSeries | None = None,
) -> Series:
    """Read a .csv file (or .csv.gz) of numbers over time.

    It needs a header, ascending times in one column and numbers in all others; a cell may be
    missing (`MISSING`, in any case). Times left out are filled with missing values.

    Args:
        path: The file.
        time_column: Name of the column with the times; by default one named in `TIME_COLUMNS` (in
            any case), or else the first.
        time_format: As for `strptime`; guessed by default.
        keep_rows: Keep the rows as they are, whatever their times, as published results on public
            data sets do.
        problems: Receives rows and cells that cannot be used, which are left out or count as
            missing; by default they raise.
        expected: The series that it must continue; other columns are noted.

    Raises:
        ForeignDataError: No column holds numbers.
        DataError: The file is not like this; names line and column.
    """
    if not path.is_file():
        raise DataError(f"--data: there is no file {path}")
    found = problems or Problems(str(path))
    rows, notes = _read_rows(path, time_column, found, expected)
    name = path.name.split(".")[0]
    if keep_rows:
        found.close_rows()
        found.raise_errors()
        cells = TimeCells(str(path), rows.time, rows.texts, rows.lines)
        times = parse_times(cells, time_format)
        frequency = infer_frequency(times)
        return Series(name, str(path), rows.columns, rows.values, times, frequency, tuple(notes))
    series = evenly_spaced(rows, name, time_format, found, expected)
    if problems is None:
        found.raise_errors()
    return replace(series, notes=(*notes, *series.notes))


def evenly_spaced(
    rows: SeriesRows,
    name: str,
    time_format: str | None,
    problems: Problems,
    expected: ExpectedSeries | None = None,
) -> Series:
    """The series of these rows; times without a row get missing values.

    Args:
        rows: Of a file or table.
        name: Of the series.
        time_format: As for `strptime`; guessed by default.
        problems: Receives rows that cannot be used, which are left out.
        expected: The series that they must continue.

    Raises:
        DataError: Too few rows are left, or nearly all times are missing.
    """
    found, source = problems, problems.source
    fewest = 1 if expected else _FEWEST_ROWS
    cells = TimeCells(source, rows.time, rows.texts, rows.lines, problems.unit)
    times = parse_times(cells, time_format, found)
    readable = np.flatnonzero(~times.isna())
    values, cells = rows.values[readable], cells.chosen(readable)
    if len(readable) < len(times):  # without them day and month may be told apart
        times = parse_times(cells, time_format)
    order = in_order(times, cells, found)
    times, values, cells = times[order], values[order], cells.chosen(order)
    if len(times) < fewest:
        found.close_rows()
        found.raise_errors()
        raise DataError(f"{source}: expected at least {fewest} different times, got {len(times)}")
    axis = complete(times, cells, found, expected.frequency if expected else None)
    fits = axis.places >= 0
    table = np.full((len(axis.times), len(rows.columns)), np.nan)
    table[axis.places[fits]] = values[fits]
    missing = int(np.isnan(values[fits]).sum())
    found.close_rows()
    notes = []
    holes = gaps(axis)
    if holes:
        notes.append(_gap_note(axis, holes))
    if missing:
        notes.append(f"{missing:,} cells of the file are missing values")
    notes += found.notes
    found.notes.clear()
    return Series(name, source, rows.columns, table, axis.times, axis.frequency, tuple(notes))


def _read_rows(
    path: Path, time_column: str | None, problems: Problems, expected: ExpectedSeries | None
) -> tuple[SeriesRows, list[str]]:
    content, notes = _decode(path)
    # Column by column: as rows of dicts a table would take ten times the memory.
    time, columns = "", tuple[str, ...]()
    texts, lines, numbers = list[str](), array("q"), array("d")
    wrong: Counter[str] = Counter()
    for row in csv_records(path, content, ",", problems):
        if not texts:
            names = list(row.cells)
            time, columns, extra = series_columns(str(path), names, time_column, expected)
            notes += extra
            if not columns:
                raise ForeignDataError(
                    f"{path}: expected columns of numbers beside the times {time!r}, got none"
                )
        texts.append(row.cells[time] or "")
        lines.append(row.line)
        for name in columns:
            number = _number(row, name)
            if number is None:
                cell = (row.cells[name] or "").strip()
                message = f"expected a number or an empty cell, got {cell!r:.40}"
                problems.bad_cell(row.line, name, message)
                wrong[name] += 1
            numbers.append(math.nan if number is None else number)
    fewest = 1 if expected else _FEWEST_ROWS
    if len(texts) < fewest:
        problems.close_rows()
        problems.raise_errors()
        raise DataError(f"{path}: expected at least {fewest} rows, got {len(texts)}")
    values = np.array(numbers).reshape(len(texts), len(columns))
    if wrong and np.isnan(values).all():
        problems.drop_bad = False
        problems.close_rows()
        raise ForeignDataError(str(DataProblemsError(problems.source, problems.errors)))
    names = [name for name in columns if wrong[name] == len(texts)]
    if names and len(set(texts)) < _OFTEN * len(texts):
        problems.forget_rows()  # the error about the form of the table explains them
        raise DataError(
            f"{path}: expected a column for each series and a row for each time, got several rows "
            f"for a time, told apart by {names[0]!r}; pandas can turn it: "
            f"table.pivot(index={time!r}, columns={names[0]!r})"
        )
    return SeriesRows(time, columns, texts, lines, values), notes


def _gap_note(axis: TimeAxis, holes: Sequence[tuple[int, int]]) -> str:
    missing = sum(count for _, count in holes)
    place, longest = max(holes, key=lambda hole: hole[1])
    text = f"{missing:,} times are missing from the file and were added as missing values"
    if missing == 1:
        return f"{text}: {axis.times[place]}"
    if len(holes) == 1:
        return f"{text}, in one gap from {axis.times[place]}"
    return f"{text}, in {len(holes):,} gaps, the longest of {longest:,} from {axis.times[place]}"


def _decode(path: Path) -> tuple[str, list[str]]:
    """The text, with a note if it is not UTF-8, as happens with units in a header."""
    content = read_bytes(path)
    try:
        return as_text(path, content), []
    except UnicodeDecodeError:
        return as_text(path, content, "latin-1"), ["the file is not UTF-8 and was read as Latin-1"]


def series_columns(
    source: str, names: Sequence[str], time_column: str | None, expected: ExpectedSeries | None
) -> tuple[str, tuple[str, ...], list[str]]:
    """The column of times, those of numbers, and notes on others.

    Args:
        source: Of the columns, for messages.
        names: Of all of them.
        time_column: The one with the times; by default one named in `TIME_COLUMNS`, or else the
            first that is not expected to hold numbers.
        expected: The series that they must continue.

    Raises:
        DataError: A column is missing; names it.
    """
    wanted = expected.columns if expected else ()
    others = [name for name in names if name not in wanted]
    missing = [name for name in wanted if name not in names]
    if time_column is not None and time_column not in names:
        missing.append(time_column)
    if missing or not others:
        what = ", ".join(map(repr, missing)) or "with the times"
        raise ForeignDataError(f"{source} has no column {what}; its columns are {list(names)}")
    known = [name for name in others if name.strip().lower() in TIME_COLUMNS]
    time = time_column or (known or others)[0]
    if not expected:
        return time, tuple(name for name in names if name != time), []
    extra = [name for name in others if name != time]
    notes = [f"columns that the model does not know: {', '.join(extra)}"] if extra else []
    return time, tuple(wanted), notes


def _number(row: Record, name: str) -> float | None:
    """The number in a cell, NaN if it is missing; None if it is neither."""
    cell = (row.cells[name] or "").strip()
    if cell.lower() in MISSING:
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        return None
    return None if math.isinf(value) or "_" in cell else value
