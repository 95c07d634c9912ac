"""A series made ready: split by time, scaled by its training rows, cut into windows."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from training.data.digest import data_digest
from training.data.series import Series
from training.errors import DataError
from training.forecasting.config import SeriesConfig
from training.forecasting.network.config import ForecastShape
from training.forecasting.preprocessor import SeriesPreprocessor
from training.forecasting.sets import Borders, borders_of, load_series, published_borders, steps_of
from training.forecasting.windows import Windows

PARTS = ("train", "validation", "test")
_LARGEST = 1e30
"""Beyond it differences and sums of values come near the largest float32."""
_LEAST_DEVIATION = 1e-30
_FARTHEST = 1e15
"""The square of which, summed over a window, still is a float32."""
_COARSE = 0.01
"""A note is given if neighbouring float32 numbers differ by more than this share of the
deviation."""


@dataclass(frozen=True)
class ForecastingData:
    """A series with its split and scale."""

    series: Series
    borders: Borders
    shape: ForecastShape
    season: int
    preprocessor: SeriesPreprocessor

    @property
    def target_columns(self) -> tuple[str, ...]:
        """Names of the K columns that are forecast."""
        return tuple(self.series.columns[column] for column in self.shape.targets)

    @property
    def published(self) -> bool:
        """Whether the split is that of published results on a public set."""
        return self.borders == published_borders(self.series)

    @property
    def digest(self) -> str:
        """Identifies the series."""
        series = self.series
        times = series.times.as_unit("ns").asi8
        return data_digest([*series.columns, times, series.values])

    @cached_property
    def raw(self) -> np.ndarray:
        """(rows, C) float32: the series."""
        return self.series.values.astype(np.float32)

    @cached_property
    def standardised_targets(self) -> np.ndarray:
        """(rows, K) float32, NaN where a value is missing."""
        targets = self.series.values[:, list(self.shape.targets)]
        return self.preprocessor.standardise_targets(targets).astype(np.float32)

    def windows(self, part: str, lookback: int | None = None) -> Windows:
        """Every window whose forecast steps lie in a part and have any value to compare with.

        What a window reads may reach back before its part, so that a part of n rows has n - H + 1
        windows; those of the training part begin where there is enough to read.

        Args:
            part: `train`, `validation` or `test`.
            lookback: Steps read; those of the shape by default.
        """
        begin, end = self.borders.part(part)
        return self.windows_between(begin, end, lookback)

    def windows_between(self, begin: int, end: int, lookback: int | None = None) -> Windows:
        """As `windows`, with the forecast steps in rows `begin` to `end - 1`."""
        lookback, horizon = lookback or self.shape.lookback, self.shape.horizon
        origins = np.arange(max(begin, lookback), end - horizon + 1)
        seen = np.isfinite(self.standardised_targets).any(axis=1)
        count = np.concatenate([[0], np.cumsum(seen)])
        origins = origins[count[origins + horizon] > count[origins]]
        return Windows(self.raw, self.standardised_targets, origins, lookback, horizon)


def load_forecasting_data(config: SeriesConfig) -> ForecastingData:
    """Read a series, split it by time and scale it by its training rows.

    Raises:
        DataError: The series cannot be used; says why.
    """
    return prepare(load_series(config), config)


def prepare(series: Series, config: SeriesConfig) -> ForecastingData:
    """Split and scale a series that has been read.

    Raises:
        DataError: Too few rows, or a column that is constant.
    """
    borders = borders_of(series, config)
    lookback, horizon, season = steps_of(series, config)
    _require_rows(series, borders, lookback, horizon)
    if season > borders.train:
        raise DataError(
            f"{series.source}: expected a season of at most the {borders.train} training rows, got "
            f"{season}; set --season"
        )
    names = config.target or tuple(
        name for name in series.columns if not (config.calendar and _is_calendar(name))
    )
    targets = tuple(series.column(name) for name in names)
    _require_variation(series, borders, targets)
    data = ForecastingData(
        replace(series, notes=series.notes + _precision_notes(series, borders)),
        borders,
        ForecastShape(lookback, horizon, len(series.columns), targets),
        season,
        SeriesPreprocessor.fit(series.values[: borders.train], targets),
    )
    for part in PARTS:
        if not len(data.windows(part)):
            raise DataError(
                f"{series.source}: no window of the {part} part has a value to forecast; all of "
                "them are missing"
            )
    return data


def _is_calendar(name: str) -> bool:
    return name in {
        f"{cycle}_{wave}" for cycle in ("day", "week", "year") for wave in ("sin", "cos")
    }


def _require_rows(series: Series, borders: Borders, lookback: int, horizon: int) -> None:
    least = {"train": lookback + horizon, "validation": horizon, "test": horizon}
    for part, rows in least.items():
        begin, end = borders.part(part)
        if end - begin < rows:
            what = (
                f"look-back {lookback} + horizon {horizon}"
                if part == "train"
                else f"the horizon of {horizon}"
            )
            raise DataError(
                f"{series.source}: the {part} part has {end - begin} of {len(series)} rows, "
                f"expected at least {rows} ({what}); lower --lookback or --horizon, or change "
                "--validation-fraction and --test-fraction"
            )


def _require_variation(series: Series, borders: Borders, targets: tuple[int, ...]) -> None:
    train = series.values[: borders.train]
    for number, name in enumerate(series.columns):
        values = train[:, number]
        values = values[np.isfinite(values)]
        if not len(values):
            raise DataError(
                f"{series.source}, column {name!r}: expected values in the training rows (1 to "
                f"{borders.train}), got only missing ones; leave the column out"
            )
        if values.min() == values.max():
            raise DataError(
                f"{series.source}, column {name!r}: expected values that vary, got "
                f"{values[0]:g} in all training rows (1 to {borders.train}); leave the column out"
            )
        _require_float32(f"{series.source}, column {name!r}", series.values[:, number], values)
    for number in targets:
        for part in ("validation", "test"):
            begin, end = borders.part(part)
            if not np.isfinite(series.values[begin:end, number]).any():
                raise DataError(
                    f"{series.source}, column {series.columns[number]!r}: expected values in the "
                    f"{part} rows ({begin + 1} to {end}), got only missing ones"
                )


def _require_float32(column: str, values: np.ndarray, train: np.ndarray) -> None:
    """Raise DataError where float32, which models read, could not resolve the variation."""
    largest = float(np.nanmax(np.abs(values)))
    if largest > _LARGEST:
        raise DataError(
            f"{column}: expected values up to {_LARGEST:.0e}, got one of {largest:g}; models read "
            "numbers as float32: divide the column by a constant"
        )
    deviation, apart = float(train.std()), _apart(train)
    if deviation <= apart or deviation < _LEAST_DEVIATION:
        raise DataError(
            f"{column}: expected values whose standard deviation is above {_LEAST_DEVIATION:g} and "
            f"above the distance between neighbouring float32 numbers of their size, {apart:g}, as "
            f"which models read them; got {deviation:g}: subtract or multiply by some number"
        )
    away = np.abs(values - train.mean()) / deviation
    if np.nanmax(away) > _FARTHEST:
        row = int(np.nanargmax(away))
        raise DataError(
            f"{column}: expected values within {_FARTHEST:.0e} standard deviations of the training "
            f"rows, {deviation:g}, got {values[row]:g} in row {row + 1}; if that means a missing "
            "value, leave the cell empty"
        )


def _precision_notes(series: Series, borders: Borders) -> tuple[str, ...]:
    """What a reader should know of columns that float32 numbers resolve but coarsely."""
    notes = []
    for name, column in zip(series.columns, series.values[: borders.train].T, strict=True):
        train = column[np.isfinite(column)]
        share = _apart(train) / float(train.std())
        if share > _COARSE:
            notes.append(
                f"column {name!r}: models read numbers as float32, which at its size are "
                f"{_apart(train):g} apart, {share:.0%} of its standard deviation; subtract a "
                "constant from the column for better forecasts"
            )
    return tuple(notes)


def _apart(values: np.ndarray) -> float:
    """The distance between neighbouring float32 numbers of the size of the largest value."""
    return float(np.spacing(np.float32(np.abs(values).max())))
