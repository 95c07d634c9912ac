"""Intervals that learn from their misses, beside ones that stay as they are."""

import numpy as np
import pytest

from gru_training.forecasting.intervals import AdaptiveIntervals

RNG = np.random.default_rng(5)


def covered(intervals, residuals, origins):
    inside = []
    for origin, of_window in zip(origins, residuals, strict=True):
        low, high = intervals.offsets(origin)
        inside.append((low <= of_window) & (of_window <= high))
        intervals.observe(origin, of_window)
    return np.array(inside)  # (N, P, H, K)


def test_bounds_are_ranks_of_the_known_residuals():
    """Of 99 windows; step 1 of the last one is not over yet when the next window begins."""
    residuals = RNG.permutation(np.arange(1.0, 100))[:, None, None].repeat(2, axis=1)
    residuals[-1, 0], residuals[-1, 1] = residuals[-1, 0], 1000.0
    intervals = AdaptiveIntervals((0.9,), residuals, np.arange(99))
    low, high = intervals.offsets(99)
    assert (low[0, 0, 0], high[0, 0, 0]) == (5, 95)
    known = np.sort(residuals[:-1, 1, 0])
    # ⌈.95 · 99⌉ = 95 of 98.
    assert (low[0, 1, 0], high[0, 1, 0]) == (known[98 - 95], known[95 - 1])


def test_coverage_is_kept_where_errors_grow():
    """Residuals of three steps and two columns that get three times as large halfway."""
    N, H, K = 1600, 3, 2
    noise = RNG.normal(size=(N, H, K))
    noise[800:] *= 3
    before, after = noise[:300], noise[300:]
    intervals = AdaptiveIntervals((0.95, 0.8), before, np.arange(300))
    inside = covered(intervals, after, np.arange(300, N))
    stays = np.quantile(before, (0.1, 0.9), axis=0)
    fixed = ((stays[0] <= after) & (after <= stays[1])).mean()
    assert fixed < 0.66
    shares = inside.mean(axis=(0, 2, 3))
    assert shares[0] == pytest.approx(0.95, abs=0.015)
    assert shares[1] == pytest.approx(0.8, abs=0.015)
    # Each step by itself, and after the change as before it.
    np.testing.assert_allclose(inside[:, 1].mean(axis=(0, 2)), 0.8, atol=0.02)
    np.testing.assert_allclose(inside[800:, 1].mean(), 0.8, atol=0.03)


def test_no_window_is_learned_from_before_its_steps_are_over():
    residuals = RNG.normal(size=(60, 4, 1))
    late = residuals.copy()
    for place in range(30, 60):  # what is not over yet when window 45 begins
        for step in range(4):
            if place + step >= 45:
                late[place, step] = 1e6
    found = []
    for each in (residuals, late):
        intervals = AdaptiveIntervals((0.8,), each[:30], np.arange(30))
        for place in range(30, 45):
            intervals.offsets(place)
            intervals.observe(place, each[place])
        found.append(intervals.offsets(45))
    np.testing.assert_array_equal(*found)


def test_missing_values_count_as_no_miss():
    residuals = RNG.normal(size=(400, 2, 2))
    residuals[::3, 1, 1] = np.nan
    intervals = AdaptiveIntervals((0.8,), residuals[:200], np.arange(200))
    inside = covered(intervals, residuals[200:], np.arange(200, 400))[:, 0]
    seen = np.isfinite(residuals[200:])
    assert inside[seen].mean() == pytest.approx(0.8, abs=0.04)
    assert not inside[~seen].any()
