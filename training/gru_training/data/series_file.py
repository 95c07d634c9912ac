"""Series from tables in files, and the rules for tables of series of any kind."""

import math
import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, islice
from pathlib import Path
from typing import Any, NamedTuple

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
from gru_training.data.problems import DataProblemsError, Problems, first_names
from gru_training.data.series import Series
from gru_training.data.time_axis import TimeCells, are_times, infer_frequency, parse_times
from gru_training.data.time_forms import month_of
from gru_training.data.time_options import UNCHANGED_TIMES, TimeOptions
from gru_training.errors import DataError, ForeignDataError
from gru_training.tables.file_form import DETECTED_FORMAT, TextFormat
from gru_training.tables.numbers import MISSING, Numbers, OtherFormError
from gru_training.tables.rows import Rows, cell_text, read_rows, require_calculated

TIME_COLUMNS = ("date", "time", "datetime", "timestamp", "ds", "day", "week", "month", "year")
_MAX_DISTINCT_SHARE = 0.7
"""Number of different times, as a share of the rows, below which a file has several rows per
time.
"""


STEPWISE = "value"
"""Column of values of a table with a column for each month, quarter or hour."""
_PARTS = ("year", "month", "day", "hour", "minute")
_YEARS = ("year", "fiscal_year", "fiscal year", "fiscalyear", "fy")
_PARTS_OF_YEARS = {"quarter": "Q", "qtr": "Q", "week": "W"}
"""Names of columns with a part of a year, in small letters, and its sign in a time."""
PROBE_ROWS = 50
"""Number of rows, and of columns' names, in which times are looked for that no usual name tells."""
_FEWEST_TIMES = 4
"""Number of columns called by times from which a table is taken for one with a row per series."""
_YEAR = re.compile(r"\s*(18|19|20|21)\d\d(\.0)?\s*")
_ROW_NUMBERS = ("", "#", "id", "index", "no", "nr", "number", "row", "unnamed: 0")
"""Names, in small letters, of columns that may count the rows."""
_INDEX = "__index_level_0__"
"""Column of an index without a name in Parquet files of pandas."""
_INDICES = ("", "unnamed: 0", _INDEX)
"""Names of columns with the row numbers of an earlier table, some of whose rows may be gone."""


def _time_parts(names: Sequence[str], time_column: str | None) -> tuple[str, ...]:
    """Find the columns that hold the parts of a time: year and month, or date and time.

    Quarters and weeks are parts of a year, too, quarters also of a fiscal one.
    """
    known = {name.strip().lower(): name for name in names}
    if time_column is not None or not known.keys().isdisjoint(("datetime", "timestamp", "ds")):
        return ()
    for second in ("time", "hour"):
        if "date" in known and second in known:
            return known["date"], known[second]
    if "date" in known:
        return ()
    if known.keys() >= {"year", "month"}:
        return tuple(known[part] for part in _PARTS if part in known)
    year = next((known[name] for name in _YEARS if name in known), None)
    part = next((known[name] for name in _PARTS_OF_YEARS if name in known), None)
    return () if year is None or part is None else (year, part)


_OF_YEARS = ("year", "years", "jahr", "jaar", "année", "annee", "año", "ano", "anno")
_OF_DAYS = ("date", "day", "datum", "tag", "fecha", "data")
_OF_WHOLE = ("total", "sum", "annual", "average", "mean", "gesamt", "summe")
_STEP_COLUMNS = (
    (_OF_YEARS, 12, ("", "m", "month")),
    (_OF_YEARS, 4, ("", "q", "qtr", "quarter", "quartal", "trimestre", "t")),
    (_OF_DAYS, 24, ("", "h", "hr", "hour", "he", "stunde", "hora")),
)
"""Names of columns of times, number of columns beside them, and the words in these columns' names
where they are numbered.
"""


def _step_columns(names: Sequence[str], cells: Callable[[str], Sequence[str]]) -> tuple[str, ...]:
    """Find the times and steps of a table with a row for each year or day; () for any other table.

    The steps are months or quarters, or hours. A column of their total or mean is none of them.
    Years may have any name, or none.
    """
    parts = [name for name in names if name.strip().lower() not in _OF_WHOLE]
    for times, count, words in _STEP_COLUMNS:
        steps = {_step_of(name.strip().lower(), words): name for name in parts}
        time = steps.pop(-1, "")
        first = min(steps, default=0)
        ordered = [steps.get(number, "") for number in range(first, first + count)]
        whole = (
            len(parts) == count + 1 and all(ordered) and (first == 1 or (first, count) == (0, 24))
        )
        usual = time.strip().lower() in times
        if whole and (usual or (times is _OF_YEARS and all(map(_YEAR.fullmatch, cells(time))))):
            return time, *ordered
    return ()


def _step_of(name: str, words: Collection[str]) -> int:
    """Return the number in a name of one of the words, or that of a month; -1 for others."""
    numbers = re.findall(r"\d+", name.removesuffix(":00"))
    if len(numbers) == 1 and len(numbers[0]) < 3 and re.sub(r"[\W\d_]", "", name) in words:
        return int(numbers[0])
    return (month_of(name) if "month" in words else None) or -1


def by_step(time: str, cells: Sequence[object]) -> Iterator[tuple[str, object]]:
    """Yield the steps of a row of such a table, as `2005-01`, with their cells."""
    form, first = {12: ("{}-{:02}", 1), 4: ("{}-Q{}", 1), 24: ("{} {:02}:00", 0)}[len(cells)]
    time = re.sub(r"(\.0|[ T]00:00(:00)?)$", "", time.strip())
    for number, cell in enumerate(cells, first):
        yield form.format(time, number), cell


def joined_time(names: Sequence[str], parts: Sequence[str]) -> str:
    """Join the parts of a time to one text.

    Args:
        names: Names of their columns, `SeriesColumns.parts`.
        parts: Cells of these columns.
    """
    cells = [part.strip().removesuffix(".0") for part in parts]
    if not all(cells):
        return ""
    if sign := _PARTS_OF_YEARS.get(names[1].strip().lower()):
        year, part = (re.sub(r"^\D+", "", cell) for cell in cells)
        return f"{year}-{sign}{part}"
    if len(cells) == 2 and not cells[0].isdigit():  # date, and time or hour
        date, time = cells
        return f"{date} {time}:00" if time.isdigit() else f"{date} {time.replace('.', ':')}"
    if not all(cell.isdigit() for cell in cells):  # a month by its name
        return " ".join([*reversed(cells[2:3]), cells[1], cells[0]])
    year, month, *rest = cells
    day, hour, minute = [*rest, *("01", "00", "00")[len(rest) :]]
    text = f"{year}-{month:0>2}-{day:0>2}"
    return f"{text} {hour:0>2}:{minute:0>2}" if len(rest) > 1 else text


def _dated_column(
    source: str, names: Sequence[str], first: Callable[[str], Sequence[str]]
) -> tuple[str | None, list[str]]:
    """Find the column of times by what it holds, where no usual name tells it, with a note.

    None where a name does, and where the first column holds times or no column does.
    """
    if not {name.strip().lower() for name in names}.isdisjoint(TIME_COLUMNS):
        return None, []
    headings = names[1 : PROBE_ROWS + 1]
    if len(headings) >= _FEWEST_TIMES and (
        are_times(headings) or all(map(_YEAR.fullmatch, headings))
    ):
        book = source.endswith((".xlsx", ".xls", ".ods"))
        reading = "excel(FILE, engine='calamine'," if book else "csv(FILE,"
        raise DataError(
            f"{source}: expected a row for each time and a column for each series, got columns "
            f"called {names[1]!r} to {names[-1]!r}; name the column of times with --time-column if "
            "these are series, or turn the table around, such as "
            f"pandas.read_{reading} index_col=0).T.to_csv(OTHER)"
        )
    dated = []
    for name in names:
        if are_times([text for text in first(name) if text.strip().lower() not in MISSING]):
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
    table = read_rows(path, given, found.bad_row, bounded=True)
    found.unit, notes = table.form.unit, list(table.form.notes)
    cells = _read_cells(table, time_column, found, expected, long, notes)
    rows, more = in_wide_form(*cells, found, expected, long, options, read)
    notes += more
    name = path.name.split(".")[0]
    if keep_rows:
        found.close_rows()
        found.raise_errors()
        clock = TimeCells(str(path), rows.time, rows.texts, rows.lines, found.unit)
        times = parse_times(clock, time_format).times
        frequency = infer_frequency(times)
        return Series(name, str(path), rows.columns, rows.values, times, frequency, tuple(notes))
    series = evenly_spaced(rows, name, time_format, found, expected, options)
    if problems is None:
        found.raise_errors()
    return replace(series, notes=(*notes, *series.notes))


class SeriesColumns(NamedTuple):
    """The columns of a table of series by their meaning."""

    steps: tuple[str, ...] = ()
    """Columns of times and steps of a table with a row for each year or day."""
    parts: tuple[str, ...] = ()
    """Columns that hold the parts of a time."""
    time: str = ""
    """Column of times, or the joined names of `parts`."""
    numbers: tuple[str, ...] = ()
    id: str | None = None
    """Column with the name of the series, of a table in long form."""


def find_series_columns(
    source: str,
    names: Sequence[str],
    time_column: str | None,
    expected: ExpectedSeries | None,
    long: LongColumns,
    notes: list[str],
    first: Callable[[str], Sequence[str]],
) -> SeriesColumns:
    """Find the columns of times, of numbers and, in long form, of ids.

    Args:
        source: Name of the table, for messages.
        names: Names of all columns.
        time_column: Column of times; None to find it.
        expected: The series that the table must continue.
        long: The columns of a table in long form.
        notes: List that receives notes on the others.
        first: Function that returns the cells of a column in the first `PROBE_ROWS` rows.

    Raises:
        ForeignDataError: No column holds numbers, or one is missing; names it.
        DataError: Several columns hold times, or the names of the columns are times, or a row;
            names them.
    """
    steps = _step_columns(names, first)
    if not {*long.targets, *(expected.columns if expected else ())}.isdisjoint(steps):
        steps = ()
    if steps:
        unread = [name for name in names if name not in steps]
        notes += [f"columns that are not read: {', '.join(unread)}"] if unread else []
        time_column, names = steps[0], [steps[0], STEPWISE]
        notes.append(
            f"the columns {steps[1]} to {steps[-1]} are the steps of one series (--target names "
            "those that are series)"
        )
    if parts := _time_parts(names, time_column):
        time_column = " ".join(parts)
        notes.append(f"times are made of the columns {', '.join(parts)} (see --time-column)")
        names = [time_column, *(name for name in names if name not in parts)]
    elif time_column is None:
        time_column, more = _dated_column(source, names, first)
        notes += more
    time = time_column or long.time_of(names, TIME_COLUMNS)
    found = long.found(source, time, names) if time in names else None
    if found is None:
        time, numbers, extra = _wide_columns(source, names, time_column, expected)
        name = None
        notes += extra
    else:
        name, numbers, others = found
        notes += [f"columns that are not read: {', '.join(others)}"] if others else []
    if not parts and time_column is None and re.search(r"\d", time) and are_times([time]):
        raise DataError(
            f"{source}: expected the names of the columns, got the time {time!r}; is that a row? "
            "The first line must have the names, such as time,value"
        )
    if not numbers:
        raise ForeignDataError(
            f"{source}: expected columns of numbers beside the times {time!r}, got none"
        )
    return SeriesColumns(steps, parts, time, numbers, name)


class UnreadCell(NamedTuple):
    """A cell that is no number."""

    place: int
    problem: str
    of_other_form: bool = False
    """Whether it holds a value in a form that is not read."""


Unread = dict[str, list[UnreadCell]]
"""Cells that are no numbers, by column."""


def in_wide_form(
    rows: SeriesRows,
    ids: Sequence[str] | None,
    bad: Unread,
    problems: Problems,
    expected: ExpectedSeries | None,
    long: LongColumns,
    options: TimeOptions,
    required: Collection[str],
) -> tuple[SeriesRows, list[str]]:
    """Bring the rows of a table into wide form, with a column for each series.

    Args:
        rows: Rows as they stand, NaN for cells that cannot be read.
        ids: Name of the series of each row, of a table in long form.
        bad: Cells that cannot be read.
        problems: Collector of cells that cannot be used.
        expected: The series that the table must continue.
        long: The columns of a table in long form.
        options: Treatment of times, which may be repeated.
        required: Columns that must be read; another one that holds words alone is left out.

    Returns:
        Rows, and notes on columns.

    Raises:
        DataError: There are too few rows, no numbers, or several rows for a time.
    """
    source, notes = problems.source, list[str]()
    columns, texts, values = rows.columns, rows.texts, rows.values
    fewest = 1 if expected else FEWEST_ROWS
    if len(texts) < fewest:
        problems.close_rows()
        problems.raise_errors()
        raise DataError(f"{source}: expected at least {fewest} rows, got {len(texts)}")
    empty = np.isnan(values).all(axis=0)
    words = [name for name, lacks in zip(columns, empty, strict=True) if lacks and bad[name]]
    repeated = len(set(texts)) < _MAX_DISTINCT_SHARE * len(texts) and not options.combines_rows
    if expected is None and ids is None and not repeated and len(words) < len(columns):
        columns, values, notes = _without_unread(columns, values, words, required)
        bad = {name: wrong for name, wrong in bad.items() if name in columns}
    for name, wrong in bad.items():
        for cell in wrong:
            droppable = not cell.of_other_form and name not in words
            problems.bad_cell(cell.place, name, cell.problem, droppable)
    if any(bad.values()) and np.isnan(values).all():
        problems.drop_bad = False
        problems.close_rows()
        raise ForeignDataError(str(DataProblemsError(source, problems.errors)))
    if ids is not None:
        kept = [row for row, name in enumerate(ids) if name]
        for row in sorted(set(range(len(ids))).difference(kept)):
            message = "expected the name of a series, got an empty cell"
            problems.bad_row("series", rows.lines[row], message)
        times, firsts, named, wide = widened(
            [texts[row] for row in kept],
            [rows.lines[row] for row in kept],
            [ids[row] for row in kept],
            values[kept],
            problems,
            options.combines_rows,
        )
        if expected is None and long.valued:
            long.require_targets(source, named, columns[0])
        series, ordered, more = as_expected(named, wide, long, expected)
        notes += more
        return SeriesRows(
            rows.time, series, times, firsts, ordered, True, long.inputs, rows.zone
        ), notes
    if repeated and (apart := _told_apart(rows, words, bad)):
        problems.forget_rows()  # the error about the form of the table explains them
        way = f"name the columns: --id-column {apart[0]} --value-column NAME"
        if len(apart) > 1:
            way = "join these to one column and name it: --id-column NEW --value-column NAME"
        raise DataError(
            f"{source}: expected a column for each series and a row for each time, got several "
            f"rows for a time, told apart by {' and '.join(map(repr, apart))}; for a table in long "
            f"form {way}; or --duplicates mean, if times are repeated"
        )
    columns, values = with_absent(columns, values, expected)
    return rows._replace(columns=columns, values=values), notes


def _told_apart(rows: SeriesRows, words: Sequence[str], bad: Unread) -> Sequence[str]:
    """Find the fewest columns of words or few whole numbers that tell rows of a time apart.

    The first column of words where none do, as some rows may be repeated.
    """
    cells = dict[str, list[Any]]()
    for name, column in zip(rows.columns, rows.values.T, strict=True):
        if name in words:
            texts = {cell.place: cell.problem for cell in bad[name]}
            cells[name] = [texts.get(line) for line in rows.lines]
        elif (column % 1 == 0).all() and 1 < len(np.unique(column)) <= len(column) / 2:
            cells[name] = column.tolist()
    for names in chain(combinations(cells, 1), combinations(cells, 2)):
        if len(set(zip(rows.texts, *map(cells.get, names), strict=True))) == len(rows.texts):
            return names
    return words[:1]


def _counts_rows(name: str, column: np.ndarray) -> bool:
    if name in _INDICES and not (column % 1).any():
        return name == _INDEX or len(np.unique(column)) == len(column) > 1
    return name in _ROW_NUMBERS and len(column) > 1 and bool((np.diff(column) == 1).all())


def _without_unread(
    columns: Sequence[str], values: np.ndarray, words: Collection[str], required: Collection[str]
) -> tuple[tuple[str, ...], np.ndarray, list[str]]:
    """Leave out the columns of words, and those that count the rows, such as `id`, with notes."""
    counts = [
        name
        for name, column in zip(columns, values.T, strict=True)
        if _counts_rows(name.strip().lower(), column)
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


def _read_cells(
    table: Rows,
    time_column: str | None,
    problems: Problems,
    expected: ExpectedSeries | None,
    long: LongColumns,
    notes: list[str],
) -> tuple[SeriesRows, list[str] | None, Unread]:
    """Read the rows of a file by column: as rows of dicts, they would take ten times the memory."""
    names, rows = table.with_columns()
    rows = iter(rows)
    head = list(islice(rows, PROBE_ROWS))
    rows = chain(head, rows)

    def first(name: str) -> list[str]:
        return [cell_text(cells.get(name)) or "" for _, cells in head]

    found, source = SeriesColumns(), table.form.named(problems.source)
    if names:
        found = find_series_columns(source, names, time_column, expected, long, notes, first)
    if found.steps:
        rows = _each_step(rows, found.steps)
    texts, lines, numbers, ids = list[str](), array("q"), array("d"), list[str]()
    bad: Unread = {name: [] for name in found.numbers}
    read = Numbers(table.form.separator)
    for place, cells in rows:
        parts = [cell_text(cells.get(part)) or "" for part in found.parts or (found.time,)]
        texts.append(joined_time(found.parts, parts) if found.parts else parts[0])
        lines.append(place)
        if found.id is not None:
            ids.append((cell_text(cells.get(found.id)) or "").strip())
        for name in found.numbers:
            try:
                numbers.append(read.read(cells.get(name)))
            except ValueError as error:
                other = isinstance(error, OtherFormError)
                bad[name].append(UnreadCell(place, str(error), other))
                numbers.append(math.nan)
    notes += [note] if (note := read.note()) else []
    values = np.array(numbers).reshape(len(texts), len(found.numbers))
    if texts and found.numbers and not any(bad.values()):
        known = values[np.isfinite(values)]
        require_calculated(source, table.form, found.numbers[0], known)
    rows_read = SeriesRows(found.time, found.numbers, texts, lines, values)
    return rows_read, None if found.id is None else ids, bad


def _each_step(
    rows: Iterable[tuple[int, Mapping[str, Any]]], columns: Sequence[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Convert a table with a row for each year or day to a row for each step."""
    name, *steps = columns
    for place, cells in rows:
        whole = cell_text(cells.get(name)) or ""
        for time, cell in by_step(whole, [cells.get(step) for step in steps]):
            if (cell_text(cell) or "").strip().lower() not in MISSING:
                yield place, {name: time, STEPWISE: cell}


def _wide_columns(
    source: str, names: Sequence[str], time_column: str | None, expected: ExpectedSeries | None
) -> tuple[str, tuple[str, ...], list[str]]:
    """Find the column of times, those of numbers without absent ones, and notes on the others.

    By default the times are in a column named in `TIME_COLUMNS`, or else in the first that is not
    expected to hold numbers.
    """
    wanted = expected.columns if expected else ()
    others = [name for name in names if name not in wanted]
    absent = [name for name in wanted if name not in names]
    missing = [name for name in absent if expected and name not in expected.optional]
    if time_column is not None and time_column not in names:
        missing.append(time_column)
    if missing or not others:
        what = first_names([repr(name) for name in missing]) or "with the times"
        hint = ""
        if len(missing) == len(wanted) > 1:
            hint = "; in a table with a row for each series and time, call their names unique_id"
        raise ForeignDataError(
            f"{source} has no column {what}; its columns are {list(names)}{hint}"
        )
    known = [name for name in others if name.strip().lower() in TIME_COLUMNS]
    time = time_column or (known or others)[0]
    if not expected:
        return time, tuple(name for name in names if name != time), []
    extra = [name for name in others if name != time and name not in expected.constants]
    notes = [f"columns that the model does not know: {', '.join(extra)}"] if extra else []
    return time, tuple(name for name in wanted if name not in absent), notes
