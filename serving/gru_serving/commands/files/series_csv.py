"""Series from files: a column of times and columns of numbers.

Modules that read tables are imported only when a file is read.
"""

from __future__ import annotations

import argparse
import io
import itertools
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gru_serving.client import Client
from gru_serving.client.series_columns import SeriesColumns, series_columns
from gru_serving.errors import InvalidArgument

if TYPE_CHECKING:
    from gru_training.tables.file_form import TextFormat
    from gru_training.tables.rows import Rows

_DAY, _SATURDAY = timedelta(days=1), 5


class Tick(NamedTuple):
    """One row.

    Attributes:
        label: Content of the first column, for people: the time.
        values: (C,) float32, NaN where a cell is empty or says so.
    """

    label: str
    values: npt.NDArray[np.float32]


class Ticks:
    """The rows of a series, as they arrive.

    Args:
        name: A file, or `-` for standard input.
        columns: Names of the columns to read, in the order of the model's; by default all but the
            first.
        optional: Names of the columns that may be missing; their values are NaN then.
        given: Format of the text, as far as it is known.

    Raises:
        InvalidArgument: The file cannot be read, or a column is missing; names it. Iterating
            raises it where a cell is no number, and names line and column.
    """

    def __init__(
        self,
        name: str,
        columns: Sequence[str] = (),
        optional: Sequence[str] = (),
        given: TextFormat | None = None,
    ) -> None:
        from gru_training.errors import TrainingError
        from gru_training.tables.numbers import Numbers

        self.name = "standard input" if name == "-" else name
        self._columns, self._optional = columns, optional
        try:
            self._rows = _opened(name, given)
        except TrainingError as error:
            raise InvalidArgument(str(error)) from error
        self._numbers = Numbers(self._rows.form.separator)

    def notes(self) -> list[str]:
        """Describe what was assumed about the file and the numbers read so far."""
        commas = self._numbers.note()
        return [*self._rows.form.notes, *([commas] if commas else [])]

    def __iter__(self) -> Iterator[Tick]:
        from gru_training.errors import TrainingError
        from gru_training.tables.rows import cell_text

        try:
            names, rows = _with_columns(self._rows, self.name == "standard input")
            header = {name.strip(): name for name in names}
            wanted = list(self._columns) or list(header)[1:]
            self._require(wanted, header)
            label = next(iter(names))
            for place, cells in rows:
                where = f"{self.name}, {self._rows.form.unit} {place}"
                values = [self._number(cells.get(header.get(name)), where, name) for name in wanted]
                yield Tick(cell_text(cells.get(label)) or "", np.array(values, np.float32))
        except TrainingError as error:
            raise InvalidArgument(str(error)) from error

    def _require(self, wanted: Sequence[str], header: Iterable[str]) -> None:
        missing = [name for name in wanted if name not in header and name not in self._optional]
        if missing or not wanted:
            named = "column" if len(missing) == 1 else "columns"
            what = (
                f"the {named} {', '.join(missing)}" if missing else "a time and columns of numbers"
            )
            long = len(missing) == len(wanted) > 1
            way = "; make a column of each series, or use gru-train forecast RUN --data" * long
            raise InvalidArgument(
                f"{self.name}: expected a header with {what}; got {','.join(header)!r}{way}"
            )

    def _number(self, cell: Any, where: str, column: str) -> float:
        try:
            value = self._numbers.read(cell)
        except ValueError as error:
            raise InvalidArgument(f"{where}, column {column}: {error}") from None
        with np.errstate(over="ignore"):
            if np.isinf(np.float32(value)):
                raise InvalidArgument(
                    f"{where}, column {column}: expected a number in the range of float32; got "
                    f"{cell!r:.60}"
                )
        return value


def _opened(name: str, given: TextFormat | None) -> Rows:
    from gru_training.tables.file_form import DETECTED_FORMAT
    from gru_training.tables.rows import read_rows, read_stream

    given = given or DETECTED_FORMAT
    if name != "-":
        return read_rows(Path(name), given)
    stream = sys.stdin.buffer
    if not isinstance(stream, io.BufferedReader):
        stream = io.BufferedReader(stream)
    return read_stream("standard input", stream, given)


def _with_columns(table: Rows, arriving: bool) -> tuple[Sequence[str], Iterable[Any]]:
    """Return the columns and the rows.

    For JSON that is still arriving, the columns of its first row.
    """
    if not arriving or table.columns is not None:
        return table.with_columns()
    first = next(table.rows, (0, {}))
    return list(first[1]), itertools.chain([first] if first[1] else [], table.rows)


def known_ticks(
    ticks: Sequence[Tick], forecast: Sequence[int]
) -> tuple[Sequence[Tick], str | None]:
    """Return the rows up to the last one with a value of a column that is forecast.

    The rows after it are those to forecast; a model would treat them as gaps.

    Args:
        ticks: The rows.
        forecast: Numbers of the columns that are forecast.

    Returns:
        The rows, and what to say of those left out; None where there are none.
    """
    seen = [
        place for place, tick in enumerate(ticks) if not np.isnan(tick.values[list(forecast)]).all()
    ]
    if not seen or seen[-1] + 1 == len(ticks):
        return ticks, None
    kept = seen[-1] + 1
    return ticks[:kept], (
        f"the last {len(ticks) - kept} rows have no value of the columns that are forecast and "
        f"were left out; the forecast begins after {ticks[kept - 1].label}"
    )


def stacked(ticks: Iterable[Tick], name: str) -> npt.NDArray[np.float32]:
    """Stack a whole series as the input `history` of a forecaster, (1, T, C).

    Args:
        ticks: The rows.
        name: Name of the file, for messages.

    Raises:
        InvalidArgument: There is no tick.
    """
    values = [tick.values for tick in ticks]
    if not values:
        raise InvalidArgument(f"{name}: expected rows of numbers below the header; got none")
    return np.stack(values)[np.newaxis]


def uneven_times(ticks: Sequence[Tick], name: str) -> str | None:
    """Return a note on a series whose rows are not evenly spaced, as where some were left out.

    Training fills times that were left out with missing values; a server gets rows without their
    times.

    Args:
        ticks: The rows, with times in any form that training reads.
        name: Name of the file, for messages.

    Returns:
        None if the times are even, apart from the lengths of months, or if the labels are not
        times.

    Raises:
        InvalidArgument: Most rows are older than the one before; a model takes the last row for
            the newest.
    """
    from gru_training.data.time_axis import TimeCells, parse_times
    from gru_training.errors import TrainingError

    labels = [tick.label for tick in ticks]
    if len(labels) < 2:
        return None
    try:
        read = parse_times(TimeCells(name, "", labels, range(len(labels)))).times
    except (ImportError, TrainingError):  # without pandas, or no times
        return None
    if 2 * (read[1:] < read[:-1]).sum() > len(read[1:]):
        raise InvalidArgument(
            f"{name}: expected rows in the order of time, the newest last; got {labels[0]} in the "
            f"first row and {labels[-1]} in the last; sort the rows"
        )
    times: list[datetime] = read.astype("M8[us]").tolist()
    steps = [after - before for before, after in itertools.pairwise(times)]
    usual = Counter(steps).most_common(1)[0][0]
    if not usual:  # numbers of steps
        return None
    working_days = usual == _DAY and all(time.weekday() < _SATURDAY for time in times)
    uneven = [
        place
        for place, step in enumerate(steps)
        if not (0.5 * usual < step < 1.5 * usual)
        and not (working_days and step == 3 * _DAY and times[place].weekday() == _SATURDAY - 1)
    ]
    if not uneven:
        return None
    first, second = ticks[uneven[0]].label, ticks[uneven[0] + 1].label
    others = f"; uneven steps in all: {len(uneven)}" if len(uneven) > 1 else ""
    return (
        f"the rows are not evenly spaced: most are {usual} apart, {first} and {second} are "
        f"{steps[uneven[0]]}{others}. A model treats each row as one step: add the missing rows "
        "with empty cells, as training does"
    )


def add_csv_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--csv` and its options to a command that sends a series."""
    parser.add_argument(
        "--csv",
        metavar="FILE",
        help="read a series from FILE: CSV, TSV, JSON lines or list, Parquet, Arrow, Excel; - for "
        "stdin",
    )
    parser.add_argument(
        "--columns",
        metavar="NAME,NAME",
        type=lambda names: [name.strip() for name in names.split(",")],
        default=[],
        help="columns of --csv to send (default: those of the model by their names; of a model "
        "that does not know them, all but the first)",
    )
    parser.add_argument(
        "--separator",
        metavar="CHARACTER",
        help="character between the columns of a CSV, such as ';', or tab (default: detected)",
    )
    parser.add_argument(
        "--encoding",
        metavar="NAME",
        help="encoding of a text file, such as cp1252 or utf-16 (default: detected; UTF-8, else "
        "Windows-1252)",
    )


def text_format(arguments: argparse.Namespace) -> TextFormat:
    """Return the format of the text, as far as `--separator` and `--encoding` give it.

    Raises:
        InvalidArgument: The separator or the encoding cannot be used.
    """
    from gru_training.errors import TrainingError
    from gru_training.tables.file_form import TextFormat

    try:
        return TextFormat(arguments.separator, arguments.encoding)
    except TrainingError as error:
        raise InvalidArgument(str(error)) from error


def model_columns(
    client: Client, arguments: argparse.Namespace, target: Any
) -> SeriesColumns | None:
    """Return the columns of the model; None if it does not name them, or `--columns` does."""
    return None if arguments.columns else series_columns(client, arguments.model, **target)


class SeriesRows(NamedTuple):
    """The rows of a CSV.

    Attributes:
        ticks: Rows to forecast from.
        ahead: Rows after them that have no value to forecast, but known inputs.
        columns: Columns of the model; None where it does not name them.
        notes: Notes on the rows for a reader.
    """

    ticks: Sequence[Tick]
    ahead: Sequence[Tick]
    columns: SeriesColumns | None
    notes: list[str]

    def future(self, name: str) -> npt.NDArray[np.float32]:
        """Return the input `future` of the model, (1, H, F); NaN after the last known row.

        Args:
            name: Name of the file, for messages.

        Raises:
            InvalidArgument: No row has known inputs.
        """
        columns = self.columns
        if columns is None or not columns.future:
            raise InvalidArgument(
                f"{name}: the model reads known inputs, `future`; send them with --json FILE"
            )
        if not self.ahead:
            raise InvalidArgument(
                f"{name}: the model reads {', '.join(columns.future)} of the steps that it "
                f"forecasts; expected {columns.horizon} rows after {self.ticks[-1].label} with "
                f"these and no value of {', '.join(columns.forecast)}; got none"
            )
        places = [columns.names.index(column) for column in columns.future]
        found = np.full((1, columns.horizon, len(places)), np.nan, np.float32)
        for step, tick in enumerate(self.ahead[: columns.horizon]):
            found[0, step] = tick.values[places]
        return found

    def timestamp(self) -> npt.NDArray[np.object_]:
        """Return the input `timestamp` of the model, (1,): the time of the last row, unchanged."""
        return np.array([self.ticks[-1].label.strip().encode()], object)


def model_ticks(client: Client, arguments: argparse.Namespace, target: Any) -> SeriesRows:
    """Return all rows of `--csv`, and notes on them.

    Raises:
        InvalidArgument: A column is missing, or the newest row is the first; names it.
    """
    columns = model_columns(client, arguments, target)
    names = arguments.columns or (columns.names if columns else ())
    optional = columns.optional if columns else ()
    read = Ticks(arguments.csv, names, optional, text_format(arguments))
    ticks: Sequence[Tick] = list(read)
    uneven = uneven_times(ticks, read.name)
    notes, ahead = [*read.notes(), *([uneven] if uneven else [])], list[Tick]()
    if columns is not None:
        places = [columns.names.index(name) for name in columns.forecast]
        every, (ticks, left_out) = ticks, known_ticks(ticks, places)
        if columns.future:
            known = [columns.names.index(name) for name in columns.future]
            ahead = list(every[len(ticks) :])
            while ahead and np.isnan(ahead[-1].values[known]).all():
                ahead.pop()
            left_out = _lacking(ahead, columns, known)
        notes += [left_out] if left_out else []
    return SeriesRows(ticks, ahead, columns, notes)


def _lacking(ahead: Sequence[Tick], columns: SeriesColumns, known: Sequence[int]) -> str | None:
    """Return a note if known inputs are given for only some of the steps ahead."""
    rows = ahead[: columns.horizon]
    count = sum(not np.isnan(tick.values[known]).any() for tick in rows)
    if not rows or count == columns.horizon:
        return None
    return (
        f"{', '.join(columns.future)} are known of {count} of the {columns.horizon} steps that the "
        "model forecasts; the last value before stands in for one that is missing"
    )
