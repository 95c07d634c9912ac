"""The files of the M4 competition as published: a row for each series, its values one by one.

Makridakis, Spiliotis and Assimakopoulos (2020), "The M4 Competition: 100,000 time series and 61
forecasting methods", International Journal of Forecasting 36. The files have no times: all series
are put so that they end together, which no forecast depends on.
"""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from gru_training.data.series import Series
from gru_training.errors import DataError
from gru_training.tables.rows import cell_text, read_rows

_NAME = re.compile(r"(Yearly|Quarterly|Monthly|Weekly|Daily|Hourly)-(train|test)\.csv(\.gz)?")
_END = pd.Timestamp("2020-01-05")  # a Sunday


class M4Kind(NamedTuple):
    """What the competition fixed for a spacing."""

    frequency: str
    season: int
    """Of the seasonal naive forecast that MASE and Naive 2 use."""
    horizon: int


KINDS = {
    "Yearly": M4Kind("YS-JAN", 1, 6),
    "Quarterly": M4Kind("QS-JAN", 4, 8),
    "Monthly": M4Kind("MS", 12, 18),
    "Weekly": M4Kind("W-SUN", 1, 13),
    "Daily": M4Kind("D", 1, 14),
    "Hourly": M4Kind("h", 24, 48),
}


def m4_kind(path: Path) -> M4Kind | None:
    """The kind of a file that is called as those of the competition."""
    match = _NAME.fullmatch(path.name)
    return KINDS[match[1]] if match else None


def read_m4_rows(path: Path) -> dict[str, np.ndarray]:
    """The values of each series by its name; empty cells at the end of a row are none.

    Raises:
        DataError: The file is not like this; names line and column.
    """
    table = read_rows(path)
    header = list(table.columns or ())
    if not header or header[0].strip().upper() not in ("V1", "ID"):
        raise DataError(
            f"{path}: expected a header V1, V2, ... as of the M4 files, got {header[:3]}"
        )
    found: dict[str, np.ndarray] = {}
    for number, cells in table.rows:
        name, *texts = ((cell_text(cell) or "").strip() for cell in cells.values())
        while texts and not texts[-1]:
            texts.pop()
        if not name or name in found or not texts:
            what = "a name of its own" if not name or name in found else "at least one value"
            raise DataError(f"{path}, line {number}: expected a series with {what}, got {name!r}")
        try:
            values = np.array([float(text) for text in texts])
        except ValueError:
            wrong = next(text for text in texts if not _is_number(text))
            raise DataError(f"{path}, line {number}: expected numbers, got {wrong!r:.40}") from None
        if not np.isfinite(values).all():
            raise DataError(f"{path}, line {number}: expected finite numbers")
        found[name] = values
    if not found:
        raise DataError(f"{path}: expected a row for each series, got none")
    return found


def read_m4(path: Path, kind: M4Kind) -> Series:
    """The series of a training file, which end together.

    Raises:
        DataError: As `read_m4_rows`.
    """
    rows = read_m4_rows(path)
    longest = max(map(len, rows.values()))
    values = np.full((longest, len(rows)), np.nan)
    for column, of_series in enumerate(rows.values()):
        values[longest - len(of_series) :, column] = of_series
    times = pd.date_range(end=_END, periods=longest, freq=kind.frequency).as_unit("ns")
    notes = ("the file has no times; all series were put so that they end together",)
    name = path.name.split(".")[0]
    return Series(name, str(path), tuple(rows), values, times, kind.frequency, notes, panel=True)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
