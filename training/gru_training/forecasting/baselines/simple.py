"""Simple forecasters to beat.

They read the same standardised and filled windows as the network; the ridge regression of a length
of its own, the naive ones at least as far back as the network, to know the value before a gap.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gru_training.forecasting.baselines.exponential_smoothing import SmoothingForecaster, suits
from gru_training.forecasting.baselines.ridge import RidgeForecaster, fit_ridge
from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.preprocessor import SeriesPreprocessor
from gru_training.forecasting.scores.forecast_errors import (
    ErrorSums,
    Forecaster,
    ForecastErrors,
    measure,
)
from gru_training.forecasting.windows import Windows

RIDGE_LOOKBACKS = (96, 336, 720)
LAST_VALUE, SEASONAL_NAIVE, RIDGE, SMOOTHING = (
    "last value",
    "seasonal naive",
    "ridge",
    "exponential smoothing",
)


@dataclass(frozen=True)
class BaselineResult:
    """How well a simple forecaster does."""

    name: str
    detail: str
    """What was chosen, as `season 24`."""
    validation: ForecastErrors
    test: ForecastErrors


@dataclass(frozen=True)
class Baselines:
    """All of them, and the ridge regression itself for the linear skip."""

    results: tuple[BaselineResult, ...]
    ridge_by_lookback: dict[int, tuple[float, float]]
    """Mean squared error on validation and test for each look-back tried."""


def last_value(targets: Sequence[int], horizon: int) -> Forecaster:
    """Repeat the last value of each column."""

    def forecast(histories: np.ndarray) -> np.ndarray:
        return np.repeat(histories[:, -1:, list(targets)], horizon, axis=1)

    return forecast


def seasonal_naive(targets: Sequence[int], horizon: int, season: int) -> Forecaster:
    """Repeat the last season of each column; reads `season` steps or more."""
    source = np.arange(horizon) % season - season

    def forecast(histories: np.ndarray) -> np.ndarray:
        return histories[:, source][..., list(targets)]

    return forecast


def naive_forecasters(data: ForecastingData) -> dict[str, tuple[Forecaster, int]]:
    """Those that need no fit, by name, and how many steps they are given to read."""
    targets, horizon = data.shape.targets, data.shape.horizon
    lookback = data.shape.lookback
    return {
        LAST_VALUE: (last_value(targets, horizon), lookback),
        SEASONAL_NAIVE: (
            seasonal_naive(targets, horizon, data.season),
            max(lookback, data.season),
        ),
    }


def fit_baselines(data: ForecastingData) -> Baselines:
    """Fit all on the training part and measure them on validation and test.

    The ridge regression's look-back is the one with the least validation error among the
    network's own and `RIDGE_LOOKBACKS`, as far as the training part is long enough.
    """
    details = {LAST_VALUE: "", SEASONAL_NAIVE: f"season {data.season}"}
    results = [
        _measured(data, name, details[name], forecaster, lookback)
        for name, (forecaster, lookback) in naive_forecasters(data).items()
    ]
    tried = {}
    for ridge in _ridges(data):
        detail = f"look-back {ridge.lookback}"
        tried[ridge.lookback] = _measured(data, RIDGE, detail, ridge, ridge.lookback)
    results.append(min(tried.values(), key=lambda result: result.validation.mse))
    if suits(data):
        results.append(_smoothing(data))
    return Baselines(
        tuple(results),
        {
            lookback: (result.validation.mse, result.test.mse)
            for lookback, result in sorted(tried.items())
        },
    )


def ridge_of(data: ForecastingData, lookback: int, end: int | None = None) -> RidgeForecaster:
    """The ridge regression on the training rows, or on all rows before `end`."""
    rows = data.standardised_targets[: end or data.borders.train]
    return fit_ridge(rows, lookback, data.shape.horizon, data.shape.targets)


def ridge_lookbacks(data: ForecastingData) -> list[int]:
    """The look-backs to try: those that leave more windows than coefficients per step."""
    room = data.borders.train - data.shape.horizon
    tried = {lookback for lookback in RIDGE_LOOKBACKS if 2 * lookback <= room}
    return sorted(tried | {data.shape.lookback})


def _ridges(data: ForecastingData) -> list[RidgeForecaster]:
    return [ridge_of(data, lookback) for lookback in ridge_lookbacks(data)]


def _measured(
    data: ForecastingData, name: str, detail: str, forecaster: Forecaster, lookback: int
) -> BaselineResult:
    validation, test = (
        measure(forecaster, data.windows(part, lookback), data.preprocessor)
        for part in ("validation", "test")
    )
    return BaselineResult(name, detail, validation, test)


def _smoothing(data: ForecastingData) -> BaselineResult:
    """The better on validation of a damped and a lasting trend."""
    parts = [data.windows(part) for part in ("validation", "test")]
    tried = []
    for damped in (False, True):
        forecaster = SmoothingForecaster(data, damped)
        errors = [measure_smoothing(forecaster, windows, data.preprocessor) for windows in parts]
        tried.append(BaselineResult(SMOOTHING, forecaster.detail, *errors))
    return min(tried, key=lambda result: result.validation.mse)


def measure_smoothing(
    forecaster: SmoothingForecaster, windows: Windows, preprocessor: SeriesPreprocessor
) -> ForecastErrors:
    """The errors of exponential smoothing, which reads the whole series before each window."""
    sums = ErrorSums(windows.horizon, windows.targets.shape[1], preprocessor.target_scale)
    sums.add(windows.futures(), forecaster.forecasts(windows.origins))
    return sums.means()
