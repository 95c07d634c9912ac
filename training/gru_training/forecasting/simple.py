"""Simple forecasters to beat.

They read the same standardised and filled windows as the network. The ridge regression has a
look-back of its own; the naive forecasters read at least as far back as the network, to know the
value before a gap.

Exponential smoothing (ETS) has level, trend and season, all additive, after Hyndman et al. (2008),
"Forecasting with Exponential Smoothing: The State Space Approach"; it is fitted by statsmodels.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from statsmodels.tools.sm_exceptions import ConvergenceWarning
from statsmodels.tsa.exponential_smoothing.ets import ETSModel

from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.evaluation import ErrorSums, ForecastErrors, measure
from gru_training.forecasting.linear import (
    SMOOTHING,
    LinearForecaster,
    filled,
    fit_ridge,
    repeat_last,
    repeat_season,
)
from gru_training.forecasting.preprocessor import SeriesPreprocessor
from gru_training.forecasting.windows import Windows

_MOST_ROWS, _MOST_COLUMNS = 5_000, 8
_MIN_ROWS = 10
"""Fewest rows from which the initial level and trend are estimated."""


def suits(data: ForecastingData) -> bool:
    """Tell whether the series is small enough for the available time, and long enough for a fit."""
    return (
        len(data.series) <= _MOST_ROWS
        and len(data.shape.targets) <= _MOST_COLUMNS
        and data.borders.train >= _MIN_ROWS
    )


class SmoothingForecaster:
    """Models that are fitted on early rows and then follow the series through all later ones.

    Args:
        data: The series; missing values are replaced by the ones before.
        damped: Whether the trend dies out.
        end: Row before which the fit ends; by default the end of the training rows.
    """

    def __init__(self, data: ForecastingData, damped: bool, end: int | None = None):
        train = end or data.borders.train
        self.damped, self._horizon = damped, data.shape.horizon
        needed = max(2 * data.season, _MIN_ROWS + 2 * (data.season // 2))
        self._season = data.season if train >= needed else 1
        season = f"season {self._season}" if self._season > 1 else "no season"
        self.detail = f"{season}, {'damped ' if damped else ''}trend"
        self._results = [
            _follow(filled(column.astype(np.float64)), train, self._season, damped)
            for column in data.standardised_targets.T
        ]

    def forecasts(self, origins: np.ndarray) -> np.ndarray:
        """Compute standardised forecasts (N, H, K) from the rows before each of N origins.

        Raises:
            ValueError: There is less than a season before an origin.
        """
        if origins.min() < self._season:
            raise ValueError(
                f"origins must be at least {self._season}, the season, got {origins.min()}"
            )
        return np.stack([self._column(result, origins) for result in self._results], axis=2)

    def _column(self, result: Any, origins: np.ndarray) -> np.ndarray:
        at = origins - 1  # the last row seen
        steps = np.arange(1, self._horizon + 1)
        damping = np.cumsum((result.damping_trend if self.damped else 1.0) ** steps)
        forecasts = result.level[at][:, np.newaxis] + result.slope[at][:, np.newaxis] * damping
        if self._season > 1:
            place = (steps - 1) % self._season - self._season + 1
            forecasts = forecasts + result.season[at[:, np.newaxis] + place]
        return np.asarray(forecasts)


def _follow(column: np.ndarray, train: int, season: int, damped: bool) -> Any:
    """Compute the states of a column at all rows, under parameters fitted on the first ones."""
    options: dict[str, Any] = {
        "error": "add",
        "trend": "add",
        "damped_trend": damped,
        "seasonal": "add" if season > 1 else None,
        "seasonal_periods": season if season > 1 else None,
    }
    model = ETSModel(column[:train], initialization_method="heuristic", **options)
    parameters = model.start_params
    if np.ptp(column[:train]) > 0:  # the likelihood of a constant has no greatest value
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the best found is good enough
            parameters = model.fit(disp=False).params
    # The heuristic reads up to five seasons; given the whole column, it would read rows that are
    # still to be forecast.
    start = {
        "initial_level": model.initial_level,
        "initial_trend": model.initial_trend,
        "initial_seasonal": model.initial_seasonal,
    }
    everything = ETSModel(column, initialization_method="known", **start, **options)
    with np.errstate(divide="ignore", invalid="ignore"):  # a constant has no error
        return everything.smooth(parameters)


RIDGE_LOOKBACKS = (96, 336, 720)


@dataclass(frozen=True)
class BaselineResult:
    """Errors of a simple forecaster."""

    name: str
    detail: str
    """Choices made for the forecaster, such as `season 24`."""
    validation: ForecastErrors
    test: ForecastErrors


@dataclass(frozen=True)
class Baselines:
    """All baselines, with the ridge regression for the linear skip."""

    results: tuple[BaselineResult, ...]
    ridge_by_lookback: dict[int, tuple[float, float]]
    """Mean squared error on validation and test for each look-back that was tried."""


def naive_forecasters(data: ForecastingData) -> list[tuple[LinearForecaster, int]]:
    """Return the forecasters that need no fit, with the steps that each reads."""
    horizon, lookback = data.shape.horizon, data.shape.lookback
    return [
        (repeat_last(horizon), lookback),
        (repeat_season(data.season, horizon), max(lookback, data.season)),
    ]


def fit_baselines(data: ForecastingData) -> Baselines:
    """Fit all baselines on the training part, and measure them on validation and test.

    The ridge regression's look-back is the one with the least validation error among the
    network's own and `RIDGE_LOOKBACKS`, as far as the training part is long enough.
    """
    results = [_measured(data, *naive) for naive in naive_forecasters(data)]
    tried = {
        lookback: _measured(data, ridge_of(data, lookback), lookback)
        for lookback in ridge_lookbacks(data)
    }
    results.append(min(tried.values(), key=lambda result: result.validation.mse))
    if suits(data):
        results.append(_smoothing(data))
    return Baselines(
        tuple(results),
        {lookback: (result.validation.mse, result.test.mse) for lookback, result in tried.items()},
    )


def ridge_of(data: ForecastingData, lookback: int, end: int | None = None) -> LinearForecaster:
    """Fit the ridge regression on the training rows, or on all rows before `end`."""
    rows = data.standardised_targets[: end or data.borders.train]
    return fit_ridge(rows, lookback, data.shape.horizon)


def ridge_lookbacks(data: ForecastingData) -> list[int]:
    """List the look-backs to try: those that leave more windows than coefficients per step."""
    room = data.borders.train - data.shape.horizon
    tried = {lookback for lookback in RIDGE_LOOKBACKS if 2 * lookback <= room}
    return sorted(tried | {min(data.shape.lookback, room)})


def _measured(data: ForecastingData, forecaster: LinearForecaster, lookback: int) -> BaselineResult:
    errors = (
        measure(forecaster, data.windows(part, lookback), data.preprocessor)
        for part in ("validation", "test")
    )
    return BaselineResult(forecaster.name, forecaster.detail, *errors)


def _smoothing(data: ForecastingData) -> BaselineResult:
    """Choose between a damped and an undamped trend by validation."""
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
    """Measure the errors of exponential smoothing, which reads all rows before each window."""
    sums = ErrorSums(windows.horizon, windows.targets.shape[1], preprocessor.target_scale)
    sums.add(windows.futures(), forecaster.forecasts(windows.origins))
    return sums.means()
