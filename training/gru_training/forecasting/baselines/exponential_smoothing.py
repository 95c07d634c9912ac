"""Exponential smoothing (ETS) of short series, column by column.

Level, trend and season, all additive, after Hyndman et al. (2008), "Forecasting with Exponential
Smoothing: The State Space Approach"; the fit is that of statsmodels.
"""

import warnings
from typing import Any

import numpy as np
from statsmodels.tools.sm_exceptions import ConvergenceWarning
from statsmodels.tsa.exponential_smoothing.ets import ETSModel

from gru_training.forecasting.baselines.ridge import filled
from gru_training.forecasting.data import ForecastingData

_MOST_ROWS, _MOST_COLUMNS = 5_000, 8
_FEWEST_ROWS = 10
"""Of which the level and the trend at the beginning are estimated."""


def suits(data: ForecastingData) -> bool:
    """Whether the series is small enough to be worth the time, and long enough to fit."""
    return (
        len(data.series) <= _MOST_ROWS
        and len(data.shape.targets) <= _MOST_COLUMNS
        and data.borders.train >= _FEWEST_ROWS
    )


class SmoothingForecaster:
    """Models fitted on early rows, which then follow the series through all later ones.

    Args:
        data: The series; missing values are replaced by the ones before.
        damped: Let the trend die out.
        end: Fit on the rows before this one; by default the training rows.
    """

    def __init__(self, data: ForecastingData, damped: bool, end: int | None = None):
        train = end or data.borders.train
        self.damped, self._horizon = damped, data.shape.horizon
        needed = max(2 * data.season, _FEWEST_ROWS + 2 * (data.season // 2))
        self._season = data.season if train >= needed else 1
        season = f"season {self._season}" if self._season > 1 else "no season"
        self.detail = f"{season}, {'damped ' if damped else ''}trend"
        self._results = [
            _follow(filled(column.astype(np.float64)), train, self._season, damped)
            for column in data.standardised_targets.T
        ]

    def forecasts(self, origins: np.ndarray) -> np.ndarray:
        """(N, H, K) standardised forecasts from the rows before each of N origins.

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
    """The states of a column at all of its rows, under parameters fitted on the first ones."""
    options: dict[str, Any] = {
        "error": "add",
        "trend": "add",
        "damped_trend": damped,
        "seasonal": "add" if season > 1 else None,
        "seasonal_periods": season if season > 1 else None,
    }
    model = ETSModel(column[:train], initialization_method="heuristic", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the best found is good enough here
        fitted = model.fit(disp=False)
    # The heuristic reads up to five seasons, of the whole column thus rows still to be forecast.
    start = {
        "initial_level": model.initial_level,
        "initial_trend": model.initial_trend,
        "initial_seasonal": model.initial_seasonal,
    }
    everything = ETSModel(column, initialization_method="known", **start, **options)
    return everything.smooth(fitted.params)
