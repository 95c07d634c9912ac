import numpy as np
import pytest
from scipy import stats

from gru_training.compare.comparison import mcnemar_test


def pair(both, gained, lost, neither):
    right = np.repeat([True, True, False, False], [both, gained, lost, neither])
    reference = np.repeat([True, False, True, False], [both, gained, lost, neither])
    return right, reference


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (1, 0), (9, 2), (5, 5), (24, 0), (12, 12)])
def test_few_are_counted_exactly(gained, lost):
    """A fair coin: compared with the binomial test of a share."""
    found = mcnemar_test(*pair(50, gained, lost, 20))
    assert (found.gained, found.lost) == (gained, lost)
    expected = stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert found.p_value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("gained", "lost"), [(20, 5), (30, 41), (300, 300)])
def test_many_go_by_chi_squared(gained, lost):
    found = mcnemar_test(*pair(500, gained, lost, 20))
    expected = stats.chi2.sf((gained - lost) ** 2 / (gained + lost), 1)
    assert found.p_value == pytest.approx(expected, rel=1e-9)


def test_the_sides_can_be_swapped():
    right, reference = pair(100, 31, 12, 7)
    assert mcnemar_test(right, reference).p_value == mcnemar_test(reference, right).p_value


def test_agrees_with_a_published_example():
    """Agresti, Categorical Data Analysis, table 10.1: approval of the prime minister."""
    found = mcnemar_test(*pair(794, 150, 86, 570))
    assert found.p_value == pytest.approx(stats.norm.sf(17.36**0.5) * 2, rel=0.01)


@pytest.mark.parametrize("rows", [40, 120, 800])
def test_holds_its_level(rows):
    """Two models that are right equally often, mostly on the same rows."""
    rng = np.random.default_rng(rows)
    tries, rejected = 1500, 0
    for _ in range(tries):
        hard = rng.random(rows) < 0.4
        chance = np.where(hard, 0.5, 0.97)
        right, reference = rng.random((2, rows)) < chance
        rejected += mcnemar_test(right, reference).p_value < 0.05
    assert rejected / tries < 0.065
    assert rejected / tries > (0.005 if rows < 100 else 0.02)
