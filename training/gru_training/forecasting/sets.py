"""The built-in series, and public sets recognised by file name.

Published borders of the ETT sets are those of Zhou et al. (2021), "Informer": 12, 4 and 4 months
of 30 days, the rest unused. Weather and exchange rate are split 70, 10 and 20 % after Wu et al.
(2021), "Autoformer".

The files of the M4 competition are read as published: a row for each series with its values
(Makridakis, Spiliotis and Assimakopoulos, 2020, "The M4 Competition: 100,000 time series and 61
forecasting methods", International Journal of Forecasting 36). They have no times, so all series
are aligned at their ends, on which no forecast depends.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gru_training.data.calendar import HOLIDAY, make_calendar, season_length
from gru_training.data.problems import Problems
from gru_training.data.series import Series
from gru_training.data.series_file import read_series
from gru_training.errors import DataError, ForeignDataError
from gru_training.forecasting.config import SeriesConfig
from gru_training.tables.rows import cell_text, read_rows

_NAME = re.compile(r"(Yearly|Quarterly|Monthly|Weekly|Daily|Hourly)-(train|test)\.csv(\.gz)?")
_END = "2020-01-05"  # a Sunday


class M4Kind(NamedTuple):
    """Season and horizon fixed by the competition for a spacing."""

    frequency: str
    season: int
    """Steps of the season for the seasonal naive forecast, which MASE and Naive 2 use."""
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
    """Recognise the kind of a file by the names of the competition's files."""
    match = _NAME.fullmatch(path.name)
    return KINDS[match[1]] if match else None


def read_m4_rows(path: Path) -> dict[str, np.ndarray]:
    """Read the values of each series by its name; empty cells at the end of a row are ignored.

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
    """Read the series of a training file, aligned at their ends.

    Raises:
        DataError: The file cannot be read, see `read_m4_rows`.
    """
    import pandas as pd

    rows = read_m4_rows(path)
    longest = max(map(len, rows.values()))
    values = np.full((longest, len(rows)), np.nan)
    for column, of_series in enumerate(rows.values()):
        values[longest - len(of_series) :, column] = of_series
    times = pd.date_range(end=_END, periods=longest, freq=kind.frequency).as_unit("ns").to_numpy()
    notes = ("the file has no times; all series were put so that they end together",)
    name = path.name.split(".")[0]
    return Series(name, str(path), tuple(rows), values, times, kind.frequency, notes, panel=True)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


PARTS = ("train", "validation", "test")
_ETT_COLUMNS = ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT")
_ETT_STEPS_PER_HOUR = {"ETTh1": 1, "ETTh2": 1, "ETTm1": 4, "ETTm2": 4}
_HORIZONS = 4
"""Number of validation rows by default, and of horizons that they should have as far as a short
series has room: fewer would not suffice to calibrate an interval.
"""
_TENTHS_ROWS = {"weather": 52_696, "exchange_rate": 7_588}


class Borders(NamedTuple):
    """Row numbers at which the parts of a split end; the first begins at row 0."""

    train: int
    validation: int
    test: int
    trained: int | None = None
    """Number of rows to train on if it differs from the training part's."""

    def part(self, name: str) -> tuple[int, int]:
        """Return the first row of a part and the row after its last."""
        if name == "train":
            return 0, self.train if self.trained is None else self.trained
        begin = {"validation": self.train, "test": self.validation}
        return begin[name], getattr(self, name)


def load_series(config: SeriesConfig, problems: Problems) -> Series:
    """Read the series that the settings name, with calendar columns if wanted.

    Args:
        config: Settings of the series.
        problems: Collector of rows and cells that cannot be used.

    Raises:
        DataError: The file cannot be used; says why.
    """
    series = None
    if config.data is None:
        series = _weekly_co2()
    elif config.data.name.split(".")[0] in (*_ETT_STEPS_PER_HOUR, *_TENTHS_ROWS):
        try:
            series = read_file(config.data, config, keep_rows=True)
        except DataError:
            series = None
        if series is not None and published_borders(series) is None:
            series = None  # only called like a public set
    if series is None and config.data is not None and (kind := m4_kind(config.data)) is not None:
        series = read_m4(config.data, kind)
    if series is None:
        assert config.data is not None
        named = (*config.target, *config.future, *config.past)
        series = read_file(config.data, config, problems=problems, long=config.long, read=named)
    return as_wanted(series, config)


def read_file(path: Path, config: SeriesConfig, **how: Any) -> Series:
    """Read a file whose times and texts have the form that the settings give.

    Args:
        path: The file.
        config: Settings of the series.
        **how: Further arguments of `gru_training.data.series_file.read_series`.

    Raises:
        DataError: The file cannot be used; says why.
    """
    reading = path, config.time_column, config.time_format
    return read_series(*reading, options=config.times, given=config.text_format, **how)


def as_wanted(series: Series, config: SeriesConfig) -> Series:
    """Return the series with the requested calendar columns, if it has columns to forecast.

    Raises:
        ForeignDataError: The series lacks a column.
    """
    inputs = ("--future", () if series.panel else config.future), ("--past", config.past)
    if series.panel and config.past:
        raise DataError(
            f"--past: {series.source} has a row for each series and time; inputs of the past "
            "alone are read of tables with a row for each time only"
        )
    # In a table in long form they were searched for when it was read.
    of_rows = series.panel and (config.data is None or m4_kind(config.data) is None)
    targets = () if of_rows else config.target
    for flag, names in (("--target", targets), *inputs):
        for name in names:
            if name not in series.columns:
                raise ForeignDataError(
                    f"{flag}: {series.source} has no column {name!r}; its columns are "
                    f"{', '.join(series.columns)}"
                )
    if not config.target and set(series.columns) == {*config.future, *config.past}:
        raise DataError(
            f"{series.source}: expected a column to forecast, got only those of --future and "
            f"--past: {', '.join(series.columns)}"
        )
    return _with_calendar(series, config) if config.calendar or config.holidays else series


def published_borders(series: Series) -> Borders | None:
    """Return the borders of published results on a public data set; None for any other series."""
    rows = len(series)
    steps = _ETT_STEPS_PER_HOUR.get(series.name)
    if steps and series.columns[: len(_ETT_COLUMNS)] == _ETT_COLUMNS and rows >= 14_400 * steps:
        return Borders(8_640 * steps, 11_520 * steps, 14_400 * steps)
    if rows == _TENTHS_ROWS.get(series.name):
        return Borders(int(0.7 * rows), rows - int(0.2 * rows), rows)
    return None


def borders_of(series: Series, config: SeriesConfig) -> Borders:
    """Split a series by the requested shares, or as published, or by default."""
    asked = config.validation_fraction is not None or config.test_fraction is not None
    published = None if asked else published_borders(series)
    if published:
        return published
    rows = len(series)
    _, horizon, season = steps_of(series, config)
    validation, test = _least_held_out(rows, horizon, config)
    if config.validation_fraction is None:
        room = rows - test - 3 * season - 2 * horizon  # whatever the look-back that is chosen
        validation = max(validation, min(_HORIZONS * horizon, rows // 4, room))
    return Borders(rows - validation - test, rows - test, rows)


def steps_of(series: Series, config: SeriesConfig) -> tuple[int, int, int]:
    """Return look-back, horizon and season: as requested, or else three, one and one seasons.

    By default a short series gets less: a horizon of at most a quarter of its rows, and no season
    (1) that is longer than the remaining training rows.
    """
    kind = None if config.data is None else m4_kind(config.data)
    rows, season = len(series), config.season or season_length(series.frequency)
    horizon = config.horizon or (season if kind is None else kind.horizon)
    if config.horizon is None and kind is None:
        horizon = max(1, min(horizon, rows // 4))
    if (
        config.season is None
        and kind is None
        and season > rows - sum(_least_held_out(rows, horizon, config))
    ):
        season = 1
    return config.lookback or 3 * season, horizon, season


def _least_held_out(rows: int, horizon: int, config: SeriesConfig) -> tuple[int, int]:
    """Return the fewest rows of validation and test part, by default those of a window."""
    asked = config.validation_fraction, config.test_fraction
    validation, test = (
        max(int(share * rows), horizon if wanted is None else 0)
        for share, wanted in zip(config.fractions, asked, strict=True)
    )
    return validation, test


def longest_lookback(train: int, horizon: int) -> int:
    """Return the most steps with which at least as many training windows remain."""
    return max(1, (train - horizon) // 2)


def _weekly_co2() -> Series:
    from statsmodels.datasets import co2  # takes a second

    table = co2.load_pandas().data
    values = table.to_numpy(np.float64)
    missing = int(np.isnan(values).sum())
    return Series(
        "co2",
        "the built-in CO2 series",
        tuple(table.columns),
        values,
        table.index.as_unit("ns").to_numpy(),
        "W-SAT",
        (f"{missing} of its weeks are missing values",),
    )


def _with_calendar(series: Series, config: SeriesConfig) -> Series:
    if series.numbered:
        raise DataError(
            f"--calendar, --holidays: {series.source} has numbers of steps in place of times; "
            "leave the flags out, or read the numbers as times with --time-format"
        )
    parts = series.index, series.frequency, config.calendar
    zone = None if series.local or series.zone == "UTC" else series.zone
    calendar = make_calendar(*parts, config.holidays, zone)
    taken = sorted(set(calendar.columns) & set(series.columns))
    if taken:
        flag = "--holidays" if taken[0] == HOLIDAY else "--calendar"
        raise DataError(f"{flag}: {series.source} already has a column {taken[0]!r}")
    if not calendar.columns:
        return series
    return replace(
        series,
        columns=(*series.columns, *calendar.columns),
        values=np.column_stack([series.values, calendar.values(series.index)]),
        calendar=calendar,
    )
