"""Series from CSV files, as people keep them: a header, a column of times, columns of numbers."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import csv
import io
import itertools
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np
import numpy.typing as npt

from gru_serving.errors import InvalidArgument

MISSING = ("", "na", "nan", "n/a", "null", "none", "-", "?")
"""The same as in `gru_training.data.series_file`, so that training files can be sent to a model."""

_MARKS = {  # the longer ones first: UTF-32's begins like UTF-16's
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_DAY, _SATURDAY = timedelta(days=1), 5


class Tick(NamedTuple):
    """One row.

    Attributes:
        label: What its first column says, for people: the time.
        values: (C,) float32, NaN where a cell is empty or says so.
    """

    label: str
    values: npt.NDArray[np.float32]


def read_ticks(
    lines: TextIO, name: str, columns: Sequence[str] = (), optional: Sequence[str] = ()
) -> Iterator[Tick]:
    """The rows of a CSV, as they arrive.

    Args:
        lines: The text; its first line is the header.
        name: Of the file, for messages.
        columns: Which to read, in the order of the model's; by default all but the first.
        optional: Those of them that may be missing, and are NaN then.

    Raises:
        InvalidArgument: The text is not UTF-8 or holds NULs, a column is missing, or a cell is no
            number; names line and column.
    """
    rows = _rows(lines, name)
    _, first = next(rows, (0, []))
    header = [cell.strip() for cell in first]
    wanted = list(columns) or header[1:]
    twice = [column for column in wanted if header.count(column) > 1]
    if twice:
        raise InvalidArgument(
            f"{name}: expected columns with names of their own; got {twice[0]!r} twice"
        )
    absent = [column for column in wanted if column not in header]
    missing = [column for column in absent if column not in optional]
    if missing or not wanted:
        named = "column" if len(missing) == 1 else "columns"
        what = f"the {named} {', '.join(missing)}" if missing else "a time and columns of numbers"
        raise InvalidArgument(f"{name}: expected a header with {what}; got {','.join(header)!r}")
    places = [None if column in absent else header.index(column) for column in wanted]
    for number, row in rows:
        if not row:
            continue
        where = f"{name}, line {number}"
        if len(row) != len(header):
            raise InvalidArgument(f"{where}: expected {len(header)} cells; got {len(row)}")
        values = [
            math.nan if place is None else _number(row[place], f"{where}, column {header[place]}")
            for place in places
        ]
        yield Tick(row[0], np.array(values, np.float32))


def _rows(lines: TextIO, name: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each row, with the number of the line on which it ends."""
    rows = csv.reader(lines)
    try:
        for row in rows:
            if any("\0" in cell for cell in row):
                raise InvalidArgument(
                    f"{name}, line {rows.line_num}: expected text; got a NUL character; if the "
                    "file is UTF-16, save it as UTF-8"
                )
            yield rows.line_num, row
    except csv.Error as error:  # such as a quotation mark that is never closed
        raise InvalidArgument(f"{name}, line {rows.line_num}: not CSV: {error}") from None
    except UnicodeDecodeError as error:
        wide = next((_MARKS[mark] for mark in _MARKS if error.object.startswith(mark)), None)
        if wide and rows.line_num == 0:
            raise InvalidArgument(
                f"{name}: expected UTF-8; got {wide}. Convert it first, as with "
                f"`iconv -f {wide} -t UTF-8`"
            ) from None
        raise InvalidArgument(
            f"{name}, after line {rows.line_num}: expected UTF-8; got the byte "
            f"0x{error.object[error.start]:02x}. Convert it first, as with "
            "`iconv -f latin1 -t utf-8`"
        ) from None


def known_ticks(
    ticks: Sequence[Tick], forecast: Sequence[int]
) -> tuple[Sequence[Tick], str | None]:
    """The rows until the last with a value of a column that is forecast.

    Rows after it are what is to be forecast; a model would take them for gaps.

    Args:
        ticks: Of `read_ticks`.
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
    """A whole series, (1, T, C), as the input `history` of a forecaster.

    Args:
        ticks: Of `read_ticks`.
        name: Of the file, for messages.

    Raises:
        InvalidArgument: There is no tick.
    """
    values = [tick.values for tick in ticks]
    if not values:
        raise InvalidArgument(f"{name}: expected rows of numbers below the header; got none")
    return np.stack(values)[np.newaxis]


def uneven_times(ticks: Sequence[Tick]) -> str | None:
    """What to say of a series whose rows are not evenly spaced, as where some were left out.

    Training fills times left out with missing values; a server gets rows without their times.

    Args:
        ticks: Of `read_ticks`.

    Returns:
        None if the times are even, apart from the lengths of months, or if the labels are not
        times in the form of ISO 8601.
    """
    try:
        times = [datetime.fromisoformat(tick.label.strip()) for tick in ticks]
        steps = [after - before for before, after in itertools.pairwise(times)]
    except (ValueError, TypeError):  # also where only some have an offset from UTC
        return None
    if not steps:
        return None
    usual = Counter(steps).most_common(1)[0][0]
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
    """`--csv` and `--columns`, for commands that send a series."""
    parser.add_argument("--csv", metavar="FILE", help="read a series from FILE; - for stdin")
    parser.add_argument(
        "--columns",
        metavar="NAME,NAME",
        type=lambda names: [name.strip() for name in names.split(",")],
        default=[],
        help="columns of --csv to send (default: those of the model by their names; of a model "
        "that does not know them, all but the first)",
    )


@contextlib.contextmanager
def open_csv(name: str) -> Iterator[TextIO]:
    """The file, or standard input for `-`, as text."""
    if name == "-":
        # As of a file: a byte order mark is no part of the first name, a line break in a cell is.
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8-sig", errors="strict", newline="")
        yield sys.stdin
        return
    with Path(name).open(encoding="utf-8-sig", newline="") as lines:
        yield lines


def _number(cell: str, where: str) -> float:
    text = cell.strip()
    if text.lower() in MISSING:
        return math.nan
    try:
        value = math.nan if "_" in text else float(text)  # only Python reads 1_000 as a number
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise InvalidArgument(f"{where}: expected a number or an empty cell; got {cell!r:.60}")
    with np.errstate(over="ignore"):
        if np.isinf(np.float32(value)):
            raise InvalidArgument(
                f"{where}: expected a number in the range of float32; got {cell!r:.60}"
            )
    return value
