"""Fitting what known inputs add to a series, and choosing how on validation rows."""

from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from gru_training.forecasting.baselines.ridge import filled, fit_ridge
from gru_training.forecasting.known.effect import KnownEffect, feature_count, knots_of
from gru_training.forecasting.known.inputs import without_gaps
from gru_training.forecasting.known.moments import Moments, difference_moments

_PENALTIES = (1e-5, 1e-3, 1e-2, 0.1)
"""Of the squared coefficients of features of the deviation 1, as a share of the rows."""
_PANEL_ROWS = (10.0, 30.0, 100.0, 300.0, 1000.0)
"""Rows of the whole panel that count beside those of a series, in coefficients of its own."""
_MOST_BY_TRAITS = 2000
"""Coefficients that depend on what is known of series."""
_MOST_PAIRED = 300
"""Features beyond which no products of inputs are tried."""
_MOST_MOMENTS = 20_000_000
"""Numbers in the Gram matrices of all series, beyond which no products are tried either."""
CLEARLY = 0.99
"""Share of the squared error that known inputs must leave at most, to be used."""
_LONGEST, _MOST_ROWS, _MOST_SERIES = 96, 20_000, 200
_MOST_SEEN = 200_000
"""Values that decide where functions bend."""


def fit_effect(
    targets: np.ndarray,
    inputs: np.ndarray,
    columns: Sequence[int],
    train: int,
    season: int,
    horizon: int,
    traits: np.ndarray | None = None,
) -> tuple[KnownEffect | None, tuple[float, float]]:
    """What known inputs add to the targets; None where forecasts are no better with it.

    Coefficients are those with the least squared error on differences over a season, or over one
    step, of the training rows, so that neither levels nor seasons are taken for effects. Penalty
    and products are those that do best on such differences of the validation rows. Between the two
    kinds of differences, and no effect, decides how well a ridge regression forecasts the rest.

    In a panel, where each target has inputs of its own, all have the same coefficients, or they
    are linear functions of what is known of each series, or each has its own that are drawn
    towards these, the more the fewer rows it has; whichever does better on the validation rows.

    Args:
        targets: (rows, K) standardised, of training and validation part; NaN where missing.
        inputs: (rows, F) standardised likewise; of a panel (rows, K, F).
        columns: The column numbers of the inputs, F or K·F.
        train: Training rows.
        season: Steps.
        horizon: Steps forecast.
        traits: (K, S), of a panel: what is known of each series, about 0.

    Returns:
        The effect, and the squared errors on validation windows of that ridge regression: without
        known inputs and with them.
    """
    known = without_gaps(inputs.reshape(len(inputs), -1)).reshape(inputs.shape)
    shown = np.arange(targets.shape[1])
    if inputs.ndim == 3:  # of very many series some are enough to decide on
        shown = np.unique(np.linspace(0, shown[-1], _MOST_SERIES).round().astype(int))
    without = best = _rest_error(targets[:, shown], train, season, horizon)
    chosen: KnownEffect | None = None
    for lag in sorted({season, 1}, reverse=True):
        if train <= 2 * lag:
            continue
        effect = _best_of_lag(targets, known, columns, train, lag, traits)
        if effect is None:
            continue
        rest = targets[:, shown] - _effect_on(effect, known, shown)
        error = _rest_error(rest, train, season, horizon)
        if error < (CLEARLY * without if chosen is None else best):
            chosen, best = effect, error
    return chosen, (without, best)


def _effect_on(effect: KnownEffect, known: np.ndarray, shown: np.ndarray) -> np.ndarray:
    if effect.by_series:
        effect, known = effect.of_targets(shown.tolist()), known[:, shown]
    return np.asarray(effect(tf.constant(known.reshape(len(known), -1))))


def _best_of_lag(
    targets: np.ndarray,
    known: np.ndarray,
    columns: Sequence[int],
    train: int,
    lag: int,
    traits: np.ndarray | None,
) -> KnownEffect | None:
    own = known.ndim == 3
    knots = [knots_of(_thinned(each[:train])) for each in np.moveaxis(known, -1, 0)]
    best, least = None, np.inf
    for pairs in (False, True):
        if pairs and not _may_pair(knots, targets.shape[1] if own else 1):
            continue
        parts = targets, known, knots, pairs, lag
        seen = difference_moments(*parts, lag, train)
        ahead = difference_moments(*parts, train, len(targets))
        for whose, coefficients in _of_panel(seen, ahead, traits) if own else _of_each(seen):
            error = ahead.squared_error(coefficients)
            if error < least:
                best, least = KnownEffect(columns, knots, coefficients, pairs, whose), error
    return best


def _may_pair(knots: Sequence[Sequence[float]], series: int) -> bool:
    count = feature_count(knots, True)
    added = count - feature_count(knots, False)
    return 1 < added <= _MOST_PAIRED and series * count**2 <= _MOST_MOMENTS


def _thinned(values: np.ndarray) -> np.ndarray:
    flat = values.ravel()
    return flat[:: max(1, len(flat) // _MOST_SEEN)]


def _of_each(seen: Moments) -> Iterator[tuple[str, np.ndarray]]:
    """Regressions (P, K) of targets that read the same inputs, one for each penalty."""
    for penalty in _PENALTIES:
        rows = np.maximum(seen.count, 1)[: len(seen.gram), np.newaxis]
        solved = np.linalg.solve(_penalised(seen.gram, rows, penalty), _columns(seen))
        yield "", solved[0] if len(seen.gram) == 1 else solved[..., 0].T


def _columns(seen: Moments) -> np.ndarray:
    """Right-hand sides, (1, P, K) for one Gram matrix or (K, P, 1)."""
    return seen.cross.T[np.newaxis] if len(seen.gram) == 1 else seen.cross[..., np.newaxis]


def _of_panel(
    seen: Moments, ahead: Moments, traits: np.ndarray | None
) -> Iterator[tuple[str, np.ndarray]]:
    """Regressions (P, K): of all series, by what is known of them, and of each drawn to these."""
    series, rows = len(seen.cross), max(1, int(seen.count.sum()))
    tried = [("one for all series", each) for each in _by_traits(seen, np.ones((series, 1)))]
    if traits is not None and seen.cross.shape[1] * (1 + traits.shape[1]) <= _MOST_BY_TRAITS:
        known = np.column_stack([np.ones(series), traits])
        tried += [("by static covariates", each) for each in _by_traits(seen, known)]
    yield from tried
    if series < 2:
        return
    whose, usual = min(tried, key=lambda each: ahead.squared_error(each[1]))
    missed = (seen.cross - (seen.gram @ usual.T[..., np.newaxis])[..., 0])[..., np.newaxis]
    pooled = _penalised(seen.gram.sum(axis=0), rows, _PENALTIES[0]) / rows
    for count in _PANEL_ROWS:
        own = usual + np.linalg.solve(seen.gram + count * pooled, missed)[..., 0].T
        yield f"of each series, drawn to {whose}", own


def _by_traits(seen: Moments, traits: np.ndarray) -> Iterator[np.ndarray]:
    """Regressions (P, K) whose coefficients are linear in traits (K, S), one for each penalty."""
    P, S = seen.cross.shape[1], traits.shape[1]
    gram = np.einsum("kpq,ks,kt->psqt", seen.gram, traits, traits, optimize=True)
    cross = np.einsum("kp,ks->ps", seen.cross, traits).ravel()
    rows = max(1, int(seen.count.sum()))
    for penalty in _PENALTIES:
        solved = np.linalg.solve(_penalised(gram.reshape(P * S, P * S), rows, penalty), cross)
        yield solved.reshape(P, S) @ traits.T


def _penalised(gram: np.ndarray, rows: np.ndarray | int, penalty: float) -> np.ndarray:
    """Gram matrices (..., P, P) with what keeps coefficients small on their diagonals."""
    spread = np.diagonal(gram, axis1=-2, axis2=-1) / rows
    ridge = penalty * rows * (spread + 1e-6)
    return np.asarray(gram + ridge[..., np.newaxis] * np.eye(gram.shape[-1]))


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
