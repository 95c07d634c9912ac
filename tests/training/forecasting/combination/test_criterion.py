"""Weights that make the loss small that is asked for, against a general optimiser."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.special import xlogy

from gru_training.forecasting.losses import AbsoluteError, Deviance, HuberError, SquaredError
from gru_training.forecasting.plan import stacking_weights

N = 600


def counted(seed=0):
    """Counts, standardised by 12 and 7, and forecasts of three kinds of their mean."""
    rng = np.random.default_rng(seed)
    mean = rng.uniform(2, 40, N)
    counts = rng.poisson(mean)
    means = np.column_stack(
        [mean * rng.uniform(0.5, 1.5, N), mean + rng.normal(0, 3, N), mean * 1.4 + 2]
    )
    return counts, np.maximum(means, 0.5)


def skewed(seed=1):
    """Errors of forecasts of which the means and the medians are best at different weights."""
    rng = np.random.default_rng(seed)
    common = rng.exponential(1.0, (N, 1)) ** 2
    return common * [0.2, 1.0, 0.5] + rng.normal(0, [1.0, 0.3, 0.6], (N, 3)) - [0.1, 1.2, 0.4]


def optimum(loss):
    found = minimize(
        loss, np.full(3, 1 / 3), bounds=[(0, 1)] * 3, tol=1e-12,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
    )  # fmt: skip
    return found.fun


def test_the_absolute_error_is_that_of_a_linear_program():
    """Barrodale and Roberts 1973: the least sum of u + v with E·w = u - v, on the simplex."""
    errors = skewed()
    cost = np.concatenate([np.zeros(3), np.ones(2 * N)])
    equal = np.vstack(
        [
            np.hstack([errors, -np.eye(N), np.eye(N)]),
            np.concatenate([np.ones(3), np.zeros(2 * N)])[np.newaxis],
        ]
    )
    found = linprog(cost, A_eq=equal, b_eq=np.append(np.zeros(N), 1.0))
    weights = stacking_weights(errors, 1e9, AbsoluteError())
    assert np.abs(errors @ weights).mean() == pytest.approx(found.fun / N, rel=2e-3)
    squared = stacking_weights(errors, 1e9)
    assert np.abs(errors @ squared).mean() > 1.01 * found.fun / N


def test_the_huber_loss_is_that_of_a_general_optimiser():
    errors = 2 * skewed(3)

    def huber(w):
        size = np.abs(errors @ w)
        return np.where(size <= 1, size**2 / 2, size - 0.5).mean()

    weights = stacking_weights(errors, 1e9, HuberError())
    assert huber(weights) == pytest.approx(optimum(huber), rel=2e-3)
    assert HuberError().loss(errors @ weights) == pytest.approx(huber(weights))


@pytest.mark.parametrize(("kind", "size"), [("poisson", 1e6), ("negative_binomial", 2.5)])
def test_the_deviance_is_that_of_the_distribution(kind, size):
    counts, means = counted()
    truth, level, spread = (counts - 12) / 7, np.full(N, 12 / 7), np.full(N, 7.0)
    errors = (means - counts[:, np.newaxis]) / 7
    criterion = Deviance(kind, size, truth, level, spread)

    def deviance(w):
        mean = means @ w
        unit = xlogy(counts, counts / mean)
        if kind == "poisson":
            return (unit - counts + mean).mean() / 7
        return (unit - (counts + size) * np.log((counts + size) / (mean + size))).mean() / 7

    assert criterion.loss(errors[:, 0]) == pytest.approx(deviance(np.array([1, 0, 0])), rel=1e-4)
    weights = stacking_weights(errors, 1e9, criterion)
    assert deviance(weights) == pytest.approx(optimum(deviance), rel=2e-3)


@pytest.mark.parametrize("criterion", [SquaredError(), AbsoluteError(), HuberError()])
@pytest.mark.parametrize("independent", [1, 30])
def test_the_combination_is_never_worse_than_its_best_part(criterion, independent):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        errors = rng.standard_t(3, (80, 5)) @ rng.normal(size=(5, 5))
        weights = stacking_weights(errors, independent, criterion)
        best = min(criterion.loss(each) for each in errors.T)
        assert criterion.loss(errors @ weights) <= best * (1 + 1e-6)
        assert weights.sum() == pytest.approx(1)
        assert (weights >= 0).all()
