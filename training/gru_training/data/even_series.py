"""Rows with times as a series with a row for each step."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gru_training.data.long_form import LongColumns, flattened, wide_columns
from gru_training.data.problems import Problems
from gru_training.data.series import Series
from gru_training.data.time_axis import (
    TimeAxis,
    TimeCells,
    complete,
    gaps,
    in_order,
    parse_times,
    time_text,
)
from gru_training.data.time_options import AS_THEY_ARE, TimeOptions, in_utc, put_together
from gru_training.errors import DataError

FEWEST_ROWS = 3


class ExpectedSeries(NamedTuple):
    """Columns and spacing of a known series, with which newer values must agree."""

    columns: tuple[str, ...]
    """Names of all columns, in the order of the known series."""
    frequency: str
    """Pandas' name of the spacing."""
    optional: tuple[str, ...] = ()
    """Columns that may be absent; their values are then missing."""


class SeriesRows(NamedTuple):
    """The rows of a file or table, unchanged."""

    time: str
    columns: tuple[str, ...]
    texts: Sequence[str]
    lines: Sequence[int]
    values: np.ndarray
    """(rows, C) float64."""
    panel: bool = False
    """Whether the rows stood in long form, a row for each series and time."""
    inputs: tuple[str, ...] = ()
    """Names of each series' inputs beside its values, in long form."""


def as_expected(
    ids: Sequence[str], values: np.ndarray, long: LongColumns, expected: ExpectedSeries | None
) -> tuple[tuple[str, ...], np.ndarray, list[str]]:
    """The columns of a table in long form: those expected, in their order, or else all of them.

    Args:
        ids: The names of K series.
        values: (T, K, N), of `gru_training.data.long_form.widened`.
        long: Columns of the table in long form, which say what the N are.
        expected: Series to continue; of those without a row the columns are missing values.

    Returns:
        Names (C,), values (T, C), and notes.
    """
    names, table = wide_columns(ids, long.inputs, long.valued), flattened(values, long.valued)
    if expected is None:
        return names, table, []
    places = {name: place for place, name in enumerate(names)}
    known = set(expected.columns)
    new = [of for of in ids if known.isdisjoint(wide_columns([of], long.inputs, long.valued))]
    columns = expected.columns
    ordered = np.full((len(table), len(columns)), np.nan)
    for column, name in enumerate(columns):
        if name in places:
            ordered[:, column] = table[:, places[name]]
    notes = [f"series that the model does not know: {', '.join(new[:10])}"] if new else []
    return columns, ordered, notes


def with_absent(
    columns: tuple[str, ...], values: np.ndarray, expected: ExpectedSeries | None
) -> tuple[tuple[str, ...], np.ndarray]:
    """The columns expected of a table in wide form, and their values, NaN where one is absent."""
    if expected is None or columns == expected.columns:
        return columns, values
    whole = np.full((len(values), len(expected.columns)), np.nan)
    whole[:, [expected.columns.index(name) for name in columns]] = values
    return expected.columns, whole


def evenly_spaced(
    rows: SeriesRows,
    name: str,
    time_format: str | None,
    problems: Problems,
    expected: ExpectedSeries | None = None,
    options: TimeOptions = AS_THEY_ARE,
) -> Series:
    """The series of these rows; times without a row get missing values.

    Args:
        rows: Rows of a file or table.
        name: Name of the series.
        time_format: Format as for `strptime`; guessed by default.
        problems: Collector of rows that cannot be used, which are left out.
        expected: The series that they must continue.
        options: Treatment of local, repeated, uneven and too fine times.

    Raises:
        DataError: Too few rows are left, or nearly all times are missing.
    """
    found, source = problems, problems.source
    fewest = 1 if expected else FEWEST_ROWS
    cells = TimeCells(source, rows.time, rows.texts, rows.lines, problems.unit)
    times = parse_times(cells, time_format, found)
    readable = np.flatnonzero(~np.isnat(times))
    values, cells = rows.values[readable], cells.chosen(readable)
    if len(readable) < len(times):  # without them day and month may be told apart
        times = parse_times(cells, time_format)
    if options.timezone is not None:
        times = in_utc(times, options.timezone, cells)
    notes: list[str] = []
    if options.merges:
        order = np.argsort(times, kind="stable")
        times, values, notes = put_together(times[order], values[order], options)
        cells = TimeCells(
            source, rows.time, [time_text(time) for time in times], range(1, len(times) + 1), "step"
        )
    else:
        order = in_order(times, cells, found)
        times, values, cells = times[order], values[order], cells.chosen(order)
    if len(times) < fewest:
        found.close_rows()
        found.raise_errors()
        raise DataError(f"{source}: expected at least {fewest} different times, got {len(times)}")
    frequency = expected.frequency if expected else options.frequency
    axis = complete(times, cells, found, frequency)
    fits = axis.places >= 0
    table = np.full((len(axis.times), len(rows.columns)), np.nan)
    table[axis.places[fits]] = values[fits]
    missing = int(np.isnan(values[fits]).sum())
    found.close_rows()
    holes = gaps(axis)
    if holes:
        notes.append(_gap_note(axis, holes))
    if missing and not rows.panel:
        notes.append(f"{missing:,} cells of the file are missing values")
    notes += found.notes
    found.notes.clear()
    return Series(
        name,
        source,
        rows.columns,
        table,
        axis.times,
        axis.frequency,
        tuple(notes),
        rows.panel,
        inputs=rows.inputs,
    )


def _gap_note(axis: TimeAxis, holes: Sequence[tuple[int, int]]) -> str:
    missing = sum(count for _, count in holes)
    place, longest = max(holes, key=lambda hole: hole[1])
    begin = time_text(axis.times[place])
    if missing == 1:
        return f"{begin} is missing from the file and was added as a missing value"
    text = f"{missing:,} times are missing from the file and were added as missing values"
    if len(holes) == 1:
        return f"{text}, in one gap from {begin}"
    return f"{text}, in {len(holes):,} gaps, the longest of {longest:,} from {begin}"
