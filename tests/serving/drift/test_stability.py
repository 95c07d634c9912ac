"""The population stability index: a worked example, SciPy's quantiles, and false alarms."""

import numpy as np
import pytest
from scipy import stats

from gru_serving.drift.histogram import NameBins, NumberBins
from gru_serving.drift.stability import stability


def test_worked_example():
    before, now = np.array([500_000, 300_000, 200_000]), np.array([400_000, 300_000, 300_000])
    # (.4 - .5) ln(.4 / .5) + 0 + (.3 - .2) ln(.3 / .2), on paper; half a row hardly counts.
    found = stability(before, now)
    assert found.value == pytest.approx(0.0223144 + 0.0405465, abs=1e-5)
    assert found.noise == pytest.approx(2e-6 * stats.chi2.ppf(0.999, 2), rel=0.05)
    assert found.verdict == "stable"


@pytest.mark.parametrize("bins", [3, 5, 11, 51])
def test_the_limit_of_chance_is_chi_squared(bins):
    counts = np.full(bins, 100)
    found = stability(counts, counts)
    assert found.value == 0
    expected = 2 / (100 * bins) * stats.chi2.ppf(0.999, bins - 1)
    assert found.noise == pytest.approx(expected, rel=0.03)


def test_few_rows_of_one_population_are_stable():
    rng = np.random.default_rng(0)
    before = rng.normal(size=2000)
    bins = NumberBins.of(before)
    counts = bins.counts(before)
    for rows in (20, 100, 500):
        now = [stability(counts, bins.counts(rng.normal(size=rows))) for _ in range(2000)]
        # One in a thousand by the theory; at most 14 of 2000 with a probability of 1 - 1e-6.
        assert sum(one.verdict != "stable" for one in now) <= 14, rows


def test_what_moves_and_what_shifts():
    rng = np.random.default_rng(1)
    before = rng.normal(size=5000)
    bins = NumberBins.of(before)
    verdicts = [
        stability(bins.counts(before), bins.counts(rng.normal(by, size=5000))).verdict
        for by in (0.0, 0.4, 1.0)
    ]
    assert verdicts == ["stable", "moved", "shifted"]


def test_bins_that_are_empty_on_one_side():
    found = stability(np.array([100, 0, 0]), np.array([0, 100, 0]))
    assert np.isfinite(found.value)
    assert found.verdict == "shifted"
    assert stability(np.array([7, 0]), np.array([9, 0])).value == 0  # one bin says nothing
    with pytest.raises(ValueError, match="expected rows before and now, got 0 and 3"):
        stability(np.array([0, 0]), np.array([1, 2]))


def test_number_bins_hold_all_values_once():
    values = np.array([3.0, np.nan, 1.0, 1.0, 1.0, 1.0, 2.0, 9.0, np.nan])
    bins = NumberBins.of(values)
    assert bins.median == 1.0
    counts = bins.counts(values)
    assert counts[-1] == 2  # missing
    assert counts.sum() == len(values)
    assert counts[0] == (values == 1).sum()  # ties stand in one bin
    assert bins.counts(np.array([-1e9, 1e9])).tolist()[0] == 1
    far = bins.outside(np.array([1.0, 9.0, np.nan, bins.high + 2 * (bins.high - bins.low)]))
    np.testing.assert_allclose(far[:3], [0, (9 - bins.high) / (bins.high - bins.low), 0], atol=0.01)
    assert far[3] == pytest.approx(2)


def test_name_bins_count_strangers_together():
    bins = NameBins.of(["a"] * 3 + ["b"])
    assert bins.counts(["b", "c", "d", "a"]).tolist() == [1, 1, 2]
    assert bins.labels() == ["a", "b", "(others)"]
