"""Errors of forecasts against measured values, by horizon and column."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gru_training.forecasting.preprocessor import SeriesPreprocessor
from gru_training.forecasting.windows import Windows

Forecaster = Callable[[np.ndarray], np.ndarray]
"""Standardised histories (B, L, C) in, standardised forecasts (B, H, K) out."""
CHUNK = 256
"""Windows at a time."""


@dataclass(frozen=True)
class WindowErrors:
    """Of each window, on the standardised scale; missing values count nowhere."""

    squared: np.ndarray
    """(N, K) float32: sums over the steps of squared errors."""
    absolute: np.ndarray
    """(N, K) float32: likewise of absolute errors."""
    count: np.ndarray
    """(N,): values compared with, of all columns."""


@dataclass(frozen=True)
class ForecastErrors:
    """Means over the windows, on the standardised scale; NaN where nothing was seen."""

    squared: np.ndarray
    """(H, K): mean squared error."""
    absolute: np.ndarray
    """(H, K): mean absolute error."""
    percentage: np.ndarray
    """(H, K): sMAPE, 0 to 200, of values in their own units."""
    count: np.ndarray
    """(H, K): values compared with."""
    windows: WindowErrors
    """The same window by window."""

    @property
    def mse(self) -> float:
        """Mean squared error over all values."""
        return _mean(self.squared, self.count)

    @property
    def mae(self) -> float:
        """Mean absolute error over all values."""
        return _mean(self.absolute, self.count)

    @property
    def smape(self) -> float:
        """Symmetric mean absolute percentage error over all values."""
        return _mean(self.percentage, self.count)

    def by_horizon(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean squared and absolute error (H,) of each step."""
        return self.of_steps(self.squared), self.of_steps(self.absolute)

    def by_column(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean squared and absolute error (K,) of each column."""
        return self.of_columns(self.squared), self.of_columns(self.absolute)

    def of_steps(self, means: np.ndarray) -> np.ndarray:
        """(H,) over the columns, of means (H, K) over the windows."""
        return np.asarray(_means(means, self.count, 1))

    def of_columns(self, means: np.ndarray) -> np.ndarray:
        """(K,) over the steps, of means (H, K) over the windows."""
        return np.asarray(_means(means, self.count, 0))

    def raw(self, deviation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean absolute and root mean squared error (K,) of each column in its own units.

        Args:
            deviation: (K,), by which the columns were divided.
        """
        squared, absolute = self.by_column()
        return absolute * deviation, np.sqrt(squared) * deviation


class ErrorSums:
    """Collects errors batch by batch.

    Args:
        horizon: H.
        columns: K.
        scale: Mean and deviation (K,) with which the columns were standardised.
    """

    def __init__(self, horizon: int, columns: int, scale: tuple[np.ndarray, np.ndarray]):
        self._mean, self._deviation = scale
        self._percentage = np.zeros((horizon, columns))
        self._squared = np.zeros((horizon, columns))
        self._absolute = np.zeros((horizon, columns))
        self._count = np.zeros((horizon, columns), int)
        self._windows: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, targets: np.ndarray, forecasts: np.ndarray) -> None:
        """Add a batch, (B, H, K) both; NaN among the targets is left out."""
        residual = (targets - forecasts).astype(np.float64)
        seen = np.isfinite(residual)
        absolute = np.abs(np.where(np.isnan(residual), 0, residual))
        squared = absolute**2
        self._count += seen.sum(axis=0)
        self._squared += squared.sum(axis=0)
        self._absolute += absolute.sum(axis=0)
        self._percentage += np.nansum(self._percentages(targets, forecasts), axis=0)
        by_window = (of.sum(axis=1).astype(np.float32) for of in (squared, absolute))
        self._windows.append((*by_window, seen.sum(axis=(1, 2))))

    def _percentages(self, targets: np.ndarray, forecasts: np.ndarray) -> np.ndarray:
        """(B, H, K), 0 to 200, NaN where the truth is missing."""
        truth, forecast = (each * self._deviation + self._mean for each in (targets, forecasts))
        sizes = np.abs(truth) + np.abs(forecast)
        return np.asarray(
            np.divide(200 * np.abs(truth - forecast), sizes, np.zeros_like(sizes), where=sizes != 0)
        )

    def means(self) -> ForecastErrors:
        """The errors so far."""
        windows = WindowErrors(*map(np.concatenate, zip(*self._windows, strict=True)))
        with np.errstate(invalid="ignore"):
            return ForecastErrors(
                self._squared / self._count,
                self._absolute / self._count,
                self._percentage / self._count,
                self._count,
                windows,
            )


def measure(
    forecaster: Forecaster, windows: Windows, preprocessor: SeriesPreprocessor
) -> ForecastErrors:
    """The errors of a forecaster on windows of its own look-back."""
    sums = ErrorSums(windows.horizon, windows.targets.shape[1], preprocessor.target_scale)
    for rows in windows.chunks(CHUNK):
        histories = preprocessor.standardise(windows.histories(rows)).numpy()
        sums.add(windows.futures(rows), forecaster(histories))
    return sums.means()


def _mean(values: np.ndarray, count: np.ndarray) -> float:
    return float(np.nansum(values * count) / count.sum())


def _means(values: np.ndarray, count: np.ndarray, axis: int) -> Any:
    with np.errstate(invalid="ignore"):
        return np.nansum(values * count, axis=axis) / count.sum(axis=axis)
