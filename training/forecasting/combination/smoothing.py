"""Exponential smoothing of a window, as a matrix.

Level, trend and season, all additive (Hyndman et al. 2008, "Forecasting with Exponential
Smoothing: The State Space Approach", section 2.3), begun anew in each window: the states, and so
the forecasts, are then linear in the window. The squared error over all training windows follows
from their Gram matrix, and hundreds of parameters are tried at the cost of a few.
"""

import itertools
from typing import NamedTuple

import numpy as np

from training.forecasting.combination.linear import LinearForecaster

NAME = "exponential smoothing"
_ALPHAS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8, 1.0)
_BETAS = (0.0, 0.01, 0.05, 0.2)
_GAMMAS = (0.0, 0.05, 0.15, 0.35, 0.7)
_DAMPINGS = (0.8, 0.9, 0.97, 1.0)
_AT_ONCE = 32
"""Parameters whose states are followed together."""


class SmoothingParameters(NamedTuple):
    """Of one window's smoothing."""

    alpha: float
    """Of the level."""
    beta: float
    """Of the trend."""
    phi: float
    """What is left of the trend after a step; 1 keeps it."""
    gamma: float
    """Of the season."""


def parameter_grid(season: int) -> list[SmoothingParameters]:
    """What is tried; without a season (1) there is no gamma."""
    gammas = _GAMMAS if season > 1 else (0.0,)
    return [
        SmoothingParameters(*values)
        for values in itertools.product(_ALPHAS, _BETAS, _DAMPINGS, gammas)
        if values[1] <= values[0]
    ]


def smoothing_kernels(
    parameters: list[SmoothingParameters], season: int, lookback: int, horizon: int
) -> np.ndarray:
    """The matrices (P, L, H) of P parameters.

    Level and trend begin with the means of the first two seasons, the seasonal states with what the
    first one leaves over.

    Args:
        parameters: P of them.
        season: Steps; 1: none.
        lookback: L, at least two seasons, or 2.
        horizon: H.
    """
    alpha, beta, phi, gamma = (
        np.array(values)[:, np.newaxis] for values in zip(*parameters, strict=True)
    )
    level, trend, seasonal = _first_states(season, lookback)
    shape = len(parameters), lookback
    level, trend = np.tile(level, (shape[0], 1)), np.tile(trend, (shape[0], 1))
    seasonal = np.tile(seasonal, (shape[0], 1, 1))  # (P, season, L)
    for t in range(lookback):
        place = t % season
        expected = level + phi * trend
        error = -expected - seasonal[:, place]
        error[:, t] += 1.0
        level = expected + alpha * error
        trend = phi * trend + beta * error
        if season > 1:
            seasonal[:, place] += gamma * error
    steps = np.arange(1, horizon + 1)
    damping = np.cumsum(phi**steps, axis=1)  # (P, H)
    ahead = seasonal[:, (lookback + steps - 1) % season]  # (P, H, L)
    weights = level[:, np.newaxis] + damping[..., np.newaxis] * trend[:, np.newaxis] + ahead
    return np.swapaxes(weights, 1, 2)


def fit_smoothing(
    grams: np.ndarray, season: int, lookback: int, horizon: int, own: bool
) -> LinearForecaster:
    """The smoothing that is best on the windows whose Gram matrices these are.

    Args:
        grams: (K, L + H, L + H), sums of w·wᵀ over windows w with the last of the L values
            subtracted.
        season: Steps; 1: none.
        lookback: L.
        horizon: H.
        own: Choose for each column by itself.
    """
    grid = parameter_grid(season)
    read, both = grams[:, :lookback, :lookback], grams[:, :lookback, lookback:]
    if not own:
        read, both = read.sum(0, keepdims=True), both.sum(0, keepdims=True)
    errors = np.empty((len(grid), len(read)))
    for start in range(0, len(grid), _AT_ONCE):
        kernels = smoothing_kernels(grid[start : start + _AT_ONCE], season, lookback, horizon)
        for column, (of_read, of_both) in enumerate(zip(read, both, strict=True)):
            squares = np.einsum("plh,plh->p", kernels, of_read @ kernels)
            errors[start : start + len(kernels), column] = squares - 2 * np.einsum(
                "plh,lh->p", kernels, of_both
            )
    best = [grid[place] for place in errors.argmin(axis=0)]
    kernels = smoothing_kernels(best, season, lookback, horizon)
    what = f"season {season}" if season > 1 else "no season"
    if own:
        return LinearForecaster(NAME, f"{what}, for each column by itself", kernels, season)
    alpha, beta, phi, gamma = best[0]
    told = f"{what}, α {alpha:g}, β {beta:g}, φ {phi:g}"
    told += f", γ {gamma:g}" if season > 1 else ""
    return LinearForecaster(NAME, told, kernels[0], season)


def _first_states(season: int, lookback: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Level and trend (L,) and seasonal states (season, L), as weights of the window's values.

    They are those of the step before the window.
    """
    values = np.eye(lookback)
    first, second = values[:season].mean(axis=0), values[season : 2 * season].mean(axis=0)
    if season == 1:
        return values[0], np.zeros(lookback), np.zeros((1, lookback))
    trend = (second - first) / season
    middle = (season - 1) / 2
    places = np.arange(season)[:, np.newaxis] - middle
    seasonal = values[:season] - first - trend * places
    return first - trend * (middle + 1), trend, seasonal
