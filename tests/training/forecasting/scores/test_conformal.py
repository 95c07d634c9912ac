import math

import numpy as np
import pytest

from gru_training.forecasting.evaluation import calibrate
from gru_training.forecasting.intervals import LEVELS, interval_offsets, pooled_offsets, quantiles
from gru_training.forecasting.windows import Windows

RNG = np.random.default_rng(7)


def test_ranks_by_hand():
    residuals = RNG.permutation(np.arange(1, 100)) - 50.0  # -49 to 49, n + 1 = 100
    offsets = interval_offsets(residuals[:, None, None], np.zeros((99, 1, 1, 1)))
    # Ranks: floor(2.5) = 2, 10, the forecast, 90, ceil(97.5) = 98.
    np.testing.assert_array_equal(offsets[0, 0], [-48, -40, 0, 40, 48])


def test_coverage_is_what_theory_says():
    """One more exchangeable row is at or below the k-th of n residuals with probability k/(n+1)."""
    n, draws = 49, 20000
    noise = RNG.gamma(2.0, 1.0, (n + 1, draws, 1)) - 1.7  # each draw is a column of its own
    offsets = interval_offsets(noise[:n], np.zeros((n, draws, 1, 1)))[:, 0]  # (draws, Q)
    for q, level in enumerate(LEVELS):
        if level == 0.5:
            continue
        rank = math.ceil(50 * level) if level > 0.5 else math.floor(50 * level)
        chance = rank / 50
        share = np.mean(noise[n, :, 0] <= offsets[:, q].astype(np.float64))
        assert abs(share - chance) < 4 * math.sqrt(chance * (1 - chance) / draws)


def test_quantile_forecasts_that_are_wrong_are_put_right():
    """Noise of a different width in each column; the forecasts know its shape, not its width."""
    n, width = 4000, np.array([0.5, 3.0])
    centre = RNG.normal(0, 5, (2 * n, 1, 2))
    targets = centre + RNG.normal(0, 1, centre.shape) * width
    guessed = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    forecasts = centre[..., None] + guessed
    offsets = interval_offsets(targets[:n], forecasts[:n])
    served = np.asarray(quantiles(forecasts[n:], offsets))
    for low, high, nominal in ((0, 4, 0.95), (1, 3, 0.8)):
        inside = (targets[n:] >= served[..., low]) & (targets[n:] <= served[..., high])
        np.testing.assert_allclose(inside.mean(axis=(0, 1)), nominal, atol=0.03)
    # The 97.5 % point of a normal distribution with that width, minus the forecast's guess.
    np.testing.assert_allclose(offsets[0, :, 4], 1.95996 * width - 1.0, atol=0.3)


def test_missing_targets_do_not_count():
    targets = RNG.normal(size=(60, 2, 1))
    forecasts = np.zeros((60, 2, 1, 1))
    holed = targets.copy()
    holed[40:, 1] = np.nan
    offsets = interval_offsets(holed, forecasts)
    np.testing.assert_array_equal(offsets[0], interval_offsets(targets, forecasts)[0])
    np.testing.assert_array_equal(offsets[1], interval_offsets(targets[:40], forecasts[:40])[1])
    holed[:, 1] = np.nan
    with pytest.raises(ValueError, match="none for horizon 2 of target 0"):
        interval_offsets(holed, forecasts)


def test_too_few_rows_take_the_extremes():
    residuals = np.array([3.0, -1.0, 2.0])
    offsets = interval_offsets(residuals[:, None, None], np.zeros((3, 1, 1, 1)))
    np.testing.assert_array_equal(offsets[0, 0], [-1, -1, 0, 3, 3])


def test_quantiles_ascend_around_the_forecast():
    biased = RNG.normal(5, 1, (80, 3, 2))  # all residuals lie above the forecast
    offsets = interval_offsets(biased, np.zeros((80, 3, 2, 1)))
    forecasts = RNG.normal(size=(4, 3, 2, 1))
    served = np.asarray(quantiles(forecasts, offsets))
    assert (np.diff(served, axis=-1) >= 0).all()
    np.testing.assert_array_equal(served[..., 2:3], forecasts)
    np.testing.assert_allclose(served[..., 4], forecasts[..., 0] + offsets[..., 4])
    crossing = np.sort(RNG.normal(size=(4, 3, 2, 5)), axis=-1)[..., ::-1]
    served = np.asarray(quantiles(crossing, np.zeros((3, 2, 5))))
    assert (np.diff(served, axis=-1) >= 0).all()
    np.testing.assert_array_equal(served[..., 2], crossing[..., 2])


def test_forecasts_that_cross_cost_no_interval_its_coverage():
    """A network whose inner bounds lie outside the outer ones in every other row."""
    n = 20000
    targets = RNG.normal(size=(2 * n, 1, 1))
    inner = np.where(RNG.random((2 * n, 1, 1)) < 0.5, 6.0, 0.6)
    outer = np.full_like(inner, 2.2)
    forecasts = np.stack([-outer, -inner, 0 * outer, inner, outer], axis=-1)
    offsets = interval_offsets(targets[:n], forecasts[:n])
    served = np.asarray(quantiles(forecasts[n:], offsets))
    alone = forecasts[n:] + offsets  # what calibration is about
    for low, high, nominal in ((0, 4, 0.95), (1, 3, 0.8)):
        assert (served[..., low] <= alone[..., low]).all()
        assert (served[..., high] >= alone[..., high]).all()
        inside = (targets[n:] >= served[..., low]) & (targets[n:] <= served[..., high])
        assert inside.mean() > nominal - 4 * math.sqrt(nominal * (1 - nominal) / n)


@pytest.mark.parametrize(
    ("shape", "levels", "message"),
    [
        ((9, 2, 1, 2), LEVELS, r"shape \(9, 2, 1, 1\) or \(9, 2, 1, 5\), got \(9, 2, 1, 2\)"),
        ((9, 2, 1), LEVELS, "forecasts must have the shape"),
        ((9, 2, 1, 1), (0.1, 0.9), "contain .5"),
        ((9, 2, 1, 1), (0.5, 0.1), "ascend"),
        ((9, 2, 1, 1), (0.0, 0.5), "ascend from above 0"),
        ((9, 2, 1, 1), (0.5, 1.0), "below 1"),
    ],
)
def test_arguments_that_do_not_fit(shape, levels, message):
    with pytest.raises(ValueError, match=message):
        interval_offsets(np.zeros((9, 2, 1)), np.zeros(shape), levels)


def test_pooled_intervals_cover_where_windows_are_few():
    """Residuals of unlike size by column and step: none has enough for the 95 % interval."""
    rng = np.random.default_rng(3)
    size = np.outer([1, 1.5, 2, 2.5], [1, 5, 0.2, 2, 1, 3, 0.5, 1])  # (H, K)
    zero = np.zeros((400, 4, 8, 1))
    inside = {0.8: [], 0.95: []}
    for _ in range(20):
        truth = rng.normal(size=(12, 4, 8)) * size
        offsets = pooled_offsets(truth, zero[:12], independent=12 * 8**0.5)
        new = rng.normal(size=(400, 4, 8)) * size
        for share, (low, high) in {0.95: (0, 4), 0.8: (1, 3)}.items():
            inside[share].append(((offsets[..., low] <= new) & (new <= offsets[..., high])).mean())
    assert np.mean(inside[0.8]) == pytest.approx(0.8, abs=0.03)
    assert np.mean(inside[0.95]) == pytest.approx(0.95, abs=0.03)


def test_a_single_window_does_not_tell_which_steps_are_sure():
    """A forecast that was right at a step by chance will not be as right there again."""
    rng = np.random.default_rng(6)
    least = []
    for _ in range(100):
        low, high = pooled_offsets(rng.normal(size=(1, 12, 1)), np.zeros((1, 12, 1, 1)), 1)[
            ..., (1, 3)
        ].T
        new = rng.normal(size=(400, 12))
        least.append(((low <= new) & (new <= high)).mean(axis=0).min())
    assert np.mean(least) > 0.7, "of the 80 % interval at the step where it is narrowest"


def test_pooled_intervals_are_wider_where_windows_overlap():
    rng = np.random.default_rng(4)
    truth, zero = rng.normal(size=(60, 3, 1)), np.zeros((60, 3, 1, 1))
    few, many = (pooled_offsets(truth, zero, count) for count in (2, 1000))
    assert (few[..., -1] > 1.5 * many[..., -1]).all()
    assert (few[..., LEVELS.index(0.5)] == 0).all()
    assert (np.diff(few, axis=-1) > 0).all()


def test_a_column_without_a_residual_gets_the_typical_size():
    truth = np.random.default_rng(5).normal(size=(40, 2, 3)) * [1, 1, 9]
    truth[..., 1] = np.nan
    offsets = pooled_offsets(truth, np.zeros((40, 2, 3, 1)), 40)
    width = offsets[0, :, -1] - offsets[0, :, 0]
    assert width[0] < width[1] < width[2]
    with pytest.raises(ValueError, match="must hold a value, got none"):
        pooled_offsets(np.full((4, 2, 1), np.nan), np.zeros((4, 2, 1, 1)), 4)


def covered(offsets, new):
    """Shares of new residuals (N, H, K) within the 95 % and the 80 % interval."""
    return [((offsets[..., low] <= new) & (new <= offsets[..., high])).mean()
            for low, high in ((0, 4), (1, 3))]  # fmt: skip


@pytest.mark.parametrize("bias", [-5.0, 5.0])
def test_no_bound_of_a_point_forecast_touches_it(bias):
    """Where all residuals have one sign, the bound on the other side is not clamped."""
    rng = np.random.default_rng(8)
    truth, new = (rng.normal(bias, 1, (size, 3, 2)) for size in (80, 4000))
    point = np.zeros((80, 3, 2, 1))
    for offsets in (interval_offsets(truth, point), pooled_offsets(truth, point, 50)):
        assert (offsets[..., :2] < -1).all()
        assert (offsets[..., 3:] > 1).all()
        served = np.asarray(quantiles(np.zeros((1, 3, 2, 1)), offsets))
        assert (np.diff(served, axis=-1)[..., 1:3] > 1).all()
        wide, narrow = covered(offsets, new)
        assert wide > 0.93
        assert narrow > 0.78


def test_few_windows_give_intervals_as_wide_on_either_side():
    """Validation windows of one sign, and truth of either: one-sided intervals cover half."""
    rng = np.random.default_rng(9)
    few = np.abs(rng.normal(size=(9, 3, 1)))
    point = np.zeros((9, 3, 1, 1))
    offsets = pooled_offsets(few, point, independent=3)
    np.testing.assert_allclose(offsets, -offsets[..., ::-1])
    wide, narrow = covered(offsets, rng.normal(size=(4000, 3, 1)))
    assert narrow > 0.8
    assert wide > 0.95
    uneven = pooled_offsets(few, point, independent=9)
    assert not np.allclose(uneven[..., 1], -uneven[..., 3])


def test_few_windows_move_quantiles_of_a_network_outwards_only():
    rng = np.random.default_rng(10)
    truth = 3 + np.abs(rng.normal(size=(9, 3, 1)))
    forecasts = np.tile(np.array([-2.0, -1, 0, 1, 2]), (9, 3, 1, 1))
    offsets = pooled_offsets(truth, forecasts, independent=3)
    assert (offsets[..., 1] == 0).all()
    assert (offsets[..., 3:] > 1).all()
    assert (pooled_offsets(truth, forecasts, independent=9)[..., 1] > 0).all()


def test_windows_of_many_columns_are_forecast_in_pieces():
    """A network keeps a state for each column of each window; 10,000 columns took 4.6 GB."""
    columns, answered = 400, []

    def last_value(histories):
        answered.append(histories.shape)
        return histories[:, -1:, :, np.newaxis]

    walks = RNG.normal(size=(420, 1)).cumsum(0).astype(np.float32)
    wide = Windows(walks.repeat(columns, 1), walks.repeat(columns, 1), np.arange(20, 420), 5, 1)
    offsets = calibrate(last_value, wide, False, LEVELS)
    alone = interval_offsets(walks[20:, :, np.newaxis], walks[19:-1, :, np.newaxis, np.newaxis])
    np.testing.assert_allclose(offsets, alone.repeat(columns, 1), rtol=1e-6)
    assert sum(windows for windows, *_ in answered) == len(wide)
    assert max(windows * columns for windows, *_ in answered) < 70_000
