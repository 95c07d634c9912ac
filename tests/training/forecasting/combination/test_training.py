"""Combinations from end to end: what is delivered is what was weighed."""

import json
from dataclasses import replace

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy.special import boxcox1p, inv_boxcox1p

from gru_training.config import RunConfig
from gru_training.forecasting.config import (
    CombinationConfig,
    ForecasterConfig,
    ForecastingConfig,
    ForecastingTrainingConfig,
    SeriesConfig,
)
from gru_training.forecasting.export.servable import ForecastingServable
from gru_training.forecasting.future import forecast, recent_of_run
from gru_training.forecasting.pipeline import train_forecasting
from gru_training.forecasting.preprocessor import make_predictor
from gru_training.forecasting.run import ForecastingRun
from tests.made_once import made_once
from tests.training.conftest import write_waves
from tests.training.forecasting.reading import load_forecasting_data


def config(folder, data, name="both", **combination):
    return ForecastingConfig(
        data=SeriesConfig(data, horizon=6),
        model=ForecasterConfig(units=4),
        combination=CombinationConfig(**combination),
        training=ForecastingTrainingConfig(epochs=1),
        run=RunConfig(folder, name),
    )


@pytest.fixture(scope="module")
def run():
    def make(folder):
        train_forecasting(config(folder, write_waves(folder / "waves.csv", 400)))

    return ForecastingRun.open(made_once("combined", make) / "both")


@pytest.mark.slow
def test_no_simple_forecaster_validates_better(run):
    model = run.metrics["model"]
    for name, floor in run.metrics["baselines"].items():
        assert model["validation"]["mse"] <= floor["validation"]["mse"] * 1.001, name
    shares = run.combination["shares"]
    assert sum(share["weight"] for share in shares) == pytest.approx(1)
    assert {share["name"] for share in shares} >= {"GRU", "GRU on ridge", "ridge"}


def test_errors_are_those_of_the_stored_model_in_raw_units(run):
    data = load_forecasting_data(run.config.data)
    model, preprocessor = run.load_model(), run.preprocessor()
    windows = data.windows("test")
    answers = model(preprocessor.standardise(windows.histories()))[..., :1]
    raw = preprocessor.restore(answers).numpy()[..., 0]
    truth = data.series.values[windows.origins[:, None] + np.arange(6)]
    train = data.series.values[: data.borders.train]
    squared = ((raw - truth) / np.nanstd(train, axis=0)) ** 2
    assert run.metrics["model"]["test"]["mse"] == pytest.approx(np.nanmean(squared), rel=1e-3)


def test_the_forecast_is_that_of_the_model_trained_on_all_rows(run):
    rows = len(load_forecasting_data(run.config.data).series)
    epochs = -(-run.metrics["best_epoch"] // 2)
    assert run.metrics["refit"] == {"rows": rows, "epochs": epochs}
    delivered, measured = run.delivered_model(), run.load_model()
    table = forecast(run, recent_of_run(run))
    other = forecast(run, recent_of_run(run), predict=make_predictor(measured, run.preprocessor()))
    assert delivered.count_params() == measured.count_params()
    assert (table["forecast"] != other["forecast"]).any()
    np.testing.assert_allclose(table["forecast"], other["forecast"], rtol=0.3, atol=3)
    assert "trained further on all" in (run.path / "report.md").read_text()


def test_the_settings_of_the_run_leave_nothing_open(run):
    settings = json.loads((run.path / "config.json").read_text())
    assert settings["data"]["lookback"] == run.shape.lookback
    assert settings["data"]["transform"] == "none"  # a column has negative values
    assert settings["model"]["segment"] is not None
    assert len(run.history) == 1


@pytest.mark.slow
def test_daily_data_of_many_series_of_unequal_length(tmp_path):
    """Forty of them in long form, of which some begin late and one ends early: one network."""
    rng = np.random.default_rng(0)
    t = np.arange(160)
    values = 20 + 5 * np.sin(2 * np.pi * t / 7)[:, None] + rng.normal(size=(160, 40))
    values[:70, :5] = np.nan
    values[100:, 7] = np.nan
    wide = pd.DataFrame(values, columns=[f"p{number:02}" for number in range(40)])
    wide.insert(0, "ds", pd.date_range("2024-01-01", periods=160))
    long = wide.melt("ds", var_name="unique_id", value_name="y").dropna()
    long.to_csv(tmp_path / "shop.csv", index=False)
    settings = config(tmp_path, tmp_path / "shop.csv", refit=False)
    settings = replace(settings, model=replace(settings.model, intervals=(0.5, 0.9)))
    run = train_forecasting(replace(settings, data=replace(settings.data, horizon=None)))
    assert run.shape.horizon == 7
    assert run.config.model.channel_embedding is False
    assert not (run.path / "delivered.keras").exists()
    naive = run.metrics["baselines"]["seasonal naive"]["test"]["mse"]
    assert run.metrics["model"]["test"]["mse"] < 0.9 * naive
    assert "The worst ten" not in (run.path / "report.md").read_text()  # forty have room

    table = forecast(run, recent_of_run(run))
    assert [name for name in table if "-" in name] == ["lo-50", "hi-50", "lo-90", "hi-90"]
    assert sorted(set(table["unique_id"])) == sorted(set(wide.columns) - {"ds", "p07"})

    servable = ForecastingServable(run)
    history = tf.constant(values[np.newaxis, -run.shape.lookback :], tf.float32)
    answer = servable.signatures["serving_default"](history=history)
    ended = np.isnan(answer["forecast"].numpy()[0]).all(axis=0)
    assert [run.target_columns[k] for k in np.flatnonzero(ended)] == ["p07"]
    of_series = table.set_index("unique_id")["forecast"]
    for k, name in enumerate(run.target_columns):
        if name != "p07":
            np.testing.assert_allclose(answer["forecast"][0, :, k], of_series[name], rtol=1e-5)
    # A series that it never saw, on a scale of its own: as if it stood in a column of the model.
    new = (1000 + 300 * np.sin(2 * np.pi * t / 7 + 1)).astype(np.float32)
    single = servable.signatures["one_series"](history=tf.constant(new[np.newaxis]))
    read = new[-run.shape.lookback :]
    transformed, exponent = bool(run.preprocessor().transformed.all()), run.preprocessor().exponent
    scaled = boxcox1p(read, exponent) if transformed else read
    window = np.zeros((1, len(read), 40), np.float32)
    window[0, :, 3] = (scaled - scaled.mean()) / scaled.std()
    expected = run.delivered_model()(window).numpy()[0, :, 3, 0] * scaled.std() + scaled.mean()
    expected = inv_boxcox1p(expected, exponent) if transformed else expected
    np.testing.assert_allclose(single["forecast"][0], expected, rtol=1e-4)
    assert (np.diff(single["quantiles"][0], axis=-1) >= 0).all()
    short = servable.signatures["one_series"](history=tf.constant(new[np.newaxis, -9:]))
    assert np.isfinite(short["quantiles"]).all()
    with pytest.raises(tf.errors.InvalidArgumentError, match="history: row 1 has no value"):
        servable.signatures["one_series"](history=tf.constant([[1.0, 2.0], [np.nan, np.nan]]))
    golden = servable.golden()
    assert "one_series" in {request.signature for request in golden}
    assert all(
        np.isfinite(output).all()
        for request in golden
        for output in request.outputs.values()
        if output.dtype.kind == "f"
    )


@pytest.mark.slow
def test_growing_seasons_are_learned_as_logarithms(tmp_path):
    rng = np.random.default_rng(1)
    t = np.arange(156)
    growth = np.exp(0.02 * t + 0.3 * np.sin(2 * np.pi * t / 12) + 0.02 * rng.normal(size=156))
    frame = pd.DataFrame({"month": pd.date_range("2010-01-01", periods=156, freq="MS"),
                          "sales": 100 * growth})  # fmt: skip
    frame.to_csv(tmp_path / "sales.csv", index=False)
    settings = config(tmp_path, tmp_path / "sales.csv", refit=False)
    run = train_forecasting(replace(settings, data=replace(settings.data, horizon=12)))
    assert run.config.data.transform == "log1p"
    tried = dict(run.combination["transforms"])
    assert tried["log1p"] < 0.98 * tried["none"]
    _, quantiles = run.test_answers(5)
    assert (quantiles >= 0).all()
    # Two seasons are a handful of windows: networks have no weight, and are not trained again.
    shares = run.combination["shares"]
    assert run.combination["few_windows"]
    assert not any(share["weight"] for share in shares if share["network"])
    assert {share["name"] for share in shares} >= {"ETS", "theta"}
    model, floors = run.metrics["model"]["test"]["mse"], run.metrics["baselines"]
    assert model < floors["exponential smoothing"]["test"]["mse"]
    assert isinstance(keras.models.load_model(run.path / "model.keras"), keras.Model)
