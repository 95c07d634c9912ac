"""A panel whose series a network tells apart by name, from training to an export."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from gru_training.config import RunConfig
from gru_training.forecasting.config import (
    CombinationConfig,
    ForecasterConfig,
    ForecastingConfig,
    ForecastingTrainingConfig,
    SeriesConfig,
)
from gru_training.forecasting.export.servable import ForecastingServable
from gru_training.forecasting.pipeline import train_forecasting
from gru_training.forecasting.run import ForecastingRun
from tests.made_once import made_once

LOOKBACK, HORIZON, SERIES = 5, 2, 8
WEEKEND = np.where(np.arange(SERIES) % 2, 5.0, -5.0)


def make(folder):
    """Series that are alike from Monday to Friday; on weekends half of them rise, half fall."""
    rng = np.random.default_rng(2)
    times = pd.date_range("2024-01-01", periods=420)
    values = rng.normal(0, 0.3, (420, SERIES)) + np.sin(times.day_of_week.to_numpy())[:, None]
    values += np.where(times.day_of_week.to_numpy()[:, None] >= 5, WEEKEND, 0.0)
    table = pd.DataFrame(values, columns=[f"s{number}" for number in range(SERIES)])
    table.insert(0, "ds", times)
    table.melt("ds", var_name="unique_id", value_name="y").to_csv(folder / "a.csv", index=False)
    config = ForecastingConfig(
        data=SeriesConfig(folder / "a.csv", lookback=LOOKBACK, horizon=HORIZON),
        model=ForecasterConfig(units=16, dropout=0.0),
        combination=CombinationConfig(refit=False),
        training=ForecastingTrainingConfig(epochs=6, learning_rate=5e-3),
    )
    for told in (None, True):
        train_forecasting(
            replace(
                config,
                model=replace(config.model, channel_embedding=told),
                run=RunConfig(folder, f"told-{told}"),
            )
        )


@pytest.fixture(scope="module")
def runs():
    folder = made_once("series_ids", make)
    return {told: ForecastingRun.open(folder / f"told-{told}") for told in (None, True)}


@pytest.mark.slow
def test_a_series_is_known_by_its_name(runs):
    """The five days before a weekend tell nothing of it."""
    assert runs[None].config.model.channel_embedding is False
    errors = [runs[told].metrics["model"]["test"]["mse"] for told in (None, True)]
    assert errors[1] < 0.3 * errors[0]
    network = runs[True].load_model().get_layer("network_1").get_layer("segment_gru")
    assert network.channel.shape == (SERIES + 1, 8)


@pytest.mark.slow
def test_an_unknown_series_is_forecast_as_any_of_them(runs):
    """Before a weekend neither up nor down; the known ones do as they always did."""
    servable = ForecastingServable(runs[True])
    week = np.sin(np.arange(5)).astype(np.float32)
    history = np.repeat(week[np.newaxis, :, np.newaxis], SERIES, axis=2)
    known = servable.signatures["serving_default"](history=tf.constant(history))["forecast"][0]
    expected = np.sin([5, 6])[:, np.newaxis] + WEEKEND
    np.testing.assert_allclose(known, expected, atol=1.5)
    unknown = servable.signatures["one_series"](history=tf.constant(week[np.newaxis]))
    middle = np.sin([5, 6])
    assert np.abs(unknown["forecast"][0] - middle).max() < 3.0
    assert np.isfinite(unknown["quantiles"]).all()
