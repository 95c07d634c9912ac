"""ETS and the theta method, as matrices from a window to its forecast.

ETS is exponential smoothing with a level, a trend that may be damped or absent, and a season that
may be absent, all additive (Hyndman et al. 2008, "Forecasting with Exponential Smoothing: The State
Space Approach", section 2.3). Given its parameters, its errors are linear in the values and in the
states before the first of them. So the states that leave the least squared error follow by least
squares, and with them the whole forecast is linear in the window. The parameters are those of a
grid with the least AICc (Hurvich and Tsai 1989), for each column by itself. Of several steps ahead
it takes the mean of the logarithms of the squared errors, which lets no step outweigh the others.

The theta method (Assimakopoulos and Nikolopoulos 2000; Hyndman and Billah 2003, "Unmasking the
Theta method") smooths what is left without the season, with half of the slope of the line as drift.
"""

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

_ALPHAS = (0.02, 0.06, 0.12, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 0.999)
_BETA_SHARES = (0.0, 0.02, 0.1, 0.3, 0.7)
"""Shares of alpha."""
_GAMMA_SHARES = (0.0, 0.05, 0.15, 0.3, 0.6, 0.95)
"""Shares of what alpha leaves."""
_DAMPINGS = (0.8, 0.9, 0.98, 1.0)
_LONGEST_SEASON = 60
"""Steps of a season whose states are smoothed; a longer one has a theta method alone."""
_MOST_ROWS = 600
"""Rows, the last ones, that parameters are chosen by; or so many as three long seasons have."""
_NUMBERS_AT_ONCE = 2_000_000
_PENALTY = 1e-4
"""Penalty of first states, beside squared standardised errors: level and season are told apart."""


class Smoothing(NamedTuple):
    """Parameters of ETS."""

    season: int
    """Steps; 1: none."""
    alpha: float
    """Smoothing parameter of the level."""
    beta: float = 0.0
    """Smoothing parameter of the trend."""
    phi: float = 0.0
    """Share of the trend that is left after a step; 1 keeps it, 0: there is no trend."""
    gamma: float = 0.0
    """Smoothing parameter of the season."""

    @property
    def estimated(self) -> int:
        """Number of what is estimated: parameters, first states and the variance."""
        trend = 2 * (self.phi > 0) + (0 < self.phi < 1)
        return 3 + trend + (self.season if self.season > 1 else 0)

    def kernel(self, lookback: int, horizon: int) -> np.ndarray:
        """Return the matrix (L, H) from a window to its forecast."""
        states = _follow(np.eye(lookback), [self])
        steps = range(1, horizon + 1)
        ahead = [states.ahead(np.array([lookback]), step)[0, 0] for step in steps]
        return np.stack(ahead, axis=1)


class Theta(NamedTuple):
    """Parameters of the theta method."""

    season: int
    """Steps; 1: none."""
    alpha: float
    """Smoothing parameter of the level."""

    @property
    def estimated(self) -> int:
        """Number of what is estimated."""
        return 4 + (self.season if self.season > 1 else 0)

    def kernel(self, lookback: int, horizon: int) -> np.ndarray:
        """Return the matrix (L, H) from a window to its forecast."""
        adjusted, seasonal, (slope, height) = _without_season(self.season, lookback, horizon)
        left = (1 - self.alpha) ** np.arange(lookback, -1, -1)
        level = self.alpha * left[1:] @ adjusted + left[0] * (height + slope)
        ahead = np.arange(horizon)[:, np.newaxis] + (1 - left[0]) / self.alpha
        return np.asarray((level + slope / 2 * ahead + seasonal).T)


def enough_for_season(steps: int, season: int) -> bool:
    """Tell whether some steps suffice to tell a season from the level: a third of it repeats."""
    return season == 1 or 3 * steps >= 4 * season


def smoothing_grid(season: int) -> list[Smoothing]:
    """Return the parameters that are tried, without a season where it is 1."""
    trends = [(0.0, 0.0), *itertools.product(_BETA_SHARES, _DAMPINGS)]
    gammas = _GAMMA_SHARES if season > 1 else (0.0,)
    return [
        Smoothing(season, alpha, share * alpha, phi, gamma * (1 - alpha))
        for alpha, (share, phi), gamma in itertools.product(_ALPHAS, trends, gammas)
    ]


class _States(NamedTuple):
    """States of columns (T, K) for P parameters, before the first value and after each."""

    level: np.ndarray
    """(T + 1, P, K)"""
    trend: np.ndarray
    """(T + 1, P, K)"""
    seasonal: np.ndarray
    """(S + T, P, K): of the S steps before the first value, then of each step."""
    phi: np.ndarray
    """(P, 1)"""

    def ahead(self, known: np.ndarray, step: int) -> np.ndarray:
        """Forecasts (N, P, K) of a step ahead, from the first `known` (N,) values."""
        growth = (self.phi ** np.arange(1, step + 1)).sum(axis=1, keepdims=True)  # (P, 1)
        season = len(self.seasonal) - len(self.level) + 1
        place = known + (step - 1) % season  # the same step of the last season that is known
        return np.asarray(self.level[known] + growth * self.trend[known] + self.seasonal[place])


def _follow(values: np.ndarray, parameters: Sequence[Smoothing]) -> _States:
    """Smooth columns (T, K) by parameters of one season, with the best states before the first."""
    season, (steps, columns) = parameters[0].season, values.shape
    _, alpha, beta, phi, gamma = np.array(parameters).T[..., np.newaxis]  # (P, 1)
    unknown = 2 + (season if season > 1 else 0)
    # As if further columns were zero, and began with one of the states at 1.
    read = np.pad(values, [(0, 0), (0, unknown)])
    shape = len(parameters), columns + unknown
    level, trend = np.zeros((steps + 1, *shape)), np.zeros((steps + 1, *shape))
    seasonal, errors = np.zeros((season + steps, *shape)), np.empty((steps, *shape))
    level[0, :, columns] = trend[0, :, columns + 1] = 1.0
    for step in range(unknown - 2):
        seasonal[step, :, columns + 2 + step] = 1.0
    for step in range(steps):
        expected = level[step] + phi * trend[step]
        error = errors[step] = read[step] - expected - seasonal[step]
        level[step + 1] = expected + alpha * error
        trend[step + 1] = phi * trend[step] + beta * error
        seasonal[season + step] = seasonal[step] + gamma * error
    errors = np.moveaxis(errors, 0, 1)  # (P, T, K + states)
    of_values, of_states = errors[..., :columns], errors[..., columns:]
    turned = np.swapaxes(of_states, 1, 2)
    first = -np.linalg.solve(turned @ of_states + _PENALTY * np.eye(unknown), turned @ of_values)

    def whole(each: np.ndarray) -> np.ndarray:
        added = np.moveaxis(each[..., columns:], 1, 0) @ first  # (P, T, K)
        return np.asarray(each[..., :columns] + np.moveaxis(added, 0, 1))

    return _States(whole(level), whole(trend), whole(seasonal), phi)


@lru_cache(maxsize=8)
def _without_season(
    season: int, lookback: int, horizon: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Line and season of a window by least squares, all as matrices that its values multiply.

    Returns:
        What is left without the season (L, L), the season of the steps ahead (H, L), and slope and
        height of the line at the step before the first (2, L).
    """
    steps = np.arange(lookback + horizon)
    design = np.zeros((lookback + horizon, 1 + season))
    design[:, 0] = steps
    design[steps, 1 + steps % season] = 1.0
    fitted = np.linalg.pinv(design[:lookback])  # (1 + season, L)
    height = fitted[1:].mean(axis=0)
    seasonal = design[:, 1:] @ (fitted[1:] - height)
    line = np.stack([fitted[0], height - fitted[0]])
    return np.eye(lookback) - seasonal[:lookback], seasonal[lookback:], line


def choose_smoothing(
    columns: Sequence[np.ndarray], season: int, ahead: Sequence[int] = (1,), shared: bool = True
) -> list[Smoothing]:
    """Choose parameters of ETS for each of K columns.

    Args:
        columns: Values of each column, of any length and without NaN.
        season: Steps; 1: none. One that is very long is not smoothed.
        ahead: Steps ahead whose errors count, as far as half of a column reaches.
        shared: Whether the mean over all columns counts as much as the column itself.
    """
    seasons = sorted({1, season if season <= _LONGEST_SEASON else 1})
    grids = [smoothing_grid(each) for each in seasons]

    def sizes(values: np.ndarray) -> np.ndarray:
        steps = [step for step in ahead if 2 * step <= len(values)] or [1]
        return np.concatenate([_smoothing_sizes(values, grid, steps) for grid in grids])

    choices = [each for grid in grids for each in grid]
    places = _best(columns, season, [each.estimated for each in choices], sizes, shared)
    return [choices[place] for place in places]


def choose_theta(columns: Sequence[np.ndarray], season: int) -> list[Theta]:
    """Choose parameters of the theta method by one step ahead, as `choose_smoothing` does."""
    seasons = sorted({1, season})

    def sizes(values: np.ndarray) -> np.ndarray:
        return np.concatenate([_theta_sizes(values, each) for each in seasons])

    choices = [Theta(each, alpha) for each in seasons for alpha in _ALPHAS]
    places = _best(columns, season, [each.estimated for each in choices], sizes, shared=True)
    return [choices[place] for place in places]


def _smoothing_sizes(
    values: np.ndarray, grid: Sequence[Smoothing], ahead: Sequence[int]
) -> np.ndarray:
    """Compute sizes (P, K) as `_best` wants them, for columns (T, K) and some steps ahead."""
    season, count = grid[0].season, len(values)
    if not enough_for_season(count, season):
        return np.full((len(grid), values.shape[1]), np.inf)
    at_once = max(1, _NUMBERS_AT_ONCE // (count * (values.shape[1] + 2 + season)))
    found = []
    for start in range(0, len(grid), at_once):
        states = _follow(values, grid[start : start + at_once])
        total: np.ndarray | float = 0.0
        for step in ahead:
            known = np.arange(count - step + 1)
            errors = values[known + step - 1, np.newaxis] - states.ahead(known, step)
            total = total + _log_mean_square(errors, values)
        found.append(np.asarray(total) / len(ahead))
    return np.concatenate(found)


def _theta_sizes(values: np.ndarray, season: int) -> np.ndarray:
    """Compute sizes (A, K) as `_best` wants them, for columns (T, K), of each alpha."""
    alphas = np.array(_ALPHAS)[:, np.newaxis]
    shape = len(alphas), values.shape[1]
    if not enough_for_season(len(values), season):
        return np.full(shape, np.inf)
    adjust, _, line = _without_season(season, len(values), 0)
    slope, height = line @ values
    level, errors = np.broadcast_to(height + slope, shape), np.empty((len(values), *shape))
    for number, row in enumerate(adjust @ values):
        expected = level + slope / 2 * (number > 0)
        errors[number] = row - expected
        level = expected + alphas * errors[number]
    return _log_mean_square(errors, values)


def _log_mean_square(errors: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(P, K) of errors (N, P, K) of columns (T, K), which a column without any cannot make -∞."""
    floor = 1e-9 * np.maximum(values.var(axis=0), 1e-30)
    return np.asarray(np.log((errors**2).mean(axis=0) + floor))


def _best(
    columns: Sequence[np.ndarray],
    season: int,
    estimated: Sequence[int],
    sizes: Callable[[np.ndarray], np.ndarray],
    shared: bool,
) -> list[int]:
    """Find the place of the least AICc of each column.

    Args:
        columns: Values of each of K columns.
        season: Steps.
        estimated: P numbers of what is estimated.
        sizes: Function of columns (T, K') that gives the logarithm (P, K') of their squared errors.
        shared: Whether the mean over all columns is added to the AICc of each.
    """
    lengths = np.array([min(len(each), max(_MOST_ROWS, 3 * season)) for each in columns])
    counts = np.array(estimated)
    criterion = np.empty((len(counts), len(columns)))
    for length in np.unique(lengths).tolist():
        places = np.flatnonzero(lengths == length).tolist()
        values = np.stack([columns[place][-length:] for place in places], axis=1)
        penalty = 2 * counts + 2 * counts * (counts + 1) / np.maximum(length - counts - 1, 0.5)
        criterion[:, places] = length * sizes(values - values[:1]) + penalty[:, np.newaxis]
    if shared:
        criterion += criterion.mean(axis=1, keepdims=True)
    return [int(place) for place in criterion.argmin(axis=0)]
