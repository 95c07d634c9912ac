"""Series from tables in files."""

import math
import re
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from gru_training.data.even_series import (
    FEWEST_ROWS,
    ExpectedSeries,
    SeriesRows,
    as_expected,
    evenly_spaced,
    with_absent,
)
from gru_training.data.long_form import BY_NAME, LongColumns, widened
from gru_training.data.problems import DataProblemsError, Problems
from gru_training.data.series import Series
from gru_training.data.time_axis import TimeCells, are_times, infer_frequency, parse_times
from gru_training.data.time_options import UNCHANGED_TIMES, TimeOptions
from gru_training.errors import DataError, ForeignDataError
from gru_training.tables.file_form import DETECTED_FORMAT, TextFormat
from gru_training.tables.numbers import MISSING, Numbers
from gru_training.tables.rows import cell_text, read_rows

TIME_COLUMNS = ("date", "time", "datetime", "timestamp", "ds", "day", "week", "month", "year")
_MAX_DISTINCT_SHARE = 0.7
"""Number of different times, as a share of the rows, below which a file has several rows per
time.
"""


MONTHLY = "value"
"""Column of values of a table with a column for each month."""
MONTHS_NOTE = "the columns of months are the steps of one series"
_PARTS = ("year", "month", "day", "hour", "minute")
PROBE_ROWS = 50
"""Number of rows in which a column of times is looked for that no usual name tells."""
_FEWEST_TIMES = 4
"""Number of columns called by times from which a table is taken for one with a row per series."""
_YEAR = re.compile(r"(18|19|20|21)\d\d")
_ROW_NUMBERS = ("", "#", "id", "index", "no", "nr", "number", "row", "unnamed: 0")
"""Names, in small letters, of columns that may count the rows."""


def time_parts(names: Sequence[str], time_column: str | None) -> tuple[str, ...]:
    """Find the columns that hold the parts of a time: year and month, or date and time.

    () without any.

    Args:
        names: Names of all columns.
        time_column: Column of times that was asked for, which leaves no parts.
    """
    known = {name.strip().lower(): name for name in names}
    if time_column is not None or not known.keys().isdisjoint(("datetime", "timestamp", "ds")):
        return ()
    for second in ("time", "hour"):
        if "date" in known and second in known:
            return known["date"], known[second]
    if "date" in known or not known.keys() >= {"year", "month"}:
        return ()
    return tuple(known[part] for part in _PARTS if part in known)


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def month_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Find year and months of a table with a row for each year; () for any other table.

    Args:
        names: Names of all columns.
    """
    known = {name.strip().lower()[:3]: name for name in names}
    if len(names) != len(known) or set(known) != {"yea", *_MONTHS}:
        return ()
    return known["yea"], *(known[month] for month in _MONTHS)


def by_month(year: str, cells: Sequence[object]) -> Iterator[tuple[str, object]]:
    """Yield the months of a row of such a table, as `2005-01`, with their cells."""
    for number, cell in enumerate(cells, 1):
        yield f"{year.strip().removesuffix('.0')}-{number:02}", cell


def joined_time(parts: Sequence[str]) -> str:
    """Join the cells of the columns of `time_parts` to a time."""
    cells = [part.strip().removesuffix(".0") for part in parts]
    if not all(cells):
        return ""
    if len(cells) == 2 and not cells[0].isdigit():  # date, and time or hour
        date, time = cells
        return f"{date} {time}:00" if time.isdigit() else f"{date} {time.replace('.', ':')}"
    if not all(cell.isdigit() for cell in cells):  # a month by its name
        return " ".join([*reversed(cells[2:3]), cells[1], cells[0]])
    year, month, *rest = cells
    day, hour, minute = [*rest, *("01", "00", "00")[len(rest) :]]
    text = f"{year}-{month:0>2}-{day:0>2}"
    return f"{text} {hour:0>2}:{minute:0>2}" if len(rest) > 1 else text


def dated_column(
    source: str, names: Sequence[str], cells: Mapping[str, Sequence[str]]
) -> tuple[str | None, list[str]]:
    """Find the column of times by what it holds, where no usual name tells it, with a note.

    None where a name does, and where the first column holds times or no column does.

    Args:
        source: Name of the table, for messages.
        names: Names of all columns.
        cells: The first cells of each column.

    Raises:
        DataError: Several columns hold times, or the names of the columns are times; names them.
    """
    if not {name.strip().lower() for name in names}.isdisjoint(TIME_COLUMNS):
        return None, []
    headings = names[1:]
    if len(headings) >= _FEWEST_TIMES and (
        are_times(headings) or all(map(_YEAR.fullmatch, headings))
    ):
        raise DataError(
            f"{source}: expected a row for each time and a column for each series, got columns "
            f"called {headings[0]!r} to {headings[-1]!r}; turn the table around, such as "
            "pandas.read_csv(FILE, index_col=0).T.to_csv(OTHER)"
        )
    dated = []
    for name in names:
        texts = [text for text in cells.get(name, ()) if text.strip().lower() not in MISSING]
        if are_times(texts):
            dated.append(name)
    if not dated or dated[0] == names[0]:
        return None, []
    if len(dated) > 1:
        raise DataError(
            f"{source}: expected one column of times, got {', '.join(map(repr, dated))}; "
            f"choose one, such as --time-column {dated[0]}"
        )
    return dated[0], [f"times are those of the column {dated[0]!r} (--time-column names another)"]


def read_series(
    path: Path,
    time_column: str | None = None,
    time_format: str | None = None,
    keep_rows: bool = False,
    problems: Problems | None = None,
    expected: ExpectedSeries | None = None,
    long: LongColumns = BY_NAME,
    options: TimeOptions = UNCHANGED_TIMES,
    given: TextFormat = DETECTED_FORMAT,
    read: Collection[str] = (),
) -> Series:
    """Read a table of numbers over time, as `gru_training.tables.rows.read_rows` reads it.

    It needs ascending times in one column and numbers in all others; a cell may be missing
    (`gru_training.tables.numbers.MISSING`). Missing times are filled with missing values. A file in
    long form has a row for each series and time: a column with the name of the series
    (`gru_training.data.long_form.ID_COLUMNS`), one of times and one of values.

    Args:
        path: The file.
        time_column: Name of the column with the times; by default one named in `TIME_COLUMNS` (in
            any case), or else the one that holds dates, or the first.
        time_format: Format as for `strptime`; guessed by default.
        keep_rows: Whether to keep the rows as they are, whatever their times, as published results
            on public data sets do.
        problems: Collector of rows and cells that cannot be used, which are left out or count as
            missing; by default they raise.
        expected: The series that it must continue; other columns are noted.
        long: The columns of a file in long form.
        options: Treatment of local, repeated, uneven and too fine times.
        given: Format of the text, as far as it is known.
        read: Columns that must be read; another one that holds words alone is noted and left out.

    Raises:
        ForeignDataError: No column holds numbers.
        DataError: The file is not like this; names line and column.
    """
    found = problems or Problems(str(path))
    rows, notes = _read_rows(path, time_column, found, expected, long, given, options, read)
    name = path.name.split(".")[0]
    if keep_rows:
        found.close_rows()
        found.raise_errors()
        cells = TimeCells(str(path), rows.time, rows.texts, rows.lines, found.unit)
        times = parse_times(cells, time_format).times
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
    given: TextFormat,
    options: TimeOptions,
    required: Collection[str],
) -> tuple[SeriesRows, list[str]]:
    table = read_rows(path, given, problems.bad_row, bounded=True)
    problems.unit = table.form.unit
    notes = list(table.form.notes)
    names, rows = table.with_columns()
    if months := month_columns(names):
        names, rows = [months[0], MONTHLY], _each_month(rows, months)
        notes.append(MONTHS_NOTE)
    parts = time_parts(names, time_column)
    if parts:
        time_column = " ".join(parts)
        notes.append(f"times are made of the columns {', '.join(parts)} (see --time-column)")
        names = [time_column, *(name for name in names if name not in parts)]
    elif time_column is None:
        rows = iter(rows)
        first = list(islice(rows, PROBE_ROWS))
        probe = {name: [cell_text(cells.get(name)) or "" for _, cells in first] for name in names}
        rows = chain(first, rows)
        time_column, more = dated_column(str(path), names, probe)
        notes += more
    # Cells are stored by column: as rows of dicts, a table would take ten times the memory.
    texts, lines, numbers = list[str](), array("q"), array("d")
    bad: dict[str, list[tuple[int, str]]] = defaultdict(list)
    ids, read = list[str](), Numbers(table.form.separator)
    time, columns, id_column = "", tuple[str, ...](), None
    if names:
        time, columns, id_column, extra = _columns(str(path), names, time_column, expected, long)
        notes += extra
        if not columns:
            raise ForeignDataError(
                f"{path}: expected columns of numbers beside the times {time!r}, got none"
            )
    for place, cells in rows:
        if parts:
            texts.append(joined_time([cell_text(cells.get(part)) or "" for part in parts]))
        else:
            texts.append(cell_text(cells.get(time)) or "")
        lines.append(place)
        if id_column is not None:
            ids.append((cell_text(cells.get(id_column)) or "").strip())
        for name in columns:
            try:
                numbers.append(read.read(cells.get(name)))
            except ValueError as error:
                bad[name].append((place, str(error)))
                numbers.append(math.nan)
    notes += [note] if (note := read.note()) else []
    fewest = 1 if expected else FEWEST_ROWS
    if len(texts) < fewest:
        problems.close_rows()
        problems.raise_errors()
        raise DataError(f"{path}: expected at least {fewest} rows, got {len(texts)}")
    values = np.array(numbers).reshape(len(texts), len(columns))
    empty = np.isnan(values).all(axis=0)
    words = [name for name, lacks in zip(columns, empty, strict=True) if lacks and bad[name]]
    repeated = options.duplicates == "error" and options.resample == "none"
    repeated = repeated and len(set(texts)) < _MAX_DISTINCT_SHARE * len(texts)
    if expected is None and id_column is None and not repeated and len(words) < len(columns):
        columns, values, more = without_unread(columns, values, words, required)
        notes += more
        bad = {name: wrong for name, wrong in bad.items() if name in columns}
    for name, wrong in bad.items():
        for place, message in wrong:
            problems.bad_cell(place, name, message)
    if any(bad.values()) and np.isnan(values).all():
        problems.drop_bad = False
        problems.close_rows()
        raise ForeignDataError(str(DataProblemsError(problems.source, problems.errors)))
    if id_column is not None:
        times, firsts, found, wide = widened(texts, lines, ids, values, problems)
        if expected is None and long.valued:
            long.require_targets(str(path), found, columns[0])
        series, ordered, more = as_expected(found, wide, long, expected)
        return SeriesRows(time, series, times, firsts, ordered, True, long.inputs), notes + more
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


def _each_month(
    rows: Iterable[tuple[int, Mapping[str, Any]]], columns: Sequence[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Convert a table with a row for each year to a row for each month."""
    year, *months = columns
    for place, cells in rows:
        of_year = cell_text(cells.get(year)) or ""
        for time, cell in by_month(of_year, [cells.get(month) for month in months]):
            if (cell_text(cell) or "").strip().lower() not in MISSING:
                yield place, {year: time, MONTHLY: cell}


def without_unread(
    columns: Sequence[str], values: np.ndarray, words: Collection[str], required: Collection[str]
) -> tuple[tuple[str, ...], np.ndarray, list[str]]:
    """Leave out the columns of words, and those that count the rows, such as `id`, with notes.

    Args:
        columns: Names of the N columns.
        values: (rows, N) numbers.
        words: Columns that hold words alone, fewer than N.
        required: Columns that are kept, whatever they hold.
    """
    counts = [
        name
        for name, column in zip(columns, values.T, strict=True)
        if name.strip().lower() in _ROW_NUMBERS and len(column) > 1 and (np.diff(column) == 1).all()
    ]
    if {*words, *counts} >= {*columns}:
        counts = []
    notes, left = [], set[str]()
    for kind, names in (("words that are", words), ("row numbers that are", counts)):
        if unread := [name for name in names if name not in required]:
            shown = ", ".join(name or "one without a name" for name in unread)
            notes.append(f"columns of {kind} not read: {shown}")
            left.update(unread)
    kept = [number for number, name in enumerate(columns) if name not in left]
    return tuple(columns[number] for number in kept), values[:, kept], notes


def _columns(
    source: str,
    names: Sequence[str],
    time_column: str | None,
    expected: ExpectedSeries | None,
    long: LongColumns,
) -> tuple[str, tuple[str, ...], str | None, list[str]]:
    """Find the columns of times, of numbers and, in long form, of ids, with notes on the others."""
    time = time_column or long.time_of(names, TIME_COLUMNS)
    found = long.found(source, time, names) if time in names else None
    if found is None:
        time, columns, notes = series_columns(source, names, time_column, expected)
        return time, columns, None, notes
    name, values, others = found
    notes = [f"columns that are not read: {', '.join(others)}"] if others else []
    return time, values, name, notes


def series_columns(
    source: str, names: Sequence[str], time_column: str | None, expected: ExpectedSeries | None
) -> tuple[str, tuple[str, ...], list[str]]:
    """Find the column of times and those of numbers, with notes on the others.

    Args:
        source: Name of the table, for messages.
        names: Names of all columns.
        time_column: The one with the times; by default one named in `TIME_COLUMNS`, or else the
            first that is not expected to hold numbers.
        expected: The series that they must continue.

    Returns:
        Column of times; columns of numbers, without expected ones that are absent; notes.

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
    extra = [name for name in others if name != time and name not in expected.constants]
    notes = [f"columns that the model does not know: {', '.join(extra)}"] if extra else []
    return time, tuple(name for name in wanted if name not in absent), notes
