"""Series from tables in memory: pandas, Polars or PyArrow."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from gru_training.data.even_series import (
    ExpectedSeries,
    SeriesRows,
    as_expected,
    evenly_spaced,
    with_absent,
)
from gru_training.data.frames import as_frame
from gru_training.data.long_form import BY_NAME, ID_COLUMNS, LongColumns
from gru_training.data.problems import Problems
from gru_training.data.series import Series
from gru_training.data.series_file import (
    MONTHLY,
    MONTHS_NOTE,
    PROBE_ROWS,
    TIME_COLUMNS,
    by_month,
    dated_column,
    joined_time,
    month_columns,
    series_columns,
    time_parts,
    without_unread,
)
from gru_training.data.time_options import UNCHANGED_TIMES, TimeOptions
from gru_training.errors import DataError

NAME = "table"
"""Name of a series without a file."""


def series_of_frame(
    data: Any,
    time_column: str | None,
    time_format: str | None,
    problems: Problems,
    expected: ExpectedSeries | None = None,
    long: LongColumns = BY_NAME,
    options: TimeOptions = UNCHANGED_TIMES,
) -> Series:
    """Read the series in a table, like `gru_training.data.series_file.read_series` for a file.

    Args:
        data: A column or index of times, and columns of numbers; or in long form, with a
            row for each series and time (`gru_training.data.long_form`).
        time_column: The column of times; by default found as in a file.
        time_format: Format of times that are texts; guessed by default.
        problems: Collector of rows that cannot be used.
        expected: The series that it must continue.
        long: The columns of a table in long form.
        options: Treatment of local, repeated, uneven and too fine times.

    Raises:
        DataError: The table is not like this; names the column.
    """
    table, said = _pandas(data), list[str]()
    if months := month_columns([str(name) for name in table.columns]):
        year, *of_year = months
        years = zip(_texts(table[year]), table[of_year].to_numpy().tolist(), strict=True)
        cells = [pair for text, row in years for pair in by_month(text, row) if pd.notna(pair[1])]
        table = pd.DataFrame(cells, columns=[year, MONTHLY])
        said.append(MONTHS_NOTE)
    if parts := time_parts([str(name) for name in table.columns], time_column):
        time_column = " ".join(parts)
        said.append(f"times are made of the columns {', '.join(parts)} (see --time-column)")
        texts = [_texts(table[part]) for part in parts]
        table = table.drop(columns=list(parts))
        table[time_column] = [joined_time(each) for each in zip(*texts, strict=True)]
    elif time_column is None:
        first = {str(name): _texts(column) for name, column in table.head(PROBE_ROWS).items()}
        time_column, more = dated_column(problems.source, list(first), first)
        said += more
    rows, notes = _long_rows(table, problems, time_column, expected, long) or _wide_rows(
        table, problems, time_column, expected, long
    )
    series = evenly_spaced(rows, NAME, time_format, problems, expected, options)
    return replace(series, notes=(*said, *notes, *series.notes))


def _pandas(data: Any) -> pd.DataFrame:
    """Convert the table to pandas, with the times of its index, or row numbers, as a column."""
    if isinstance(data, pd.Series):
        data = data.to_frame(data.name or "y")
    frame = as_frame(data)
    if frame is None:
        raise DataError(
            "data: expected a table with a column of times and columns of numbers, got "
            f"{type(data).__name__}; pandas.Series(values) is one without times"
        )
    table = frame.to_pandas()
    for name in table.columns[[isinstance(kind, pd.PeriodDtype) for kind in table.dtypes]]:
        table = table.assign(**{name: table[name].dt.to_timestamp()})
    index = table.index
    if isinstance(index, pd.MultiIndex) or str(index.name).strip().lower() in ID_COLUMNS:
        table = table.reset_index()
        index = table.index
    if isinstance(index, pd.PeriodIndex):
        table = table.set_index(index.to_timestamp().rename(index.name))
    if isinstance(index, pd.DatetimeIndex | pd.PeriodIndex):
        return table.reset_index(names=index.name or "ds")
    names = {str(name).strip().lower() for name in table.columns}
    numbers = all(pd.api.types.is_numeric_dtype(kind) for kind in table.dtypes)
    if numbers and names.isdisjoint((*TIME_COLUMNS, *ID_COLUMNS)) and not _counts(table):
        return table.reset_index(names="ds")
    return table.copy(deep=False)


def _counts(table: pd.DataFrame) -> bool:
    """Tell whether the first of several columns counts the steps."""
    first = table[table.columns[0]]
    whole = pd.api.types.is_integer_dtype(first) and len(table.columns) > 1
    return bool(whole and first.is_monotonic_increasing and first.diff().nunique() == 1)


def _wide_rows(
    table: pd.DataFrame,
    problems: Problems,
    time_column: str | None,
    expected: ExpectedSeries | None,
    long: LongColumns,
) -> tuple[SeriesRows, list[str]]:
    names = [str(name) for name in table.columns]
    time, columns, notes = series_columns(problems.source, names, time_column, expected)
    table.columns = pd.Index(names)
    if not columns:
        raise DataError(
            f"{problems.source}: expected columns of numbers beside the times {time!r}, got none"
        )
    required = (*long.targets, *long.inputs)
    words = [name for name in columns if name not in required and _only_words(table[name])]
    if expected is not None or len(words) == len(columns):
        words = []
    numbers = [name for name in columns if name not in words]
    read = {name: _numbers(table[name], name, problems) for name in numbers}
    unread = np.full(len(table), np.nan)
    values = np.column_stack([read.get(name, unread) for name in columns])
    if expected is None:
        columns, values, more = without_unread(columns, values, words, required)
        notes += more
    columns, values = with_absent(columns, values, expected)
    texts = _texts(table[time])
    zone = _zone(table[time])
    return SeriesRows(time, columns, texts, range(len(texts)), values, zone=zone), notes


def _long_rows(
    table: pd.DataFrame,
    problems: Problems,
    time_column: str | None,
    expected: ExpectedSeries | None,
    long: LongColumns,
) -> tuple[SeriesRows, list[str]] | None:
    """Read the rows of a table in long form, with a column for each series; None for any other."""
    names = [str(name) for name in table.columns]
    time = time_column or long.time_of(names, TIME_COLUMNS)
    found = long.found(problems.source, time, names)
    if found is None or time not in names:
        return None
    table.columns = pd.Index(names)
    name, read, _ = found
    repeated = table[table.duplicated([name, time])]
    if len(repeated):
        first = repeated.iloc[0]
        raise DataError(
            f"{problems.source}: expected each time of a series once, got "
            f"{first[time]} of {first[name]!r} again"
        )
    values = np.column_stack([_numbers(table[each], each, problems) for each in read])
    rows, at = pd.factorize(table[time], sort=True)
    columns, ids = pd.factorize(table[name], sort=True)
    wide = np.full((len(at), len(ids), len(read)), np.nan)
    timed = (rows >= 0) & (columns >= 0)
    wide[rows[timed], columns[timed]] = values[timed]
    if expected is None and long.valued:
        long.require_targets(problems.source, [str(each) for each in ids], read[0])
    called, flat, notes = as_expected([str(each) for each in ids], wide, long, expected)
    texts = _texts(pd.Series(at))
    lines, zone = range(len(texts)), _zone(table[time])
    return SeriesRows(time, called, texts, lines, flat, True, long.inputs, zone), notes


def _texts(times: pd.Series) -> list[str]:
    return ["" if pd.isna(value) else str(value) for value in times]


def _zone(times: pd.Series) -> str | None:
    """Return the time zone of a column of times; None without one."""
    if not isinstance(times.dtype, pd.DatetimeTZDtype):
        return None
    return str(times.dt.tz).removeprefix("UTC") or "UTC"  # +05:30 of UTC+05:30


def _only_words(column: pd.Series) -> bool:
    numbers = pd.to_numeric(column, errors="coerce")
    return bool(numbers.isna().all() and column.notna().any())


def _numbers(column: pd.Series, name: str, problems: Problems) -> np.ndarray:
    """Return the values as float64, with NaN for missing ones."""
    numbers = pd.to_numeric(column, errors="coerce")
    wrong = (numbers.isna() & column.notna()) | np.isinf(numbers.astype(np.float64))
    for row in np.flatnonzero(wrong):
        cell = column.iloc[row]
        problems.bad_cell(int(row), name, f"expected a finite number, got {cell!r:.40}")
    values = np.array(numbers.to_numpy(np.float64, na_value=np.nan))
    values[np.asarray(wrong)] = np.nan
    return values
