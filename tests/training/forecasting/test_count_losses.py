"""Losses for counts beside SciPy's distributions and scikit-learn's deviance."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy.stats import nbinom
from sklearn.metrics import mean_poisson_deviance

from gru_training.config import RunConfig
from gru_training.errors import ConfigError, DataError
from gru_training.forecasting.config import (
    CombinationConfig,
    ForecasterConfig,
    ForecastingConfig,
    ForecastingTrainingConfig,
    SeriesConfig,
)
from gru_training.forecasting.losses import count_loss, count_metrics, dispersion, with_scale
from gru_training.forecasting.pipeline import train_forecasting

SCALE = np.array([[4.0, 90.0], [3.0, 25.0]])  # mean and deviation of two columns


def case(rows=6, steps=5):
    rng = np.random.default_rng(6)  # the same, whichever tests run
    counts = rng.poisson(SCALE[0], (rows, steps, 2)).astype(float)
    means = SCALE[0] * rng.uniform(0.4, 2, (rows, steps, 2))
    counts[0, 0] = 0
    standardised = [((of - SCALE[0]) / SCALE[1]).astype(np.float32) for of in (counts, means)]
    return counts, means, with_scale(standardised[0], SCALE), standardised[1][..., np.newaxis]


def test_poisson_is_half_the_deviance_of_scikit_learn():
    counts, means, targets, answers = case()
    found = count_loss("poisson", 1.0)(targets, answers).numpy()
    for row in range(len(counts)):
        halves = [
            mean_poisson_deviance(counts[row, :, k], means[row, :, k]) / 2 / SCALE[1, k]
            for k in range(2)
        ]
        assert found[row] == pytest.approx(np.mean(halves), rel=1e-4)


@pytest.mark.parametrize("size", [0.7, 5.0])
def test_negative_binomial_is_the_loss_of_likelihood(size):
    counts, means, targets, answers = case()
    found = count_loss("negative_binomial", size)(targets, answers).numpy()
    likelihood = nbinom.logpmf(counts, size, size / (size + means))
    best = nbinom.logpmf(counts, size, size / (size + np.maximum(counts, 1e-12)))
    expected = ((best - likelihood) / SCALE[1]).mean(axis=(1, 2))
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-4)
    nearly = count_loss("negative_binomial", 1e6)(targets, answers).numpy()
    np.testing.assert_allclose(nearly, count_loss("poisson", 1.0)(targets, answers), rtol=2e-4)


def test_missing_values_and_answers_below_zero():
    """The former count nowhere; the latter are pushed up."""
    counts, _, targets, answers = case()
    targets[1, 2:4, 0] = np.nan
    for kind in ("poisson", "negative_binomial"):
        loss = count_loss(kind, 3.0)
        assert np.isfinite(loss(targets, answers)).all()
        low = tf.Variable(np.full_like(answers, -9.0))
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(loss(targets, low))
        slope = tape.gradient(value, low).numpy()[..., 0]
        assert np.isfinite(slope).all()
        sold = np.where(np.isnan(targets[:, :5]), 0, counts) > 0
        assert (slope[sold] < 0).all()
    mse = count_metrics()["mse"](targets, answers).numpy()
    expected = np.nanmean((targets[1, :5] - answers[1, ..., 0]) ** 2)
    assert mse[1] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kind", ["poisson", "negative_binomial"])
def test_what_known_inputs_add_counts(kind):
    """Taken off truth and answer alike, and told beside them, it changes no loss."""
    _, _, targets, answers = case()
    effects = np.random.default_rng(7).normal(0, 0.3, (6, 5, 2)).astype(np.float32)
    rest = with_scale(targets[:, :5] - effects, SCALE, effects)
    expected = count_loss(kind, 3.0)(targets, answers)
    found = count_loss(kind, 3.0)(rest, answers - effects[..., np.newaxis])
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_dispersion_is_that_of_the_distribution():
    mean = 20 * np.exp(np.sin(np.arange(6000) / 400))[:, np.newaxis]
    rng = np.random.default_rng(8)
    counts = rng.negative_binomial(4.0, 4.0 / (4.0 + mean)).astype(float)
    counts[100:110] = np.nan
    assert dispersion(counts, 7) == pytest.approx(4.0, rel=0.15)
    assert dispersion(rng.poisson(mean).astype(float), 7) > 100


def shop(folder, long):
    t = pd.date_range("2023-01-01", periods=220)
    mean = 3 + 2 * np.sin(2 * np.pi * np.arange(220) / 7)
    rng = np.random.default_rng(9)
    table = pd.DataFrame({"ds": t, **{f"p{n}": rng.poisson(mean * (n + 1)) for n in range(3)}})
    if long:
        table = table.melt("ds", var_name="unique_id", value_name="y")
    table.to_csv(folder / "shop.csv", index=False)
    return folder / "shop.csv"


def settings(folder, path, loss="poisson", **data):
    return ForecastingConfig(
        data=SeriesConfig(path, lookback=14, horizon=7, **data),
        model=ForecasterConfig(units=4, segment=7, loss=loss),
        combination=CombinationConfig(refit=False),
        training=ForecastingTrainingConfig(epochs=2),
        run=RunConfig(folder, loss),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "long"),
    [pytest.param("poisson", False, marks=pytest.mark.long), ("negative_binomial", True)],
)
def test_networks_are_trained_with_them(tmp_path, loss, long):
    run = train_forecasting(settings(tmp_path, shop(tmp_path, long), loss))
    assert run.config.data.transform == "nonnegative"
    forecasts, quantiles = run.test_answers(20)
    assert (forecasts >= 0).all()
    assert (quantiles >= 0).all()
    networks = [share for share in run.combination["shares"] if share["network"]]
    assert all(share["validation_mse"] < 4 for share in networks)


@pytest.mark.long
@pytest.mark.parametrize("long", [False, True])
def test_known_inputs_lower_the_error_of_counts(tmp_path, long):
    """Promotions that triple what is sold, in a wide table and in one of three series."""
    rng = np.random.default_rng(5)
    times = pd.date_range("2023-01-01", periods=300)
    promoted = rng.random((300, 3 if long else 1)) < 0.25
    sold = rng.poisson(np.array([4.0, 9.0, 20.0]) * np.where(promoted, 3, 1))
    table = pd.DataFrame({"ds": times, **{f"p{n}": sold[:, n] for n in range(3)}})
    if long:
        table = table.melt("ds", var_name="unique_id", value_name="y")
        table["promo"] = promoted.T.ravel().astype(int)
    else:
        table["promo"] = promoted[:, 0].astype(int)
    path = tmp_path / "shop.csv"
    table.to_csv(path, index=False)
    runs = []
    for future in ((), ("promo",)):
        target = () if long else ("p0", "p1", "p2")
        config = settings(tmp_path / f"runs{len(future)}", path, future=future, target=target)
        runs.append(train_forecasting(config))
    without, known = (run.metrics["model"]["test"]["mse"] for run in runs)
    assert known < 0.6 * without
    assert runs[1].combination["criterion"] == "mean half deviance"
    forecasts, _ = runs[1].test_answers(20)
    assert (forecasts >= 0).all()


def test_what_they_cannot_be_used_with(tmp_path):
    path = shop(tmp_path, long=False)
    with pytest.raises(
        ConfigError, match="--loss poisson needs --transform nonnegative, got log1p"
    ):
        train_forecasting(settings(tmp_path, path, transform="log1p"))
    table = pd.read_csv(path)
    table.loc[3, "p1"] = -2
    table.to_csv(path, index=False)
    with pytest.raises(DataError, match="column 'p1': expected counts, got values below zero"):
        train_forecasting(settings(tmp_path, path))
