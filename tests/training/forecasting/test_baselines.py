from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.exponential_smoothing.ets import ETSModel

from gru_training.data.series import Series
from gru_training.forecasting.config import SeriesConfig
from gru_training.forecasting.data import prepare
from gru_training.forecasting.evaluation import ErrorSums
from gru_training.forecasting.linear import LAST_VALUE, RIDGE, SEASONAL_NAIVE, SMOOTHING, filled
from gru_training.forecasting.simple import (
    SmoothingForecaster,
    fit_baselines,
    ridge_lookbacks,
    suits,
)
from tests.training.forecasting.reading import load_forecasting_data


def seasonal_series(rows=400, season=12, noise=0.1, seed=0, frequency="MS"):
    rng = np.random.default_rng(seed)
    t = np.arange(rows)
    wave = np.sin(2 * np.pi * t / season)
    values = np.column_stack([wave + 0.005 * t, -2 * wave]) + noise * rng.normal(size=(rows, 2))
    times = pd.date_range("1990-01-01", periods=rows, freq=frequency)
    return Series("waves", "waves.csv", ("up", "down"), values, times.to_numpy(), frequency)


def test_errors_are_means_over_what_was_seen():
    rng = np.random.default_rng(0)
    targets, forecasts = rng.normal(size=(2, 50, 4, 3))
    targets[rng.random(targets.shape) < 0.2] = np.nan
    targets[:, 2, 1] = np.nan
    mean, deviation = np.array([5.0, 0.0, -1.0]), np.array([1.0, 2.0, 0.5])
    sums = ErrorSums(4, 3, (mean, deviation))
    for rows in (slice(0, 7), slice(7, 50)):
        sums.add(targets[rows], forecasts[rows])
    errors = sums.means()
    residual = targets - forecasts
    assert errors.mse == pytest.approx(np.nanmean(residual**2))
    assert errors.mae == pytest.approx(np.nanmean(np.abs(residual)))
    np.testing.assert_allclose(errors.by_horizon()[0], np.nanmean(residual**2, axis=(0, 2)))
    np.testing.assert_allclose(errors.by_column()[1], np.nanmean(np.abs(residual), axis=(0, 1)))
    assert np.isnan(errors.squared[2, 1])
    truth, forecast = targets * deviation + mean, forecasts * deviation + mean
    shares = 200 * np.abs(truth - forecast) / (np.abs(truth) + np.abs(forecast))
    assert errors.smape == pytest.approx(np.nanmean(shares))
    np.testing.assert_allclose(
        errors.of_columns(errors.percentage), np.nanmean(shares, axis=(0, 1))
    )
    absolute, root = errors.raw(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(absolute, errors.by_column()[1] * [1, 2, 3])
    np.testing.assert_allclose(root, np.sqrt(errors.by_column()[0]) * [1, 2, 3])


def test_a_zero_forecast_of_a_zero_is_no_percentage_error():
    counts = np.random.default_rng(0).poisson(0.3, (2, 200, 4, 1)).astype(float)
    mean, deviation = np.array([0.31]), np.array([0.57])
    sums = ErrorSums(4, 1, (mean, deviation))
    truth, forecast = counts
    standardised = (counts - mean) / deviation
    sums.add(standardised[0].astype(np.float32), standardised[1])
    sizes = np.maximum(truth + forecast, 1)  # 0 of 0 is right
    assert sums.means().smape == pytest.approx(np.mean(200 * abs(truth - forecast) / sizes))


@pytest.mark.slow
def test_all_baselines_on_a_seasonal_series():
    data = prepare(seasonal_series(), SeriesConfig())
    assert ridge_lookbacks(data) == [36, 96]
    fitted = fit_baselines(data)
    by_name = {result.name: result for result in fitted.results}
    assert list(by_name) == [LAST_VALUE, SEASONAL_NAIVE, RIDGE, SMOOTHING]
    assert by_name[SEASONAL_NAIVE].test.mse < by_name[LAST_VALUE].test.mse / 5
    assert by_name[RIDGE].test.mse < by_name[SEASONAL_NAIVE].test.mse
    assert by_name[SMOOTHING].test.mse < by_name[SEASONAL_NAIVE].test.mse
    best = min(fitted.ridge_by_lookback.values())
    assert (by_name[RIDGE].validation.mse, by_name[RIDGE].test.mse) == best


@pytest.mark.parametrize("damped", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_smoothing_forecasts_are_those_of_statsmodels(damped, missing):
    series = seasonal_series()
    if missing:
        series.values[100:104, 0] = np.nan
    data = prepare(series, SeriesConfig(horizon=18))
    origins = data.windows("test").origins[[0, 7, -1]]
    forecasts = SmoothingForecaster(data, damped).forecasts(origins)
    for k in range(2):
        column = filled(data.standardised_targets[:, k].astype(np.float64))
        options = {"trend": "add", "damped_trend": damped, "seasonal": "add",
                   "seasonal_periods": 12, "initialization_method": "heuristic"}  # fmt: skip
        fitted = ETSModel(column[: data.borders.train], **options).fit(disp=False)
        for row, origin in enumerate(origins):
            expected = ETSModel(column[:origin], **options).smooth(fitted.params).forecast(18)
            np.testing.assert_allclose(forecasts[row, :, k], expected, rtol=1e-9)


@pytest.mark.parametrize("damped", [False, True])
def test_smoothing_reads_nothing_after_an_origin(damped):
    """With fewer than five seasons to fit on, later rows could leak into the initial states."""
    series = seasonal_series(72)
    data = prepare(series, SeriesConfig(lookback=12, horizon=3, validation_fraction=0.1))
    assert data.borders.train == 51
    later = series.values.copy()
    origin = data.borders.train + 2
    later[origin:] = 100 * np.random.default_rng(1).normal(size=later[origin:].shape)
    config = SeriesConfig(lookback=12, horizon=3, validation_fraction=0.1)
    changed = prepare(replace(series, values=later), config)
    origins = np.arange(data.borders.train, origin + 1)
    np.testing.assert_array_equal(
        SmoothingForecaster(data, damped).forecasts(origins),
        SmoothingForecaster(changed, damped).forecasts(origins),
    )


@pytest.mark.parametrize(("rows", "season", "detail"), [
    (14, 4, "no season"), (16, 6, "no season"), (20, 4, "season 4"), (26, 6, "season 6"),
])  # fmt: skip
def test_smoothing_of_short_series(rows, season, detail):
    config = SeriesConfig(lookback=2, horizon=1, season=season)
    data = prepare(seasonal_series(rows, season), config)
    result = fit_baselines(data).results[-1]
    assert result.name == SMOOTHING
    assert result.detail.startswith(f"{detail}, ")
    assert np.isfinite(result.test.mse)


def test_smoothing_needs_ten_training_rows_and_a_season_before_an_origin():
    data = prepare(seasonal_series(13, 4), SeriesConfig(lookback=2, horizon=1, season=4))
    assert data.borders.train == 10
    assert suits(data)
    data = prepare(seasonal_series(12, 4), SeriesConfig(lookback=2, horizon=1, season=4))
    assert data.borders.train == 9
    assert SMOOTHING not in {result.name for result in fit_baselines(data).results}
    data = prepare(seasonal_series(), SeriesConfig())
    with pytest.raises(ValueError, match="origins must be at least 12, the season, got 11"):
        SmoothingForecaster(data, damped=False).forecasts(np.array([40, 11]))


def test_smoothing_is_for_small_series():
    data = prepare(seasonal_series(), SeriesConfig())
    assert suits(data)
    assert not suits(prepare(seasonal_series(5001, frequency="D"), SeriesConfig()))


def test_naive_forecasts_know_values_from_before_a_gap():
    """Like the network: in a gap it reads the last value before it."""
    series = seasonal_series(120, 4, noise=0.0)
    expected = {}
    for name, row in ((LAST_VALUE, 118), (SEASONAL_NAIVE, 115)):
        gone = series.values.copy()
        gone[115:119] = np.nan
        data = prepare(
            replace(series, values=gone),
            SeriesConfig(lookback=8, horizon=1, season=4, test_fraction=0.01),
        )
        assert data.borders.test - data.borders.validation == 1
        result = next(each for each in fit_baselines(data).results if each.name == name)
        expected[name] = data.standardised_targets[119] - data.standardised_targets[114]
        assert np.isnan(gone[row]).all()
        np.testing.assert_allclose(result.test.absolute[0], np.abs(expected[name]), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.data
def test_known_results_of_naive_forecasts(real_data):
    config = SeriesConfig(real_data / "ett" / "ETTh1.csv", lookback=336, horizon=96)
    by_name = {
        result.name: result for result in fit_baselines(load_forecasting_data(config)).results
    }
    # Last value: the literature's repeat baseline; last day and ridge: closed forms.
    assert by_name[LAST_VALUE].test.mse == pytest.approx(1.294, abs=1e-3)
    assert by_name[LAST_VALUE].test.mae == pytest.approx(0.713, abs=1e-3)
    assert by_name[SEASONAL_NAIVE].test.mse == pytest.approx(0.512, abs=1e-3)
    assert by_name[SEASONAL_NAIVE].test.mae == pytest.approx(0.433, abs=1e-3)
    assert by_name[RIDGE].test.mse == pytest.approx(0.3701, abs=1e-3)
    assert by_name[RIDGE].test.mae == pytest.approx(0.3914, abs=1e-3)
    assert SMOOTHING not in by_name
