"""Fitting what known inputs add to a series, and choosing how on validation rows."""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from training.forecasting.baselines.ridge import filled, fit_ridge
from training.forecasting.known.effect import KnownEffect, feature_count, features, knots_of

_PENALTIES = (1e-5, 1e-3, 1e-2, 0.1)
"""Of the squared coefficients of features of the deviation 1, as a share of the rows."""
_MOST_PAIRED = 300
"""Features beyond which no products of inputs are tried."""
CLEARLY = 0.99
"""Share of the squared error that known inputs must leave at most, to be used."""
_LONGEST, _MOST_ROWS = 96, 20_000


def fit_effect(
    targets: np.ndarray,
    inputs: np.ndarray,
    columns: Sequence[int],
    train: int,
    season: int,
    horizon: int,
) -> tuple[KnownEffect | None, tuple[float, float]]:
    """What known inputs add to the targets; None where forecasts are no better with it.

    Coefficients are those with the least squared error on differences over a season, or over one
    step, of the training rows, so that neither levels nor seasons are taken for effects. Penalty
    and products are those that do best on such differences of the validation rows. Between the two
    kinds of differences, and no effect, decides how well a ridge regression forecasts the rest.

    Args:
        targets: (rows, K) standardised, of training and validation part; NaN where missing.
        inputs: (rows, F) standardised likewise.
        columns: The F column numbers of the inputs.
        train: Training rows.
        season: Steps.
        horizon: Steps forecast.

    Returns:
        The effect, and the squared errors on validation windows of that ridge regression: without
        known inputs and with them.
    """
    known = np.column_stack([filled(column) for column in inputs.T])
    without = best = _rest_error(targets, train, season, horizon)
    chosen: KnownEffect | None = None
    for lag in sorted({season, 1}, reverse=True):
        if train <= 2 * lag:
            continue
        effect = _best_of_lag(targets, known, columns, train, lag)
        if effect is None:
            continue
        error = _rest_error(targets - effect(known).numpy(), train, season, horizon)
        if error < (CLEARLY * without if chosen is None else best):
            chosen, best = effect, error
    return chosen, (without, best)


def _best_of_lag(
    targets: np.ndarray, known: np.ndarray, columns: Sequence[int], train: int, lag: int
) -> KnownEffect | None:
    knots = [knots_of(column[:train]) for column in known.T]
    best, least = None, np.inf
    for pairs in (False, True):
        if pairs and not 1 < feature_count(knots, True) - feature_count(knots, False) <= (
            _MOST_PAIRED
        ):
            continue
        made = features(tf.constant(known), knots, pairs).numpy()
        differences, truth = made[lag:] - made[:-lag], targets[lag:] - targets[:-lag]
        first = train - lag  # of the validation rows among the differences
        solved = _solver(differences[:first], truth[:first])
        for penalty in _PENALTIES:
            coefficients = solved(penalty)
            rest = truth[first:] - differences[first:] @ coefficients
            error = float(np.nanmean(rest**2)) if np.isfinite(rest).any() else np.inf
            if error < least:
                best, least = KnownEffect(columns, knots, coefficients, pairs), error
    return best


def _solver(made: np.ndarray, truth: np.ndarray) -> Callable[[float], np.ndarray]:
    """Regressions (P, K) by their penalty; rows without a truth count for no target."""
    seen = np.isfinite(truth)
    alike = bool((seen == seen[:, :1]).all())
    parts = []
    for k in range(1 if alike else truth.shape[1]):
        rows, whose = seen[:, k], slice(None) if alike else slice(k, k + 1)
        x, y = made[rows], truth[rows][:, whose]
        parts.append((x.T @ x, x.T @ y, max(1, len(x))))

    def solve(penalty: float) -> np.ndarray:
        found = []
        for gram, moments, count in parts:
            spread = np.diag(gram) / count
            ridge = penalty * count * np.diag(spread + 1e-6)
            found.append(np.linalg.solve(gram + ridge, moments))
        return np.concatenate(found, axis=1)

    return solve


def _rest_error(rest: np.ndarray, train: int, season: int, horizon: int) -> float:
    """The squared error of a ridge regression's forecasts of it, over validation windows."""
    lookback = max(1, min(max(2 * season, 8), _LONGEST, (train - horizon) // 2))
    K = rest.shape[1]
    ridge = fit_ridge(rest[max(0, train - _MOST_ROWS) : train], lookback, horizon, tuple(range(K)))
    whole = np.column_stack([filled(column) for column in rest.T])
    origins = np.arange(train, len(rest) - horizon + 1)
    origins = origins[:: max(1, len(origins) // 500)]
    forecasts = ridge(whole[origins[:, np.newaxis] + np.arange(-lookback, 0)])
    errors = forecasts - rest[origins[:, np.newaxis] + np.arange(horizon)]
    return float(np.nanmean(errors**2)) if np.isfinite(errors).any() else np.inf
