"""Forecasts that are linear in the window: last + (window - last) · kernel."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LinearForecaster:
    """A matrix from the last L values of a column to its next H.

    A value added to the whole window is added to the forecast.
    """

    name: str
    """What kind of forecaster the matrix stands for."""
    detail: str
    """What was chosen, as `look-back 336, penalty 100`."""
    kernel: np.ndarray
    """(L, H), the same for all columns, or (K, L, H); from windows with their last value
    subtracted to forecasts likewise."""
    season: int = 1
    """Of exponential smoothing."""
    penalty: float = 0.0
    """Of a ridge regression."""

    @property
    def own(self) -> bool:
        """Whether each column has a matrix to itself."""
        return self.kernel.ndim == 3

    @property
    def lookback(self) -> int:
        """L, steps read."""
        return int(self.kernel.shape[-2])

    def __call__(self, windows: np.ndarray) -> np.ndarray:
        """Standardised windows (N, T, K), T at least L, without NaN, to forecasts (N, H, K)."""
        last = windows[:, -1:]
        by_column = np.moveaxis(windows[:, -self.lookback :] - last, 2, 0)
        return np.asarray(np.moveaxis(self.beyond_last(by_column), 0, 2) + last)

    def beyond_last(self, windows: np.ndarray) -> np.ndarray:
        """Forecasts (K, N, H) of windows (K, N, T), both less the last value of the window."""
        return np.asarray(windows[..., -self.lookback :] @ self.kernel)


def weighted_sum(forecasters: list[LinearForecaster], weights: np.ndarray) -> np.ndarray:
    """The kernel of a weighted sum, as long as the longest, of its weights' sum as a level.

    Returns:
        (L, H), or (K, L, H) where one of them has a matrix for each column.
    """
    lookback = max(each.lookback for each in forecasters)
    total: np.ndarray | float = 0.0
    for each, weight in zip(forecasters, weights, strict=True):
        missing = lookback - each.lookback
        before = [(0, 0)] * (each.kernel.ndim - 2) + [(missing, 0), (0, 0)]
        total = total + weight * np.pad(each.kernel, before)
    return np.asarray(total)


def repeat_last(horizon: int) -> LinearForecaster:
    """The last value again and again."""
    return LinearForecaster("last value", "", np.zeros((1, horizon)))


def repeat_season(season: int, horizon: int) -> LinearForecaster:
    """The last season again and again."""
    kernel = np.zeros((season, horizon))
    steps = np.arange(horizon)
    kernel[steps % season, steps] = 1.0
    return LinearForecaster("seasonal naive", f"season {season}", kernel)
