"""Bins of test rows by their length, compared with statsmodels and published intervals."""

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from gru_training.sentiment.evaluation.pictures import bin_by_length, wilson_interval


def test_wilson_interval_against_published_values():
    # Newcombe (1998), Statistics in Medicine 17, table I: 81/263 and 0/20.
    np.testing.assert_allclose(wilson_interval(81 / 263, 263), (0.2553, 0.3662), atol=5e-5)
    np.testing.assert_allclose(wilson_interval(0.0, 20), (0.0, 0.1611), atol=5e-5)


@pytest.mark.parametrize("rows", [1, 7, 600])
def test_wilson_interval_holds_the_share_and_is_no_wider_than_0_to_1(rows):
    for right in range(rows + 1):
        low, high = wilson_interval(right / rows, rows)
        assert -1e-12 < low <= right / rows <= high < 1 + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_bins_hold_every_row_once_and_a_length_lies_in_one(seed):
    lengths = np.random.default_rng(seed).integers(1, 400, 1000)
    bins = bin_by_length(lengths)
    assert sorted(np.concatenate(bins.members)) == list(range(1000))
    assert len(bins.members) == 8
    assert all(110 <= len(rows) <= 140 for rows in bins.members)
    for rows, shortest, longest in zip(bins.members, bins.shortest, bins.longest, strict=True):
        assert (lengths[rows].min(), lengths[rows].max()) == (shortest, longest)
    assert (bins.longest[:-1] < bins.shortest[1:]).all()


def test_distinct_lengths_are_cut_into_equal_parts():
    lengths = np.random.default_rng(0).permutation(60)
    bins = bin_by_length(lengths, bins=4)
    assert [len(rows) for rows in bins.members] == [15] * 4
    assert bins.shortest.tolist() == [0, 15, 30, 45]


@pytest.mark.parametrize("rows", [1, 40, 900])
def test_rows_of_one_length_are_one_bin(rows):
    bins = bin_by_length(np.full(rows, 7))
    assert [len(members) for members in bins.members] == [rows]


def test_accuracy_has_the_interval_of_statsmodels():
    rng = np.random.default_rng(1)
    lengths, right = rng.integers(1, 30, 500), rng.random(500) < 0.8
    bins = bin_by_length(lengths, bins=5)
    found = bins.accuracy(right)
    for (share, low, high), shortest, longest in zip(
        found, bins.shortest, bins.longest, strict=True
    ):
        within = right[(lengths >= shortest) & (lengths <= longest)]
        expected = proportion_confint(within.sum(), len(within), method="wilson")
        np.testing.assert_allclose((share, low, high), (within.mean(), *expected), rtol=1e-6)
