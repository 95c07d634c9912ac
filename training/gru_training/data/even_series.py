"""Conversion of rows with times to a series with one row per step."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gru_training.data.long_form import LongColumns, flattened, wide_columns
from gru_training.data.problems import Problems, counted
from gru_training.data.series import Series
from gru_training.data.time_axis import (
    TimeAxis,
    TimeCells,
    complete,
    gaps,
    in_order,
    infer_frequency,
    month_starts,
    parse_times,
    time_text,
)
from gru_training.data.time_forms import STEPS, has_offset, has_zone_name, without_offset
from gru_training.data.time_options import (
    UNCHANGED_TIMES,
    TimeOptions,
    put_together,
    zoned_times,
)
from gru_training.errors import DataError

FEWEST_ROWS = 3
_FEWEST_SPACED = 4
"""Number of rows from which on their spacing must be that of the series that they continue."""


class ExpectedSeries(NamedTuple):
    """The columns and spacing of a known series, with which newer values must agree."""

    columns: tuple[str, ...]
    """Names of all columns, in the order of the known series."""
    frequency: str
    """Pandas' name of the spacing."""
    optional: tuple[str, ...] = ()
    """Columns that may be absent; their values are then missing."""
    zone: str | None = None
    """Time zone of the times, or None."""
    local: bool = False
    """Whether the times are clock times in the zone rather than UTC."""
    numbered: bool = False
    """Whether the times are numbers of steps."""
    constants: tuple[str, ...] = ()
    """Columns that never vary, which are not read."""


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
    zone: str | None = None
    """Time zone of the table's times, or None."""


def as_expected(
    ids: Sequence[str], values: np.ndarray, long: LongColumns, expected: ExpectedSeries | None
) -> tuple[tuple[str, ...], np.ndarray, list[str]]:
    """Return the columns of a table in long form: the expected ones in their order, or all.

    Args:
        ids: The names of K series.
        values: (T, K, N), of `gru_training.data.long_form.widened`.
        long: Columns of the table in long form, which say what the N are.
        expected: Series to continue; of those without a row the columns are missing values, and
            series that it does not have come last.

    Returns:
        Names (C,), values (T, C), and notes.
    """
    names, table = wide_columns(ids, long.inputs, long.valued), flattened(values, long.valued)
    if expected is None:
        return names, table, []
    places = {name: place for place, name in enumerate(names)}
    known = {*expected.columns, *wide_columns(expected.constants, long.inputs, long.valued)}
    new = [of for of in ids if known.isdisjoint(wide_columns([of], long.inputs, long.valued))]
    columns = expected.columns
    ordered = np.full((len(table), len(columns)), np.nan)
    for column, name in enumerate(columns):
        if name in places:
            ordered[:, column] = table[:, places[name]]
    if not long.inputs and long.valued:
        columns = (*columns, *new)
        ordered = np.column_stack([ordered, *(table[:, places[of]] for of in new)])
        return columns, ordered, []
    notes = [f"series that the model does not know: {', '.join(new[:10])}"] if new else []
    return columns, ordered, notes


def with_absent(
    columns: tuple[str, ...], values: np.ndarray, expected: ExpectedSeries | None
) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the expected columns of a table in wide form with values, NaN for absent ones."""
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
    options: TimeOptions = UNCHANGED_TIMES,
) -> Series:
    """Convert the rows to a series; times without a row get missing values.

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
    if expected is not None and expected.numbered:
        time_format, cells = STEPS, replace(cells, way=", as in the training")
    if time_format is None and any(map(has_zone_name, rows.texts[:1])):
        if options.timezone is None:
            raise cells.error(
                0, "expected times whose zone is not abbreviated (see --timezone, as Europe/Berlin)"
            )
        cells = replace(cells, texts=[without_offset(text) for text in rows.texts])
    parsed = parse_times(cells, time_format, found, not rows.panel)
    readable = np.flatnonzero(~np.isnat(parsed.times))
    values, cells = rows.values[readable], cells.chosen(readable)
    if 0 < len(readable) < len(rows.texts):  # without them day and month may be told apart
        parsed = parse_times(cells, time_format, ordered=not rows.panel)
    if len(readable) < fewest:
        found.close_rows(some_left=False)
        found.raise_errors()
        raise DataError(f"{source}: expected at least {fewest} times, got {len(readable)}")
    zone = options.timezone or rows.zone
    if expected is not None:
        _require_same_zone(cells, expected, zone is not None or parsed.zoned)
        zone = zone and expected.zone

    def clocks() -> np.ndarray:
        texts = [without_offset(text) for text in cells.texts]
        form = time_format and re.sub(r"\s*%[zZ]", "", time_format)
        return parse_times(replace(cells, texts=texts), form).times

    zoned = zoned_times(parsed, cells, zone, options, clocks, expected)
    times = zoned.times
    notes = [parsed.note] if parsed.note else []
    if rows.panel:  # whose rows have no order among series
        order = np.argsort(times, kind="stable")
        times, values, cells = times[order], values[order], cells.chosen(order)
    if options.merges:
        order = np.argsort(times, kind="stable")
        times, values, merged = put_together(
            times[order], values[order], options, cells.chosen(order), found
        )
        notes += merged
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
    if (len(times) > 1 and frequency is None) or (expected and str(frequency)[1:2] == "S"):
        times, moved = month_starts(times)
        notes += [moved] if moved else []
    axis = complete(times, cells, found, frequency)
    fits = axis.places >= 0
    table = np.full((len(axis.times), len(rows.columns)), np.nan)
    table[axis.places[fits]] = values[fits]
    unread = () if expected is None else expected.optional
    read = [name not in unread for name in rows.columns]
    missing = int(np.isnan(values[fits][:, read]).sum())
    most_fit = 2 * fits.sum() > len(rows.texts) or options.merges
    found.close_rows(some_left=most_fit)
    if not most_fit:
        found.raise_errors()
    holes = gaps(axis)
    if expected is not None and len(times) >= _FEWEST_SPACED:
        steps = {length for _, length in holes}
        if len(holes) == fits.sum() - 1 and len(steps) == 1:
            wanted, got = axis.frequency, infer_frequency(times)
            if expected.numbered:
                wanted, got = "step", got.replace("ns", " steps")
            raise DataError(
                f"{source}: expected rows every {wanted}, as in the series that they continue, "
                f"got rows every {got}; give them that spacing, or train on such rows"
            )
    if holes:
        notes.append(_gap_note(axis, holes))
    if missing and not rows.panel:
        are = "is a missing value" if missing == 1 else "are missing values"
        notes.append(f"{counted(missing, 'cell')} of the file {are}")
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
        zone=zoned.zone,
        local=zoned.local,
    )


def _require_same_zone(cells: TimeCells, expected: ExpectedSeries, zoned: bool) -> None:
    """Raise DataError if only one of the newer and the known times has a zone."""
    if zoned and expected.zone is None and any(map(has_offset, cells.texts)) and not expected.local:
        raise cells.error(
            0, "expected times without a zone or an offset from UTC, as those of the training"
        )
    if expected.zone is not None and not zoned:
        raise cells.error(
            0,
            f"expected times with their zone or offset from UTC, as those of the training "
            f"({expected.zone})",
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
