"""ETS and theta as matrices, against statsmodels and recursions with loops."""

import numpy as np
import pytest
from scipy.optimize import minimize
from statsmodels.tsa.exponential_smoothing.ets import ETSModel

from gru_training.forecasting.linear import (
    ETS,
    OWN_ETS,
    THETA,
    LinearData,
    LinearForecaster,
    refitted,
)
from gru_training.forecasting.smoothing import (
    Smoothing,
    Theta,
    choose_smoothing,
    choose_theta,
    smoothing_grid,
)

RNG = np.random.default_rng(5)
HORIZON = 6


def series(rows=40, season=4, slope=0.1):
    t = np.arange(rows)
    walk = 0.3 * RNG.normal(size=rows).cumsum()
    return slope * t + np.cos(2 * np.pi * t / season) + walk


def statsmodels_ets(window, parameters, states):
    """The smoothing of statsmodels from given states: level, trend, season."""
    season, damped = parameters.season, parameters.phi < 1
    known = {"initial_level": states[0], "initial_trend": states[1]}
    given = [parameters.alpha, parameters.beta]
    if season > 1:
        known["initial_seasonal"] = states[2:]
        given.append(parameters.gamma)
    model = ETSModel(
        window,
        error="add",
        trend="add",
        damped_trend=damped,
        seasonal="add" if season > 1 else None,
        seasonal_periods=season if season > 1 else None,
        initialization_method="known",
        **known,
    )
    return model.smooth([*given, *([parameters.phi] if damped else [])])


@pytest.mark.parametrize("season", [1, 4])
@pytest.mark.parametrize("phi", [1.0, 0.9])
def test_a_kernel_is_the_smoothing_of_statsmodels_from_the_best_states(season, phi):
    window = series(24)
    parameters = Smoothing(season, 0.37, 0.11, phi, 0.23 if season > 1 else 0.0)

    def squares(states):
        return float((statsmodels_ets(window, parameters, states).resid ** 2).sum())

    first = np.zeros(2 + (season if season > 1 else 0))
    best = minimize(squares, first, method="BFGS", options={"gtol": 1e-4})
    expected = statsmodels_ets(window, parameters, best.x).forecast(HORIZON)
    found = window @ parameters.kernel(len(window), HORIZON)
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_without_a_trend_a_kernel_is_a_weighted_mean_of_what_was():
    kernel = Smoothing(1, 0.3).kernel(12, 4)
    np.testing.assert_allclose(kernel, np.repeat(kernel[:, :1], 4, axis=1))
    assert (kernel > 0).all()


def test_what_is_added_to_a_window_is_added_to_its_forecast():
    for each in (
        Smoothing(3, 0.2, 0.02, 0.9, 0.3),
        Smoothing(1, 0.5),
        Theta(3, 0.3),
        Theta(1, 1.0),
    ):
        np.testing.assert_allclose(each.kernel(12, 5).sum(axis=0), 1.0, atol=1e-3)


def aicc(values, parameters, ahead):
    """With loops, and states from a regression on the errors that each of them makes alone."""
    season, states = parameters.season, 2 + (parameters.season if parameters.season > 1 else 0)

    def errors(values, first):
        """The errors (N, A) of each step ahead, NaN where it is beyond the values."""
        level, trend, seasonal = first[0], first[1], list(first[2:]) or [0.0]
        found = np.full((len(values), len(ahead)), np.nan)
        for t, value in enumerate(values):
            for place, step in enumerate(ahead):
                if t + step - 1 < len(values):
                    growth = sum(parameters.phi**power for power in range(1, step + 1))
                    forecast = level + growth * trend + seasonal[(t + step - 1) % season]
                    found[t, place] = values[t + step - 1] - forecast
            error = value - level - parameters.phi * trend - seasonal[t % season]
            level += parameters.phi * trend + parameters.alpha * error
            trend = parameters.phi * trend + parameters.beta * error
            seasonal[t % season] += parameters.gamma * error
        return found

    alone = [errors(np.zeros(len(values)), each) for each in np.eye(states)]
    own = errors(values, np.zeros(states))
    one = ahead.index(1)
    design = np.stack([each[:, one] for each in alone], axis=1)
    first = np.linalg.lstsq(design, -own[:, one], rcond=None)[0]
    whole = own + sum(each * weight for each, weight in zip(alone, first, strict=True))
    n, k = len(values), parameters.estimated
    size = np.log(np.nanmean(whole**2, axis=0)).mean()
    return n * size + 2 * k + 2 * k * (k + 1) / (n - k - 1)


@pytest.mark.parametrize("season", [1, 4])
@pytest.mark.parametrize("ahead", [[1], [1, 3, 6]])
def test_the_parameters_have_the_least_aicc(season, ahead):
    values = series(30, slope=0.3)
    (found,) = choose_smoothing([values], season, ahead)
    grid = [each for of in {1, season} for each in smoothing_grid(of)]
    tried = {each: aicc(values, each, ahead) for each in (*grid[::7], found)}
    assert tried[found] < min(tried.values()) + 1e-2


def test_columns_that_are_unlike_have_parameters_of_their_own():
    noise, walk = RNG.normal(size=120), RNG.normal(size=120).cumsum()
    still, moving = choose_smoothing([noise, walk], 1)
    assert still.alpha < moving.alpha


def test_regular_columns_decide_for_others_only_where_parameters_are_shared():
    steps = np.arange(120)
    lines = [np.sin(steps / 9) * size + 1e-3 * RNG.normal(size=120) for size in (1, 2, 3)]
    noise = RNG.normal(size=120)
    alone = choose_smoothing([noise], 1)[0]
    assert choose_smoothing([*lines, noise], 1, shared=False)[-1] == alone
    assert choose_smoothing([*lines, noise], 1)[-1].alpha > 0.9 > alone.alpha


@pytest.mark.parametrize("name", [ETS, THETA])
@pytest.mark.parametrize(("lookback", "seasonal"), [(15, False), (16, True), (23, True)])
def test_a_season_needs_a_third_of_it_twice(name, lookback, seasonal):
    """Series of 36 months are short, but their season stands out."""
    season = 20 * np.cos(2 * np.pi * np.arange(48) / 12) + series(48) / 10
    data = LinearData(season[:36, np.newaxis], 36, np.array([36]), 12, HORIZON)
    found = refitted(LinearForecaster(name, "", np.zeros((lookback, HORIZON)), 12), data)
    read = season[36 - lookback : 36].reshape(1, lookback, 1)
    away = np.abs(found(read)[0, :, 0] - season[36 : 36 + HORIZON]).max()
    assert (away < 5) == seasonal


def test_theta_is_the_mean_of_a_line_and_of_smoothing_what_is_twice_as_curved():
    """The definition of Assimakopoulos and Nikolopoulos, season by season means beside a line."""
    season, values, alpha = 4, series(26), 0.35
    t = np.arange(26 + HORIZON)
    design = np.column_stack([t, np.eye(season)[t % season]])
    fitted = np.linalg.lstsq(design[:26], values, rcond=None)[0]
    seasonal = design[:, 1:] @ (fitted[1:] - fitted[1:].mean())
    line = fitted[0] * t + fitted[1:].mean()
    curved = 2 * (values - seasonal[:26]) - line[:26]
    level = line[0]  # where the curve begins if the series begins on its line
    for value in curved:
        level += alpha * (value - level)
    expected = (line[26:] + level) / 2 + seasonal[26:]
    np.testing.assert_allclose(values @ Theta(season, alpha).kernel(26, HORIZON), expected)


def test_theta_takes_a_season_where_there_is_one():
    seasonal, plain = series(80), RNG.normal(size=80).cumsum()
    assert choose_theta([seasonal], 4)[0].season == 4
    assert choose_theta([plain], 4)[0].season == 1


@pytest.mark.parametrize("name", [ETS, OWN_ETS, THETA])
def test_nothing_before_the_first_value_of_a_column_is_read(name):
    values = np.column_stack([series(60), series(60), series(60)])
    values[:45, 1] = np.nan
    values[50, 2] = np.nan
    data = LinearData(values, 60, np.array([60]), 4, HORIZON)
    kind = LinearForecaster(name, "", np.zeros((3, 32, HORIZON)), 4)
    kernel = refitted(kind, data).kernel
    assert kernel.shape == (3, 32, HORIZON)
    assert not kernel[1, :17].any()
    assert kernel[1, 17:].any()
    assert np.isfinite(kernel).all()


@pytest.mark.parametrize("name", [ETS, THETA])
def test_a_column_that_never_varies_is_forecast_as_it_is(name):
    data = LinearData(np.full((40, 1), 2.5), 40, np.array([40]), 4, HORIZON)
    found = refitted(LinearForecaster(name, "", np.zeros((16, HORIZON)), 4), data)
    np.testing.assert_allclose(found(np.full((1, 16, 1), 2.5)), 2.5, atol=1e-3)
