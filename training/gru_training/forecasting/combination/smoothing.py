"""Exponential smoothing of a window, as a matrix.

Level, trend and season, all additive (Hyndman et al. 2008, "Forecasting with Exponential
Smoothing: The State Space Approach", section 2.3), begun anew in each window: the states, and so
the forecasts, are then linear in the window. The squared error over all training windows follows
from their Gram matrix, and hundreds of parameters are tried at the cost of a few.
"""

import itertools
from typing import NamedTuple

import numpy as np

from gru_training.forecasting.combination.linear import LinearForecaster

NAME = "exponential smoothing"
_ALPHAS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8, 1.0)
_BETAS = (0.0, 0.01, 0.05, 0.2)
_GAMMAS = (0.0, 0.05, 0.15, 0.35, 0.7)
_DAMPINGS = (0.8, 0.9, 0.97, 1.0)
_STEPS, _CANDIDATES = 24, 40
"""Steps ahead by which all parameters are compared, and how many of these are then by all steps."""
_WEIGHTS_AT_ONCE = 3_000_000
"""Of the components of several parameters."""


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
    return _components(parameters, season, lookback, np.arange(1, horizon + 1)).kernels()


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
    best = _best(grid, season, read, both)
    kernels = smoothing_kernels(best, season, lookback, horizon)
    what = f"season {season}" if season > 1 else "no season"
    if own:
        return LinearForecaster(NAME, f"{what}, for each column by itself", kernels, season)
    alpha, beta, phi, gamma = best[0]
    told = f"{what}, α {alpha:g}, β {beta:g}, φ {phi:g}"
    told += f", γ {gamma:g}" if season > 1 else ""
    return LinearForecaster(NAME, told, kernels[0], season)


def _best(
    grid: list[SmoothingParameters], season: int, read: np.ndarray, both: np.ndarray
) -> list[SmoothingParameters]:
    """Those of the least squared error, for each of K columns.

    Args:
        grid: To choose from.
        season: Steps; 1: none.
        read: (K, L, L), the Gram matrices of the values read.
        both: (K, L, H), of these and the values ahead.
    """
    horizon = both.shape[2]
    every = np.arange(1, horizon + 1)
    if horizon <= _STEPS:
        return [grid[place] for place in _errors(grid, season, read, both, every).argmin(axis=0)]
    some = np.linspace(1, horizon, _STEPS).astype(int)
    order = _errors(grid, season, read, both, some).argsort(axis=0, kind="stable")
    best = []
    for column, places in enumerate(order[:_CANDIDATES].T):
        candidates, of = [grid[place] for place in sorted(places)], slice(column, column + 1)
        errors = _errors(candidates, season, read[of], both[of], every)
        best.append(candidates[errors.argmin()])
    return best


def _errors(
    parameters: list[SmoothingParameters],
    season: int,
    read: np.ndarray,
    both: np.ndarray,
    steps: np.ndarray,
) -> np.ndarray:
    """(P, K) as `_Components.errors`, of P parameters, K columns and these steps ahead."""
    lookback = read.shape[1]
    at_once = max(1, _WEIGHTS_AT_ONCE // (lookback * (2 + min(season, len(steps)))))
    errors = np.empty((len(parameters), len(read)))
    for start in range(0, len(parameters), at_once):
        rows = slice(start, start + at_once)
        components = _components(parameters[rows], season, lookback, steps)
        for column, (of_read, of_both) in enumerate(zip(read, both, strict=True)):
            errors[rows, column] = components.errors(of_read, of_both[:, steps - 1])
    return errors


class _Components(NamedTuple):
    """What the forecasts of P smoothings are made of, as weights of a window's L values."""

    level: np.ndarray
    """(P, L)"""
    trend: np.ndarray
    """(P, L)"""
    seasonal: np.ndarray
    """(P, L, S): a season's, or fewer where there are not so many steps ahead."""
    damping: np.ndarray
    """(P, H): how often the trend is added until each of the H steps ahead."""
    place: np.ndarray
    """(H,): which seasonal one belongs to each step ahead."""

    def kernels(self) -> np.ndarray:
        """The weights (P, L, H) of all steps ahead."""
        growth = self.trend[..., np.newaxis] * self.damping[:, np.newaxis]
        return np.asarray(self.level[..., np.newaxis] + growth + self.seasonal[..., self.place])

    def errors(self, read: np.ndarray, both: np.ndarray) -> np.ndarray:
        """(P,) squared errors over all windows, but for what is the same for all parameters.

        Beyond a season all steps ahead are made of the same components, so that 2 + S columns are
        multiplied by the Gram matrix instead of H.

        Args:
            read: (L, L), the Gram matrix of the values read.
            both: (L, H), of these and the values ahead.
        """
        horizon = both.shape[1]
        at = np.eye(self.seasonal.shape[2])[self.place]  # (H, S)
        steps, growth = at.sum(axis=0), self.damping @ at  # (S,), (P, S)
        turned = read @ np.concatenate(
            [self.level[..., np.newaxis], self.trend[..., np.newaxis], self.seasonal], axis=2
        )
        by_level = np.einsum("plc,pl->pc", turned, self.level)
        by_trend = np.einsum("plc,pl->pc", turned, self.trend)
        by_itself = np.einsum("pls,pls->ps", turned[..., 2:], self.seasonal)
        squares = (
            horizon * by_level[:, 0]
            + (self.damping**2).sum(axis=1) * by_trend[:, 1]
            + by_itself @ steps
            + 2 * self.damping.sum(axis=1) * by_level[:, 1]
            + 2 * by_level[:, 2:] @ steps
            + 2 * (growth * by_trend[:, 2:]).sum(axis=1)
        )
        products = (
            self.level @ both.sum(axis=1)
            + (self.damping * (self.trend @ both)).sum(axis=1)
            + np.einsum("pls,ls->p", self.seasonal, both @ at)
        )
        return np.asarray(squares - 2 * products)


def _components(
    parameters: list[SmoothingParameters], season: int, lookback: int, steps: np.ndarray
) -> _Components:
    """As of `smoothing_kernels`, for some steps ahead (H,), from 1.

    The recursion is the same in every step. So what a value does to the states at the end depends
    on its distance from there alone, and all follows from the responses to one value and to the
    states before the window.
    """
    responses = _responses(parameters, season, lookback)
    first = np.concatenate(_first_states(season, lookback))  # (2 + season, L)
    first = first[:, : 2 * season]  # the others are zero
    distance = lookback - 1 - np.arange(lookback)

    def component(state: int, steps_before_end: np.ndarray) -> np.ndarray:
        """(P, L, D): a state, D times."""
        to_value, to_level, to_trend, to_season = responses[state]  # (P, L)
        since = distance[:, np.newaxis] - steps_before_end
        end = lookback - 1 - steps_before_end
        weights = np.where(since >= 0, to_value[:, np.maximum(since, 0)], 0.0)
        to_first = np.concatenate(
            [
                to_level[:, np.newaxis, end],
                to_trend[:, np.newaxis, end],
                to_season[:, end - np.arange(season)[:, np.newaxis]],
            ],
            axis=1,
        )
        weights[:, : 2 * season] += first.T @ to_first
        return weights

    phi = np.array([each.phi for each in parameters])[:, np.newaxis]
    damping = np.cumsum(phi ** np.arange(1, steps.max() + 1), axis=1)[:, steps - 1]
    places, place = np.unique((steps - 1) % season, return_inverse=True)
    now = np.zeros(1, int)
    return _Components(
        component(0, now)[..., 0],
        component(1, now)[..., 0],
        component(2, season - 1 - places),  # last updated a season before they count
        damping,
        place,
    )


def _responses(parameters: list[SmoothingParameters], season: int, steps: int) -> np.ndarray:
    """(3, 4, P, steps): level, trend and the step's seasonal state, after each step.

    They respond to a value of 1 in the first step, or to a state of 1 before it: the level, the
    trend, the seasonal state of the first step. All else is zero.
    """
    alpha, beta, phi, gamma = np.array(parameters).T
    value, level, trend, seasonal = np.eye(4)[..., np.newaxis]  # (4, 1)
    states = np.zeros((3, steps, 4, len(parameters)))
    for t in range(steps):
        if t > 0:
            value = seasonal = np.zeros((4, 1))
        if t >= season:
            seasonal = states[2, t - season]
        expected = level + phi * trend
        error = value - expected - seasonal
        level = expected + alpha * error
        trend = phi * trend + beta * error
        states[:, t] = level, trend, seasonal + gamma * error
    return np.moveaxis(states, 1, -1)


def _first_states(season: int, lookback: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Level and trend (1, L) and seasonal states (season, L), as weights of the window's values.

    They are those of the step before the window.
    """
    values = np.eye(lookback)
    if season == 1:
        return values[:1], np.zeros((1, lookback)), np.zeros((1, lookback))
    first = values[:season].mean(axis=0, keepdims=True)
    second = values[season : 2 * season].mean(axis=0, keepdims=True)
    trend = (second - first) / season
    middle = (season - 1) / 2
    places = np.arange(season)[:, np.newaxis] - middle
    seasonal = values[:season] - first - trend * places
    return first - trend * (middle + 1), trend, seasonal
