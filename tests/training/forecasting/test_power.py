import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy.special import boxcox1p

from gru_serving.preprocessing.operations import tensors
from gru_serving.preprocessing.series import powers, roots
from gru_training.data.series import Series
from gru_training.forecasting.config import ForecastingConfig, SeriesConfig
from gru_training.forecasting.plan import InitialWeights, make_plan
from gru_training.forecasting.preprocessor import SeriesPreprocessor, steady_exponent

RNG = np.random.default_rng(3)
VALUES = np.concatenate([[0, 1e-6, 1e-3, 0.5, 1, 7, 300, 2e7], RNG.gamma(2, 50, 40)])


@pytest.mark.parametrize("exponent", [0.0, 0.3, 0.5, 0.9, 1.0])
def test_arrays_and_graphs_are_box_and_cox(exponent):
    expected = boxcox1p(VALUES, exponent)
    np.testing.assert_allclose(powers(VALUES, exponent), expected)
    np.testing.assert_allclose(roots(expected, exponent), VALUES, rtol=1e-9, atol=1e-12)
    single = tf.constant(VALUES, tf.float32)
    np.testing.assert_allclose(powers(single, exponent, tensors()), expected, rtol=1e-5)
    read = tf.constant(expected, tf.float32)
    np.testing.assert_allclose(roots(read, exponent, tensors()), VALUES, rtol=2e-4)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_nothing_below_zero_goes_in_or_comes_out(exponent):
    np.testing.assert_array_equal(powers(np.array([-3.0, 0.0]), exponent), [0, 0])
    np.testing.assert_array_equal(roots(np.array([-3.0, 0.0]), exponent), [0, 0])
    found = roots(tf.constant([-3.0, 0.0, 1e30]), exponent, tensors()).numpy()
    np.testing.assert_array_equal(found[:2], [0, 0])
    assert np.isfinite(found).all()
    assert np.isfinite(roots(np.array([1e30]), exponent)).all()
    assert np.isnan(powers(np.array([np.nan]), exponent)).all()


@pytest.mark.parametrize(("shape", "expected"), [(0.5, 0.5), (0.3, 0.7), (0.0, 0.9), (1.0, 0.1)])
def test_the_exponent_that_makes_seasons_vary_alike(shape, expected):
    """Deviations that grow as a power of the level: the exponent is what is left to one.

    Beyond .1 and .9 the logarithm and no transform are meant, which are tried by themselves.
    """
    level = np.exp(RNG.uniform(3, 8, 400))[:, np.newaxis]
    season = level + level**shape * RNG.normal(size=(400, 12)) * 0.5
    found = steady_exponent(np.maximum(season.reshape(-1, 1), 0), 12)
    assert found == pytest.approx(expected, abs=0.05)


def test_too_few_seasons_or_missing_ones_have_an_exponent_too():
    assert steady_exponent(np.arange(10.0)[:, np.newaxis], 12) == 0.5
    holed = np.full((60, 2), np.nan)
    holed[:, 0] = RNG.gamma(3, 1, 60)
    assert 0.1 <= steady_exponent(holed, 12) <= 0.9


def test_the_scale_is_stored(tmp_path):
    rows = RNG.gamma(2, 50, (90, 3))
    made = SeriesPreprocessor.fit(rows, (0, 2), np.array([True, False, True]), 0.4)
    made.save(tmp_path / "scaler.json")
    read = SeriesPreprocessor.load(tmp_path / "scaler.json")
    history = rows[np.newaxis].astype(np.float32)
    np.testing.assert_array_equal(read.standardise(history), made.standardise(history))
    standardised = read.standardise(history).numpy()[..., [0, 2]]
    np.testing.assert_allclose(read.restore(standardised), history[..., [0, 2]], rtol=1e-4)
    np.testing.assert_allclose(
        read.measured(standardised), made.plain.standardise(history).numpy()[..., [0, 2]], atol=1e-4
    )


@pytest.mark.parametrize(
    ("shift", "transform"),
    [(0, "nonnegative"), (0.5, "none"), (1, "nonnegative"), (20, "none")],
    ids=["counts", "measurements", "counts with zeros", "below zero"],
)
def test_without_a_power_counts_are_not_forecast_below_zero(shift, transform):
    """Whole numbers are counts though seldom zero; of measurements anything may come."""
    steps = np.arange(200)
    of_weekday = np.array([20, 30, 25, 30, 40, 6, 6])[steps % 7]
    noise = np.random.default_rng(3).normal(0, 6, len(steps))
    values = np.maximum(1, np.round(of_weekday + noise)) - shift
    values[7] = np.nan
    times = pd.date_range("2023-01-02", periods=len(steps)).as_unit("ns").to_numpy()
    series = Series("x", "x", ("sold",), values[:, np.newaxis], times, "D")
    plan = make_plan(series, InitialWeights(ForecastingConfig(data=SeriesConfig(horizon=7))))
    assert plan.config.data.transform == transform
