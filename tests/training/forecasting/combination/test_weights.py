import numpy as np
import pytest
from scipy.optimize import minimize

from gru_training.forecasting.plan import stacking_weights

RNG = np.random.default_rng(8)


def forecasters(n=400):
    """Errors of four: two good and alike, one good and different, one bad."""
    common = RNG.normal(size=n)
    return np.column_stack(
        [
            common + 0.1 * RNG.normal(size=n),
            common + 0.1 * RNG.normal(size=n),
            RNG.normal(size=n) * 1.1,
            5 * RNG.normal(size=n),
        ]
    )


def test_the_weights_are_those_of_a_general_optimiser():
    errors = forecasters()
    weights = stacking_weights(errors, 1e9)

    def squared(w):
        return float(((errors @ w) ** 2).mean())

    found = minimize(
        squared, np.full(4, 0.25), bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
    )  # fmt: skip
    assert squared(weights) == pytest.approx(found.fun, rel=0.02)  # weights below .02 are dropped
    assert weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("independent", [0.5, 3, 100])
@pytest.mark.parametrize("seed", range(8))
def test_the_mean_is_never_worse_than_the_best_one(independent, seed):
    rng = np.random.default_rng(seed)
    errors = rng.normal(size=(60, 5)) @ rng.normal(size=(5, 5))
    weights = stacking_weights(errors, independent)
    best = (errors**2).mean(axis=0).min()
    assert ((errors @ weights) ** 2).mean() <= best * (1 + 1e-6)
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1)


def test_with_few_windows_the_size_of_errors_counts_more():
    """Of two that err alike one is superfluous, which many windows tell and few do not."""
    errors = forecasters()[:, :3]
    few, some, many = (stacking_weights(errors, count) for count in (1, 4, 1e6))
    sizes = 1 / (errors**2).mean(axis=0)
    away = [np.abs(each - sizes / sizes.sum()).max() for each in (few, some, many)]
    assert away[0] < away[1] < away[2]


def test_one_that_is_always_right_counts_alone():
    errors = np.column_stack([RNG.normal(size=9), np.zeros(9)])
    assert stacking_weights(errors, 3).tolist() == [0, 1]
