"""Weights of a combination, from what its components forecast for windows they did not learn.

Stacking after Breiman (1996), "Stacked regressions": weights of at least zero. They sum to one. The
fewer independent windows there are to tell the components apart, the closer the weights are to
those that follow from the size of each one's errors alone (Bates and Granger 1969, "The combination
of forecasts"). What they are to make small is the loss that is asked for.
"""

import numpy as np
from scipy.optimize import nnls

from gru_training.forecasting.combination.criterion import Criterion, SquaredError

_LEAST = 0.02
"""A smaller weight is dropped: its component would cost more than it gives."""
_SUM = 1e3
"""How strictly the weights sum to one, beside errors of the size of one."""
_MOST_ROUNDS, _STEADY = 30, 1e-3
"""Least squares are solved again until no weight changes by more."""


def stacking_weights(
    errors: np.ndarray, independent: float, criterion: Criterion | None = None
) -> np.ndarray:
    """Weights (M,) of M components, at least 0 and 1 in all.

    On the windows given, the weighted mean has a loss of at most that of the best component.

    Args:
        errors: (n, M): forecast minus truth of each component.
        independent: About how many of the windows do not overlap.
        criterion: The loss; by default the squared error.
    """
    criterion = criterion or SquaredError()
    losses = [criterion.loss(each) for each in errors.T]
    best = min(losses)
    strength = 1 / max(1.0, independent)
    for _ in range(20 if best > 0 else 0):
        weights = _least(errors, strength, criterion)
        weights = np.where(weights < _LEAST, 0, weights)
        weights /= weights.sum()
        if criterion.loss(errors @ weights) <= best * (1 + 1e-9):
            return weights
        strength /= 2
    only = np.zeros(errors.shape[1])
    only[int(np.argmin(losses))] = 1.0
    return only


def _least(errors: np.ndarray, strength: float, criterion: Criterion) -> np.ndarray:
    """The weights with the least loss, by least squares in which errors count anew each time."""
    count = errors.shape[1]
    weights = np.full(count, 1 / count)
    for _ in range(_MOST_ROUNDS):
        counted = errors * criterion.importance(errors @ weights)[:, np.newaxis]
        products = errors.T @ counted / len(errors)
        before, weights = weights, _simplex(products / np.diag(products).min(), strength)
        if np.abs(weights - before).max() < _STEADY:
            break
    return weights


def _simplex(products: np.ndarray, strength: float) -> np.ndarray:
    """The weights with the least w·P·w, its diagonal raised by a share."""
    count = len(products)
    penalised = products + (strength + 1e-9) * np.diag(np.diag(products))
    rows = np.vstack([np.linalg.cholesky(penalised).T, np.full((1, count), _SUM)])
    weights, _ = nnls(rows, np.append(np.zeros(count), _SUM))
    return np.asarray(weights / weights.sum())
