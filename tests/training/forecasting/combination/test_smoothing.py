"""Window smoothing as a matrix, against statsmodels' recursion from the same first states."""

import numpy as np
import pytest
from statsmodels.tsa.exponential_smoothing.ets import ETSModel

from gru_training.forecasting.linear import (
    SmoothingParameters,
    fit_smoothing,
    parameter_grid,
    smoothing_kernels,
    window_gram,
)

RNG = np.random.default_rng(5)


def first_states(window, season):
    """As the docstring says, with loops."""
    if season == 1:
        return window[0], 0.0, None
    first, second = window[:season].mean(), window[season : 2 * season].mean()
    trend = (second - first) / season
    middle = (season - 1) / 2
    seasonal = [window[i] - first - trend * (i - middle) for i in range(season)]
    return first - trend * (middle + 1), trend, seasonal


@pytest.mark.parametrize("season", [1, 4])
@pytest.mark.parametrize("phi", [1.0, 0.9])
def test_a_kernel_is_the_recursion_of_statsmodels(season, phi):
    lookback, horizon = 19, 6
    parameters = SmoothingParameters(0.37, 0.11, phi, 0.23 if season > 1 else 0.0)
    (kernel,) = smoothing_kernels([parameters], season, lookback, horizon)
    window = RNG.normal(size=lookback).cumsum()
    level, trend, seasonal = first_states(window, season)
    known = {"initial_level": level, "initial_trend": trend}
    given = [parameters.alpha, parameters.beta]
    if season > 1:
        # statsmodels lists the seasonal states from the latest back.
        known["initial_seasonal"] = seasonal
        given.append(parameters.gamma)
    model = ETSModel(
        window,
        error="add",
        trend="add",
        damped_trend=phi < 1,
        seasonal="add" if season > 1 else None,
        seasonal_periods=season if season > 1 else None,
        initialization_method="known",
        **known,
    )
    expected = model.smooth([*given, *([phi] if phi < 1 else [])]).forecast(horizon)
    np.testing.assert_allclose(window @ kernel, expected, rtol=1e-9)


def test_what_is_added_to_a_window_is_added_to_its_forecast():
    kernels = smoothing_kernels(parameter_grid(3), 3, 10, 5)
    np.testing.assert_allclose(kernels.sum(axis=1), 1.0, atol=1e-9)


@pytest.mark.parametrize("horizon", [3, 4, 30])
def test_the_best_parameters_are_found(horizon):
    """By the error on every training window, computed one after the other."""
    season, lookback = 4, 12
    t = np.arange(90)
    columns = np.column_stack(
        [np.sin(t * np.pi / 2) + 0.1 * RNG.normal(size=90), RNG.normal(size=90).cumsum()]
    )
    grams, errors = [], []
    kernels = smoothing_kernels(parameter_grid(season), season, lookback, horizon)
    for column in columns.T:
        windows = np.lib.stride_tricks.sliding_window_view(column, lookback + horizon)
        windows = windows - windows[:, lookback - 1 : lookback]
        gram = window_gram(column, lookback + horizon)
        last = gram[:, lookback - 1]
        gram = gram - last[:, np.newaxis] - last + last[lookback - 1]
        np.testing.assert_allclose(gram, windows.T @ windows, atol=1e-8)
        grams.append(gram)
        residuals = windows[:, :lookback] @ kernels - windows[:, lookback:]
        errors.append((residuals**2).sum(axis=(1, 2)))
    found = fit_smoothing(np.sum(grams, axis=0), season, lookback, horizon)
    best = parameter_grid(season)[np.sum(errors, axis=0).argmin()]
    (expected,) = smoothing_kernels([best], season, lookback, horizon)
    np.testing.assert_array_equal(found.kernel, expected)
