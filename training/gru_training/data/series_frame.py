"""Series from tables in memory: pandas, Polars or PyArrow."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from gru_training.data.even_series import ExpectedSeries, SeriesRows, evenly_spaced
from gru_training.data.frames import as_frame
from gru_training.data.long_form import BY_NAME, ID_COLUMNS, LongColumns
from gru_training.data.problems import Problems
from gru_training.data.series import Series
from gru_training.data.series_file import (
    PROBE_ROWS,
    STEPWISE,
    TIME_COLUMNS,
    Unread,
    UnreadCell,
    by_step,
    find_series_columns,
    in_wide_form,
    joined_time,
)
from gru_training.data.time_options import UNCHANGED_TIMES, TimeOptions
from gru_training.errors import DataError
from gru_training.tables.numbers import Numbers, OtherFormError

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
    table, notes = _pandas(data, problems.source, expected), list[str]()
    table.columns = pd.Index([str(name) for name in table.columns])
    found = find_series_columns(
        problems.source, list(table.columns), time_column, expected, long, notes,
        lambda name: _texts(table[name].head(PROBE_ROWS)),
    )  # fmt: skip
    if found.steps:
        name, *steps = found.steps
        rows_read = zip(_texts(table[name]), table[steps].to_numpy().tolist(), strict=True)
        cells = [
            pair for text, row in rows_read for pair in by_step(text, row) if pd.notna(pair[1])
        ]
        table = pd.DataFrame(cells, columns=[name, STEPWISE])
    texts, zone = _texts(table[(found.parts or (found.time,))[0]]), None
    if found.parts:
        parts = [texts, *(_texts(table[part]) for part in found.parts[1:])]
        texts = [joined_time(found.parts, each) for each in zip(*parts, strict=True)]
    else:
        zone = _zone(table[found.time])
    bad: Unread = {name: [] for name in found.numbers}
    values = np.column_stack([_numbers(table[name], bad[name]) for name in found.numbers])
    ids = None if found.id is None else _texts(_whole(table[found.id]))
    lines, required = range(len(texts)), (*long.targets, *long.inputs)
    read = SeriesRows(found.time, found.numbers, texts, lines, values, zone=zone)
    rows, more = in_wide_form(read, ids, bad, problems, expected, long, options, required)
    series = evenly_spaced(rows, NAME, time_format, problems, expected, options)
    return replace(series, notes=(*notes, *more, *series.notes))


def _pandas(data: Any, source: str, expected: ExpectedSeries | None) -> pd.DataFrame:
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
        known = str(index.name).strip().lower() in TIME_COLUMNS
        timed = expected is not None and not expected.numbered and "Y" not in expected.frequency
        if timed and isinstance(index, pd.RangeIndex):
            raise DataError(
                f"{source}: expected a column or an index of times, as in the training; got "
                f"{', '.join(table.columns.map(str))} and an index of row numbers"
            )
        return table.reset_index(names=index.name if known else "ds")
    return table.copy(deep=False)


def _counts(table: pd.DataFrame) -> bool:
    """Tell whether the first of several columns counts the steps."""
    first = table[table.columns[0]]
    whole = pd.api.types.is_integer_dtype(first) and len(table.columns) > 1
    return bool(whole and first.is_monotonic_increasing and first.diff().nunique() == 1)


def _texts(cells: pd.Series) -> list[str]:
    """Write cells as texts, of which equal ones are the same object."""
    codes, different = pd.factorize(cells)
    texts = np.array([*map(str, different), ""], object)
    return list(texts[codes])


def _whole(ids: pd.Series) -> pd.Series:
    """Return ids that pandas made floats of, as one was missing, as the whole numbers they were."""
    if pd.api.types.is_float_dtype(ids) and (ids.dropna() % 1 == 0).all():
        return ids.astype("Int64")
    return ids


def _zone(times: pd.Series) -> str | None:
    """Return the time zone of a column of times; None without one."""
    if not isinstance(times.dtype, pd.DatetimeTZDtype):
        return None
    return str(times.dt.tz).removeprefix("UTC") or "UTC"  # +05:30 of UTC+05:30


def _numbers(column: pd.Series, bad: list[UnreadCell]) -> np.ndarray:
    """Return the values as float64, with NaN for missing ones and those in `bad`."""
    numbers = pd.to_numeric(column, errors="coerce")
    wrong = (numbers.isna() & column.notna()) | np.isinf(numbers.astype(np.float64))
    values = np.array(numbers.to_numpy(np.float64, na_value=np.nan))
    read = Numbers("")
    for row in np.flatnonzero(wrong).tolist():
        values[row] = np.nan
        try:
            values[row] = read.read(column.iloc[row])
        except ValueError as error:
            bad.append(UnreadCell(row, str(error), isinstance(error, OtherFormError)))
    return values
