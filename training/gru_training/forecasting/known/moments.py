"""Sums over rows that are all that a regression of differences on known inputs needs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from gru_training.forecasting.known.effect import feature_count, features

_MOST_FEATURES = 4_000_000
"""Numbers at a time, so that memory does not grow with the rows or the series."""


@dataclass
class Moments:
    """Of P features and K targets, over the rows in which a target is known.

    All targets that are known in the same rows and read the same inputs share one Gram matrix.
    """

    gram: np.ndarray
    """(K or 1, P, P): sums of the products of features."""
    cross: np.ndarray
    """(K, P): sums of features times target."""
    square: np.ndarray
    """(K,): sums of squares of the target."""
    count: np.ndarray
    """(K,): rows."""

    def squared_error(self, coefficients: np.ndarray) -> float:
        """The mean over all rows and targets with these coefficients, (P, K)."""
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
    """Of the differences, over `lag` steps, of features and targets.

    Args:
        targets: (rows, K), NaN where a value is missing.
        inputs: (rows, F), or (rows, K, F) where each target has its own.
        knots: As of `gru_training.forecasting.known.effect.features`.
        pairs: Likewise.
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
    """(n, P) or (n, K, P)."""
    now = features(tf.constant(inputs[rows]), knots, pairs)
    before = features(tf.constant(inputs[rows.start - lag : rows.stop - lag]), knots, pairs)
    return np.asarray(now - before)
