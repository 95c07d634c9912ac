"""The effect of inputs that are known for the future: a regression on them at each step.

A series with known inputs is modelled as effect(inputs) + rest ("regression with ARIMA errors",
Hyndman and Athanasopoulos, Forecasting: Principles and Practice, chapter 10). All other models
forecast the rest, and the effect of the steps ahead, whose inputs are known, is added. How the
effect is fitted is chosen on validation rows.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gru_serving.preprocessing.series import AverageEffect, InputEffect, features
from gru_training.forecasting.linear import filled, fit_ridge

_MAX_CATEGORIES = 9
"""Number of different values up to which an input is categorical, such as a promotion."""


def common_scale(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation of an input so that a value means the same for every series.

    An input that is always above zero and has many values, such as a price, counts relative to its
    mean in each series. Any other, such as a promotion or a temperature, counts unchanged.

    Args:
        rows: (N, K), of the training, NaN where a value is missing.

    Returns:
        Two arrays (K,), the second above 0.
    """
    seen = np.isfinite(rows)
    K = rows.shape[1]
    if not seen.any():
        return np.zeros(K), np.ones(K)
    values = rows[seen]
    if values.min() <= 0 or len(np.unique(values)) <= _MAX_CATEGORIES:
        return np.full(K, values.mean()), np.full(K, values.std() or 1.0)
    count = seen.sum(axis=0)
    means = np.where(seen, rows, 0.0).sum(axis=0) / np.maximum(count, 1)
    means = np.where(count > 0, means, values.mean())
    relative = (rows / means - 1)[seen]
    return means, means * (relative.std() or 1.0)


def without_gaps(values: np.ndarray) -> np.ndarray:
    """Replace NaN in (rows, n) by the value before, or else the one after; 0 if there is none."""
    return np.asarray(pd.DataFrame(values).ffill().bfill().fillna(0.0))


_MOST_KNOTS = 7


class KnownEffect:
    """An effect of known inputs, and the way it was fitted.

    Args:
        columns: Numbers of the input columns, F or K·F, those of a target side by side.
        knots: Values of each input, ascending, where its function bends.
        coefficients: (P, K), of the P features that `features` makes, for the K targets.
        pairs: Whether there are products of an input and the functions of another.
        whose: Name, for people, of the series of a panel that share the effect: all, or each.
    """

    def __init__(
        self,
        columns: Sequence[int],
        knots: Sequence[Sequence[float]],
        coefficients: np.ndarray,
        pairs: bool,
        whose: str = "",
    ):
        self.whose = whose
        self.columns, self.pairs = tuple(columns), pairs
        self.knots = tuple(tuple(float(knot) for knot in each) for each in knots)
        self.coefficients = np.asarray(coefficients, np.float64)
        rows = tuple(map(tuple, self.coefficients.tolist()))
        self.effect = InputEffect(self.columns, self.knots, rows, pairs)
        self.by_series = self.effect.by_series
        count, read = feature_count(self.knots, pairs), len(self.columns)
        if (not self.by_series and read != len(self.knots)) or len(self.coefficients) != count:
            raise ValueError(
                f"expected knots of {read} inputs and coefficients of {count} "
                f"features, got {len(self.knots)} and {len(self.coefficients)}"
            )

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        """Compute the effects (..., K) of inputs (..., F or K·F) without NaN, in their dtype."""
        return np.asarray(self.effect.of(inputs))

    def of_targets(self, targets: Sequence[int]) -> "KnownEffect":
        """Return the effect on some of the targets of a panel, by their positions."""
        count = len(self.knots)
        columns = np.reshape(self.columns, (-1, count))[list(targets)].ravel().tolist()
        return KnownEffect(columns, self.knots, self.coefficients[:, list(targets)], self.pairs)

    def to_json(self) -> dict[str, Any]:
        """Return the content for JSON."""
        return {
            "columns": list(self.columns),
            "knots": [list(each) for each in self.knots],
            "coefficients": self.coefficients.tolist(),
            "pairs": self.pairs,
            "whose": self.whose,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "KnownEffect":
        """Read what `to_json` made."""
        columns, knots, coefficients = (values[n] for n in ("columns", "knots", "coefficients"))
        return cls(columns, knots, coefficients, values["pairs"], values["whose"])


def _features(inputs: np.ndarray, knots: Sequence[Sequence[float]], pairs: bool) -> np.ndarray:
    """Compute features (..., P) of inputs (..., F)."""
    return np.stack([*features(inputs, knots, pairs)], axis=-1)


def feature_count(knots: Sequence[Sequence[float]], pairs: bool) -> int:
    """Count the features P that `features` makes."""
    sizes = [1 + len(each) for each in knots]
    products = sum(a + b - 1 for a, b in itertools.combinations(sizes, 2)) if pairs else 0
    return sum(sizes) + products


def knots_of(column: np.ndarray) -> tuple[float, ...]:
    """Choose where the function of an input may bend: at quantiles, or at its few values.

    Args:
        column: (N,) of the training rows, without NaN.
    """
    values = np.unique(column)
    if len(values) <= _MOST_KNOTS + 2:  # at each value but the least and the greatest
        return tuple(values[1:-1].tolist())
    shares = np.linspace(0, 1, _MOST_KNOTS + 2)[1:-1]
    inner = np.unique(np.quantile(column, shares))
    return tuple(inner[(inner > values[0]) & (inner < values[-1])].tolist())


_MOST_FEATURES = 4_000_000
"""Greatest number of elements processed at once, which limits the memory."""


@dataclass
class Moments:
    """Moments of P features and K targets over the rows with a known target.

    Targets that are known in the same rows and read the same inputs share one Gram matrix.
    """

    gram: np.ndarray
    """(K or 1, P, P): sums of the products of features."""
    cross: np.ndarray
    """(K, P): sums of features times target."""
    square: np.ndarray
    """(K,): sums of squares of the target."""
    count: np.ndarray
    """(K,): numbers of rows."""

    def squared_error(self, coefficients: np.ndarray) -> float:
        """Compute the mean squared error over rows and targets with coefficients (P, K)."""
        b = coefficients.T[..., np.newaxis]  # (K, P, 1)
        explained = 2 * (self.cross * b[..., 0]).sum(axis=1) - (
            b * (self.gram @ b)
        ).sum(axis=(1, 2))  # fmt: skip
        rows = self.count.sum()
        return float((self.square - explained).sum() / rows) if rows else np.inf


def difference_moments(
    targets: np.ndarray,
    inputs: np.ndarray,
    knots: Sequence[Sequence[float]],
    pairs: bool,
    lag: int,
    begin: int,
    end: int,
) -> Moments:
    """Compute moments of the differences, over `lag` steps, of features and targets.

    Args:
        targets: (rows, K), NaN where a value is missing.
        inputs: (rows, F), or (rows, K, F) where each target has its own.
        knots: Values where functions bend, as in `features`.
        pairs: Whether there are products, as in `features`.
        lag: Steps.
        begin: First row of which the difference from the one `lag` before is taken, at least `lag`.
        end: The row after the last.
    """
    K, P, own = targets.shape[1], feature_count(knots, pairs), inputs.ndim == 3
    truth = targets[begin:end] - targets[begin - lag : end - lag]
    seen = np.isfinite(truth)
    alike = not own and bool((seen == seen[:, :1]).all())
    gram = np.zeros((1 if alike else K, P, P))
    cross = np.zeros((K, P))
    many = max(1, min(K, _MOST_FEATURES // (64 * P))) if own else K
    step = max(1, _MOST_FEATURES // (P * (many if own else 1)))
    for first in range(0, K, many):
        columns = slice(first, first + many)
        read = inputs[:, columns] if own else inputs
        for row in range(begin, end, step):
            rows = slice(row, min(row + step, end))
            place = slice(rows.start - begin, rows.stop - begin)
            known = seen[place, columns]
            values = np.where(known, truth[place, columns], 0.0)
            made = _differences(read, knots, pairs, lag, rows)
            if own:
                x = np.where(known[..., np.newaxis], made, 0.0).transpose(1, 0, 2)  # (K', n, P)
                gram[columns] += x.transpose(0, 2, 1) @ x
                cross[columns] += np.einsum("knp,nk->kp", x, values)
            elif alike:
                x = made[known[:, 0]]
                gram[0] += x.T @ x
                cross += values[known[:, 0]].T @ x
            else:
                for k in range(K):
                    x = made[known[:, k]]
                    gram[k] += x.T @ x
                cross += values.T @ made
    squares = np.where(seen, truth, 0.0) ** 2
    return Moments(gram, cross, squares.sum(axis=0), seen.sum(axis=0))


def _differences(
    inputs: np.ndarray, knots: Sequence[Sequence[float]], pairs: bool, lag: int, rows: slice
) -> np.ndarray:
    """Return the differences, (n, P) or (n, K, P)."""
    before = inputs[rows.start - lag : rows.stop - lag]
    return np.asarray(_features(inputs[rows], knots, pairs) - _features(before, knots, pairs))


_PENALTIES = (1e-5, 1e-3, 1e-2, 0.1)
"""Penalties of the squared coefficients for features of deviation 1, as shares of the rows."""
_PANEL_ROWS = (10.0, 30.0, 100.0, 300.0, 1000.0)
"""Number of rows with which the whole panel counts beside those of a series in its own
coefficients.
"""
_MOST_BY_TRAITS = 2000
"""Coefficients that depend on the traits of series."""
_MOST_PAIRED = 300
"""Number of features above which no products of inputs are tried."""
_MOST_MOMENTS = 20_000_000
"""Number of elements in the Gram matrices of all series above which no products are tried."""
MAX_RELATIVE_ERROR = 0.99
"""Greatest ratio of the squared errors with and without known inputs at which they are used."""
_MAX_LOOKBACK, _MOST_ROWS, _MOST_SERIES = 96, 20_000, 200
_MAX_KNOT_VALUES = 200_000
"""Number of values that determine where functions bend."""


def fit_effect(
    targets: np.ndarray,
    inputs: np.ndarray,
    columns: Sequence[int],
    train: int,
    season: int,
    horizon: int,
    traits: np.ndarray | None = None,
) -> tuple[KnownEffect | None, tuple[float, float]]:
    """Fit the effect of known inputs on the targets; None if forecasts are no better with it.

    The coefficients minimise the squared error on differences over a season, or over one step, of
    the training rows, so that neither levels nor seasons are mistaken for effects. Penalty and
    products are chosen by such differences of the validation rows. The kind of differences, or no
    effect, is chosen by the error of a ridge regression that forecasts the rest.

    In a panel, where each target has inputs of its own, all targets have the same coefficients, or
    coefficients that are linear in the traits of each series, or coefficients of their own that are
    shrunk towards these, more so for fewer rows; whichever does best on the validation rows.

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
        if error < (MAX_RELATIVE_ERROR * without if chosen is None else best):
            chosen, best = effect, error
    return chosen, (without, best)


def _effect_on(effect: KnownEffect, known: np.ndarray, shown: np.ndarray) -> np.ndarray:
    if effect.by_series:
        effect, known = effect.of_targets(shown.tolist()), known[:, shown]
    return effect(known.reshape(len(known), -1))


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
    return flat[:: max(1, len(flat) // _MAX_KNOT_VALUES)]


def _of_each(seen: Moments) -> Iterator[tuple[str, np.ndarray]]:
    """Fit regressions (P, K) of targets that read the same inputs, one for each penalty."""
    for penalty in _PENALTIES:
        rows = np.maximum(seen.count, 1)[: len(seen.gram), np.newaxis]
        solved = np.linalg.solve(_penalised(seen.gram, rows, penalty), _columns(seen))
        yield "", solved[0] if len(seen.gram) == 1 else solved[..., 0].T


def _columns(seen: Moments) -> np.ndarray:
    """Return the right-hand sides, (1, P, K) for one Gram matrix or (K, P, 1)."""
    return seen.cross.T[np.newaxis] if len(seen.gram) == 1 else seen.cross[..., np.newaxis]


def _of_panel(
    seen: Moments, ahead: Moments, traits: np.ndarray | None
) -> Iterator[tuple[str, np.ndarray]]:
    """Fit regressions (P, K): of all series, by traits, and of each series shrunk to these."""
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
    """Fit regressions (P, K) with coefficients linear in traits (K, S), one per penalty."""
    P, S = seen.cross.shape[1], traits.shape[1]
    gram = np.einsum("kpq,ks,kt->psqt", seen.gram, traits, traits, optimize=True)
    cross = np.einsum("kp,ks->ps", seen.cross, traits).ravel()
    rows = max(1, int(seen.count.sum()))
    for penalty in _PENALTIES:
        solved = np.linalg.solve(_penalised(gram.reshape(P * S, P * S), rows, penalty), cross)
        yield solved.reshape(P, S) @ traits.T


def _penalised(gram: np.ndarray, rows: np.ndarray | int, penalty: float) -> np.ndarray:
    """Add the penalties to the diagonals of Gram matrices (..., P, P)."""
    spread = np.diagonal(gram, axis1=-2, axis2=-1) / rows
    ridge = penalty * rows * (spread + 1e-6)
    return np.asarray(gram + ridge[..., np.newaxis] * np.eye(gram.shape[-1]))


def _rest_error(rest: np.ndarray, train: int, season: int, horizon: int) -> float:
    """Measure the squared error, over validation windows, of a ridge regression of the rest."""
    lookback = max(1, min(max(2 * season, 8), _MAX_LOOKBACK, (train - horizon) // 2))
    ridge = fit_ridge(rest[max(0, train - _MOST_ROWS) : train], lookback, horizon)
    whole = np.column_stack([filled(column) for column in rest.T])
    origins = np.arange(train, len(rest) - horizon + 1)
    origins = origins[:: max(1, len(origins) // 500)]
    forecasts = ridge(whole[origins[:, np.newaxis] + np.arange(-lookback, 0)])
    errors = forecasts - rest[origins[:, np.newaxis] + np.arange(horizon)]
    return float(np.nanmean(errors**2)) if np.isfinite(errors).any() else np.inf


def average_effect(known: KnownEffect, mean: np.ndarray, deviation: np.ndarray) -> AverageEffect:
    """Average the effects of all series of a panel, for inputs as given by a caller.

    Args:
        known: Effect of a panel.
        mean: (K·F,), with which its input columns were standardised.
        deviation: (K·F,), likewise.
    """
    means, deviations = (each.reshape(-1, len(known.knots)) for each in (mean, deviation))
    relative = (means != means[0]).any(axis=0)  # to the mean of each series
    unit = np.where(relative, means[0], 1.0)
    coefficients = known.coefficients.mean(axis=1, keepdims=True)
    return AverageEffect(
        KnownEffect(range(len(known.knots)), known.knots, coefficients, known.pairs).effect,
        tuple((means[0] / unit).tolist()),
        tuple((deviations[0] / unit).tolist()),
        tuple(relative.tolist()),
    )
