import numpy as np
import pytest

from gru_training.forecasting.intervals import LEVELS, pooled_offsets
from gru_training.forecasting.series_check import Support, least_windows


@pytest.mark.parametrize(("level", "fewest"), [(0.9, 9), (0.975, 39), (0.995, 199), (0.75, 3)])
def test_the_fewest_residuals_that_have_a_rank(level, fewest):
    """With n of them, the rank ⌈level·(n + 1)⌉ is at most n."""
    ranks = {n: np.ceil(round(level * (n + 1), 9)) for n in (fewest - 1, fewest)}
    assert least_windows(level) == fewest
    assert ranks[fewest] <= fewest
    assert ranks[fewest - 1] > fewest - 1


def test_windows_that_overlap_count_for_less():
    many = Support(400, 4, 1, False, LEVELS)
    assert (many.independent, many.pools, many.notes()) == (100, False, ())
    overlapping = Support(400, 40, 1, False, LEVELS)
    assert (overlapping.independent, overlapping.pools) == (10, True)
    assert overlapping.notes() == (
        "rough intervals: about 10 validation windows without overlap (95% needs 39), so they "
        "are wider",
    )
    few = Support(30, 12, 4, False, LEVELS)
    assert few.independent == 5
    assert few.notes()[0].endswith(
        "(80% needs 9, 95% needs 39), so they are wider, and as wide above the forecast as below"
    )
    assert Support(4000, 4, 1, True, LEVELS).pools  # series of unequal length


def test_a_level_beyond_all_residuals_is_no_narrower_than_the_normal_one():
    truth = np.random.default_rng(0).uniform(-1, 1, (10, 2, 1))  # has no long tails
    levels = (0.0001, 0.1, 0.5, 0.9, 0.9999)
    offsets = pooled_offsets(truth, np.zeros((10, 2, 1, 1)), 1e6, levels)
    size = np.sqrt(np.mean(truth**2))
    assert offsets[..., 4].mean() == pytest.approx(3.719 * size, rel=0.02)
    assert offsets[..., 0].mean() == pytest.approx(-3.719 * size, rel=0.02)
    assert offsets[..., 3].max() < 1.3
