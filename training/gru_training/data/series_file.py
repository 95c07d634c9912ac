"""A series from the user's own CSV file, plain or gzipped."""

import math
from array import array
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gru_training.data.even_series import (
    FEWEST_ROWS,
    ExpectedSeries,
    SeriesRows,
    as_expected,
    evenly_spaced,
    with_absent,
)
from gru_training.data.file_content import as_text, read_bytes
from gru_training.data.long_form import BY_NAME, LongColumns, widened
from gru_training.data.problems import DataProblemsError, Problems
from gru_training.data.series import Series
from gru_training.data.text_files import Record, csv_records
from gru_training.data.time_axis import TimeCells, infer_frequency, parse_times
from gru_training.data.time_options import AS_THEY_ARE, TimeOptions
from gru_training.errors import DataError, ForeignDataError

TIME_COLUMNS = ("date", "time", "datetime", "timestamp", "ds", "day", "week", "month", "year")
MISSING = ("", "na", "nan", "n/a", "null", "none", "-", "?")
"""The same as in `gru_serving.commands.files.series_csv`, which reads what models learned from."""
_OFTEN = 0.7
"""Different times, as a share of the rows, below which a file has several rows for a time."""


def read_series(
    path: Path,
    time_column: str | None = None,
    time_format: str | None = None,
    keep_rows: bool = False,
    problems: Problems | None = None,
    expected: ExpectedSeries | None = None,
    long: LongColumns = BY_NAME,
    options: TimeOptions = AS_THEY_ARE,
    read: Collection[str] = (),
) -> Series:
    """Read a .csv file (or .csv.gz) of numbers over time.

    It needs a header, ascending times in one column and numbers in all others; a cell may be
    missing (`MISSING`, in any case). Times left out are filled with missing values. A file in long
    form has a row for each series and time: a column with the name of the series
    (`gru_training.data.long_form.ID_COLUMNS`), one of times and one of values.

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
        long: The columns of a file in long form.
        options: What to do with local, repeated, uneven and too fine times.
        read: Columns that must be read; another one that holds words alone is noted and left out.

    Raises:
        ForeignDataError: No column holds numbers.
        DataError: The file is not like this; names line and column.
    """
    if not path.is_file():
        raise DataError(f"--data: there is no file {path}")
    found = problems or Problems(str(path))
    rows, notes = _read_rows(path, time_column, found, expected, long, options, read)
    name = path.name.split(".")[0]
    if keep_rows:
        found.close_rows()
        found.raise_errors()
        cells = TimeCells(str(path), rows.time, rows.texts, rows.lines)
        times = parse_times(cells, time_format)
        frequency = infer_frequency(times)
        return Series(name, str(path), rows.columns, rows.values, times, frequency, tuple(notes))
    series = evenly_spaced(rows, name, time_format, found, expected, options)
    if problems is None:
        found.raise_errors()
    return replace(series, notes=(*notes, *series.notes))


def _read_rows(
    path: Path,
    time_column: str | None,
    problems: Problems,
    expected: ExpectedSeries | None,
    long: LongColumns,
    options: TimeOptions,
    read: Collection[str],
) -> tuple[SeriesRows, list[str]]:
    content, notes = _decode(path)
    # Column by column: as rows of dicts a table would take ten times the memory.
    time, columns = "", tuple[str, ...]()
    texts, lines, numbers = list[str](), array("q"), array("d")
    bad = defaultdict[str, list[tuple[int, str]]](list)
    ids, id_column = list[str](), None
    for row in csv_records(path, content, ",", problems):
        if not texts:
            names = list(row.cells)
            time, columns, id_column, extra = _columns(
                str(path), names, time_column, expected, long
            )
            notes += extra
            if not columns:
                raise ForeignDataError(
                    f"{path}: expected columns of numbers beside the times {time!r}, got none"
                )
        texts.append(row.cells[time] or "")
        lines.append(row.line)
        if id_column is not None:
            ids.append((row.cells[id_column] or "").strip())
        for name in columns:
            number = _number(row, name)
            if number is None:
                cell = (row.cells[name] or "").strip()
                bad[name].append(
                    (row.line, f"expected a number or an empty cell, got {cell!r:.40}")
                )
            numbers.append(math.nan if number is None else number)
    fewest = 1 if expected else FEWEST_ROWS
    if len(texts) < fewest:
        problems.close_rows()
        problems.raise_errors()
        raise DataError(f"{path}: expected at least {fewest} rows, got {len(texts)}")
    values = np.array(numbers).reshape(len(texts), len(columns))
    empty = np.isnan(values).all(axis=0)
    words = [name for name, lacks in zip(columns, empty, strict=True) if lacks and bad[name]]
    repeated = options.duplicates == "error" and options.resample == "none"
    repeated = repeated and len(set(texts)) < _OFTEN * len(texts)
    if expected is None and id_column is None and not repeated and len(words) < len(columns):
        unread = [name for name in words if name not in read]
        kept = [number for number, name in enumerate(columns) if name not in unread]
        columns, values = tuple(columns[number] for number in kept), values[:, kept]
        notes += unread_words(unread)
        for name in unread:
            del bad[name]
    for name, cells in bad.items():
        for line, message in cells:
            problems.bad_cell(line, name, message)
    if any(bad.values()) and np.isnan(values).all():
        problems.drop_bad = False
        problems.close_rows()
        raise ForeignDataError(str(DataProblemsError(problems.source, problems.errors)))
    if id_column is not None:
        times, firsts, found, wide = widened(texts, lines, ids, values, problems)
        if expected is None and long.valued:
            long.require_targets(str(path), found, columns[0])
        series, table, more = as_expected(found, wide, long, expected)
        return SeriesRows(time, series, times, firsts, table, True, long.inputs), notes + more
    if words and repeated:
        problems.forget_rows()  # the error about the form of the table explains them
        raise DataError(
            f"{path}: expected a column for each series and a row for each time, got several rows "
            f"for a time, told apart by {words[0]!r}; for a table in long form name the columns: "
            f"--id-column {words[0]} --value-column NAME; or --duplicates mean, if "
            "times are repeated"
        )
    columns, values = with_absent(columns, values, expected)
    return SeriesRows(time, columns, texts, lines, values), notes


def unread_words(names: Sequence[str]) -> list[str]:
    """A note on columns of words that nothing reads, if there are any."""
    return [f"columns of words that are not read: {', '.join(names)}"] if names else []


def _columns(
    source: str,
    names: Sequence[str],
    time_column: str | None,
    expected: ExpectedSeries | None,
    long: LongColumns,
) -> tuple[str, tuple[str, ...], str | None, list[str]]:
    """The columns of times, of numbers and, in long form, of ids, and notes on others."""
    time = time_column or long.time_of(names, TIME_COLUMNS)
    found = long.found(source, time, names) if time in names else None
    if found is None:
        time, columns, notes = series_columns(source, names, time_column, expected)
        return time, columns, None, notes
    name, values, others = found
    notes = [f"columns that are not read: {', '.join(others)}"] if others else []
    return time, values, name, notes


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

    Returns:
        Time; the columns of numbers, without those of the expected that are absent; notes.

    Raises:
        DataError: A column is missing; names it.
    """
    wanted = expected.columns if expected else ()
    others = [name for name in names if name not in wanted]
    absent = [name for name in wanted if name not in names]
    missing = [name for name in absent if expected and name not in expected.optional]
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
    return time, tuple(name for name in wanted if name not in absent), notes


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
