"""A series from a table in memory: pandas, Polars or PyArrow."""

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
from gru_training.data.long_form import BY_NAME, LongColumns
from gru_training.data.problems import Problems
from gru_training.data.series import Series
from gru_training.data.series_file import TIME_COLUMNS, series_columns, unread_words
from gru_training.data.time_options import AS_THEY_ARE, TimeOptions
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
    options: TimeOptions = AS_THEY_ARE,
) -> Series:
    """The series in a table, as `gru_training.data.series_file.read_series` reads it from a file.

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
    table = _pandas(data)
    rows, notes = _long_rows(table, problems, time_column, expected, long) or _wide_rows(
        table, problems, time_column, expected, long
    )
    series = evenly_spaced(rows, NAME, time_format, problems, expected, options)
    return replace(series, notes=(*notes, *series.notes))


def _pandas(data: Any) -> pd.DataFrame:
    """The table, with the times of its index as a column."""
    if isinstance(data, pd.Series) and isinstance(data.index, pd.DatetimeIndex):
        data = data.to_frame(data.name or "y")
    frame = as_frame(data)
    if frame is None:
        raise DataError(
            "data: expected a table with a column of times and columns of numbers, got "
            f"{type(data).__name__}"
        )
    table = frame.to_pandas()
    if isinstance(table.index, pd.DatetimeIndex):
        return table.reset_index(names=table.index.name or "ds")
    return table.copy(deep=False)


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
    if expected is None:
        words = [name for name in columns if _only_words(table[name])]
        unread = [name for name in words if name not in (*long.targets, *long.inputs)]
        if len(unread) < len(columns):
            columns = tuple(name for name in columns if name not in unread)
            notes += unread_words(unread)
    values = np.column_stack([_numbers(table[name], name, problems) for name in columns])
    columns, values = with_absent(columns, values, expected)
    texts = _texts(table[time])
    return SeriesRows(time, columns, texts, range(len(texts)), values), notes


def _long_rows(
    table: pd.DataFrame,
    problems: Problems,
    time_column: str | None,
    expected: ExpectedSeries | None,
    long: LongColumns,
) -> tuple[SeriesRows, list[str]] | None:
    """The rows of a table in long form, with a column for each series; None of any other."""
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
    return SeriesRows(time, called, texts, range(len(texts)), flat, True, long.inputs), notes


def _texts(times: pd.Series) -> list[str]:
    return ["" if pd.isna(value) else str(value) for value in times]


def _only_words(column: pd.Series) -> bool:
    numbers = pd.to_numeric(column, errors="coerce")
    return bool(numbers.isna().all() and column.notna().any())


def _numbers(column: pd.Series, name: str, problems: Problems) -> np.ndarray:
    """The values as float64, with NaN for missing ones."""
    numbers = pd.to_numeric(column, errors="coerce")
    wrong = (numbers.isna() & column.notna()) | np.isinf(numbers.astype(np.float64))
    for row in np.flatnonzero(wrong):
        cell = column.iloc[row]
        problems.bad_cell(int(row), name, f"expected a finite number, got {cell!r:.40}")
    values = np.array(numbers.to_numpy(np.float64, na_value=np.nan))
    values[np.asarray(wrong)] = np.nan
    return values
