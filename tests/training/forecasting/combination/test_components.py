from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from gru_training.forecasting.linear import (
    ETS,
    OWN_ETS,
    PENALTIES,
    RIDGE,
    SMOOTHING,
    THETA,
    LinearData,
    LinearForecaster,
    fit_components,
    lookbacks,
    repeat_last,
    repeat_season,
    weighted_sum,
)

SEASON, HORIZON, TRAIN = 7, 5, 180


def waves(columns=2, rows=260):
    rng = np.random.default_rng(2)
    t = np.arange(rows)[:, np.newaxis]
    return np.sin(2 * np.pi * t / SEASON + np.arange(columns)) + 0.3 * rng.normal(
        size=(rows, columns)
    )


def data(values):
    return LinearData(values, TRAIN, np.arange(TRAIN, TRAIN + 40), SEASON, HORIZON)


def test_the_simple_ones():
    window = np.arange(24.0).reshape(1, 12, 2) ** 2
    np.testing.assert_array_equal(repeat_last(3)(window), np.repeat(window[:, -1:], 3, 1))
    season = repeat_season(4, 6)(window)
    np.testing.assert_allclose(season, window[:, [-4, -3, -2, -1, -4, -3]])


def test_ridge_is_that_of_scikit_learn_with_the_penalty_and_length_that_validate_best():
    values = waves()
    found = next(each for (each,) in fit_components([data(values)]) if each.name == RIDGE)
    errors = {}
    for lookback in lookbacks(SEASON, HORIZON, TRAIN):
        inputs, outputs = [], []
        for column in values[:TRAIN].T:
            for start in range(TRAIN - lookback - HORIZON + 1):
                window = column[start : start + lookback + HORIZON]
                window = window - window[lookback - 1]
                inputs.append(window[:lookback])
                outputs.append(window[lookback:])
        for penalty in PENALTIES:
            ridge = Ridge(penalty, fit_intercept=False).fit(inputs, outputs)
            squared = []
            for origin in data(values).origins:
                read = values[origin - lookback : origin].T
                last = read[:, -1:]
                forecast = ridge.predict(read - last) + last
                squared.append((forecast - values[origin : origin + HORIZON].T) ** 2)
            errors[lookback, penalty] = np.mean(squared), ridge.coef_.T
    lookback, penalty = min(errors, key=lambda key: errors[key][0])
    assert found.detail == f"look-back {lookback}, penalty {penalty:g}"
    np.testing.assert_allclose(found.kernel, errors[lookback, penalty][1], atol=1e-7)


def test_ridge_tries_what_smoothing_reads_of_a_long_season():
    # The baselines try the look-back of the delivered model, which smoothing can set.
    assert lookbacks(144, 720, 36_000)[-1] == 6 * 144
    assert lookbacks(144, 720, 2 * 863 + 720)[-1] == 720  # too few windows
    assert lookbacks(120, 96, 36_000)[-1] == 720
    assert lookbacks(2016, 96, 360_000)[-1] == 720  # a week of five minutes: too far
    assert lookbacks(144, 96, 36_000, 400)[-1] == 400
    assert lookbacks(144, 3000, 36_000) == [720, 864]  # beside what was tried before


@pytest.mark.parametrize("most", [3, 10, None])
def test_none_reads_more_than_is_allowed(most):
    found = [each for (each,) in fit_components([data(waves())], most)]
    assert {each.name for each in found} >= {"last value", RIDGE}
    if most is not None:
        assert max(each.lookback for each in found) <= most


def test_series_that_begin_late_or_have_holes():
    values = waves(3)
    values[:150, 1] = np.nan
    values[60:64, 2] = np.nan
    for (each,) in fit_components([data(values)]):
        assert np.isfinite(each.kernel).all()


@pytest.mark.parametrize(
    ("columns", "train", "found"),
    [
        (1, 180, {SMOOTHING, ETS, THETA}),
        (3, 180, {ETS, OWN_ETS, THETA}),
        (40, 180, {SMOOTHING}),
        (1, 1100, {SMOOTHING}),
    ],
)
def test_short_series_have_methods_of_their_own(columns, train, found):
    values = waves(columns, train + 60)
    series = LinearData(values, train, np.arange(train, train + 40), SEASON, HORIZON)
    names = {each.name for (each,) in fit_components([series])}
    assert names - {RIDGE, "last value", "seasonal naive"} == found


def test_every_fold_has_what_is_fitted_on_its_own_rows():
    values = waves(1)
    last = data(values)
    first = replace(last, train=90, origins=np.arange(90, 120))
    changed = values.copy()
    changed[90:] = 0.0
    found, *alone = (
        fit_components(folds) for folds in ([first, last], [replace(first, values=changed)], [last])
    )
    for fold, each_alone in enumerate(alone):
        for both, (single,) in zip(found, each_alone, strict=True):
            assert both[fold].name == single.name
            if single.name != RIDGE:  # chosen by the windows of all folds
                np.testing.assert_array_equal(both[fold].kernel, single.kernel)


def test_a_weighted_sum_is_one_matrix():
    rng = np.random.default_rng(0)
    shared = LinearForecaster("a", "", rng.normal(size=(3, 4)))
    own = LinearForecaster("b", "", rng.normal(size=(2, 6, 4)))
    window = rng.normal(size=(5, 8, 2))
    kernel = weighted_sum([shared, own], np.array([0.3, 0.7]))
    together = LinearForecaster("sum", "", kernel)(window)
    np.testing.assert_allclose(together, 0.3 * shared(window) + 0.7 * own(window))
