"""Forecasters that begin with the scale and the networks of an earlier run."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gru_training.__main__ import main
from gru_training.errors import ConfigError, DataError
from gru_training.forecasting.check import check_forecasting
from gru_training.forecasting.config import ForecastingConfig, ForecastingTrainingConfig
from gru_training.forecasting.data import read_series
from gru_training.forecasting.pipeline import train_forecasting
from gru_training.forecasting.run import ForecastingRun
from gru_training.forecasting.warm_start import initial_weights, learned_until
from tests.training.conftest import write_waves
from tests.training.cut_short import killed

ROWS, MORE = 320, 380
STILL = 1e-30
"""A learning rate with which no weight moves."""


def begun(run, folder, rows=MORE, name="warm", rate=STILL, **data):
    """The settings of a training that begins with a run; sizes are left at their defaults."""
    made = ForecastingConfig()
    training = ForecastingTrainingConfig(warm_start=run.path, learning_rate=rate, epochs=1)
    path = write_waves(folder / f"waves-{rows}.csv", rows)
    return replace(
        made,
        data=replace(made.data, data=path, validation_fraction=0.2, **data),
        training=training,
        combination=replace(made.combination, refit=False),
        run=replace(made.run, runs_dir=folder, name=name),
    )


def checked(config):
    return " ".join(check_forecasting(config).errors)


@pytest.mark.slow
def test_without_a_step_network_and_scale_are_those_of_the_run(forecasting_run, tmp_path):
    old = forecasting_run
    warm = train_forecasting(begun(old, tmp_path))
    for found, expected in zip(
        warm.load_model().get_weights(), old.load_model().get_weights(), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    scale, before = warm.preprocessor(), old.preprocessor()
    np.testing.assert_array_equal(scale.mean, before.mean)
    np.testing.assert_array_equal(scale.deviation, before.deviation)
    assert warm.shape == old.shape
    assert warm.config.model.units == old.config.model.units == 6 != ForecastingConfig().model.units
    assert warm.config.combination.combine is False
    # The split is that of the new rows.
    assert warm.series.borders[2] == MORE > old.series.borders[2]
    start = warm.metrics["warm_start"]
    assert start["run"] == str(old.path)
    assert len(start["digest"]) == 64
    assert start["learned_until"] == str(
        pd.Timestamp(old.series.first_time) + pd.Timedelta(hours=old.series.borders[0] - 1)
    )
    assert f"Training began with the weights of `{old.path}`;" in (
        (warm.path / "report.md").read_text("utf-8")
    )
    assert learned_until(warm) > learned_until(old)


def write_load(path, rows):
    """An hourly load that wanders, of which a network learns what a ridge regression leaves."""
    rng = np.random.default_rng(0)
    hour = np.arange(rows)
    wander = 40 * np.sin(2 * np.pi * hour / 24) + np.cumsum(rng.normal(0, 0.5, rows))
    load = 500 + 60 * np.sin(2 * np.pi * (hour - 6) / 24) + wander + rng.normal(0, 5, rows)
    times = pd.date_range("2024-03-04", periods=rows, freq="h")
    pd.DataFrame({"time": times, "load": load}).to_csv(path, index=False)
    return path


@pytest.mark.long
def test_networks_of_a_combination_and_its_refit(tmp_path):
    paths = {rows: write_load(tmp_path / f"{rows}.csv", rows) for rows in (696, 740)}
    small = f"--epochs 1 --horizon 24 --deliver network --runs-dir {tmp_path}"
    assert main(f"forecasting --data {paths[696]} --units 4 --name old {small}".split()) == 0
    old = ForecastingRun.open(tmp_path / "old")
    command = f"forecasting --data {paths[740]} --warm-start {old.path} --learning-rate {STILL}"
    assert main([*command.split(), *small.split(), "--name", "warm"]) == 0
    warm = ForecastingRun.open(tmp_path / "warm")
    assert warm.combination["network_lookback"] == old.combination["network_lookback"]
    model = old.load_model()
    networks = {share["network"] for share in old.combination["shares"] if share["network"]}
    for run in (warm.load_model(), warm.delivered_model()):
        held = (
            networks & {layer.name for layer in model.layers} & {layer.name for layer in run.layers}
        )
        assert held
        for name in held:
            expected = model.get_layer(name).get_weights()
            for found, value in zip(run.get_layer(name).get_weights(), expected, strict=True):
                np.testing.assert_array_equal(found, value)


def test_rows_that_were_learned_from_are_not_held_out(forecasting_run, tmp_path):
    old = forecasting_run
    assert not checked(begun(old, tmp_path))
    asked = begun(old, tmp_path, rows=ROWS)
    wider = replace(asked, data=replace(asked.data, validation_fraction=0.4))
    (error,) = check_forecasting(wider).errors
    assert f"{old.path} has learned from rows until {learned_until(old)}" in error
    series = read_series(wider.data)
    with pytest.raises(DataError, match="holds out rows from"):
        initial_weights(series, wider)
    shares = re.search(r"--validation-fraction (\S+) --test-fraction (\S+),", error).groups()
    validation, test = map(float, shares)
    advised = replace(wider.data, validation_fraction=validation, test_fraction=test)
    assert not checked(replace(wider, data=advised))
    # Where nothing is left after what was learned, more rows are the only way.
    short = begun(old, tmp_path, rows=185)
    assert "give more rows after it, or leave --warm-start out" in checked(short)
    assert "--validation-fraction" not in checked(short)


@pytest.mark.parametrize(
    ("section", "setting", "said"),
    [
        ("model", {"units": 8}, "--units 6, got --units 8"),
        ("model", {"architecture": "one_shot"}, "--architecture segment, got"),
        ("model", {"normalisation": "none"}, "--normalisation last, got --normalisation none"),
        ("data", {"horizon": 12}, "--horizon 6, got --horizon 12"),
        ("data", {"lookback": 48}, "--lookback 24, got --lookback 48"),
        ("data", {"transform": "log1p"}, "--transform none, got --transform log1p"),
    ],
)
def test_other_sizes_are_refused_and_left_out_as_advised(
    forecasting_run, tmp_path, section, setting, said
):
    asked = begun(forecasting_run, tmp_path)
    wanted = replace(asked, **{section: replace(getattr(asked, section), **setting)})
    assert f"was trained with {said}" in checked(wanted)
    with pytest.raises(ConfigError, match="leave it out to train with that of the run"):
        initial_weights(read_series(wanted.data), wanted)
    assert not checked(asked)
    assert not checked(replace(wanted, training=ForecastingTrainingConfig()))


def test_other_columns_are_refused(forecasting_run, tmp_path):
    asked = begun(forecasting_run, tmp_path)
    table = pd.read_csv(asked.data.data)
    table.rename(columns={"up": "over"}).to_csv(asked.data.data, index=False)
    assert "expected the columns up, down as in" in checked(asked)
    assert not checked(replace(asked, training=ForecastingTrainingConfig()))
    table.to_csv(asked.data.data, index=False)
    one = replace(asked, data=replace(asked.data, target=("up",)))
    assert "expected the columns to forecast up, down as in" in checked(one)
    times = pd.date_range("2021-05-01", periods=len(table), freq="30min")
    table.assign(time=times).to_csv(asked.data.data, index=False)
    assert "expected a step of h as in" in checked(asked)


@pytest.mark.slow
def test_runs_of_other_tasks_and_searches(forecasting_run, tiny_run, tmp_path, capsys):
    asked = begun(forecasting_run, tmp_path)
    other = replace(asked, training=replace(asked.training, warm_start=tiny_run.path))
    assert "--warm-start: expected a run of gru-train forecasting, got" in checked(other)
    command = f"tune forecasting --trials 1 --data {asked.data.data} --warm-start runs/x"
    assert main(command.split()) == 2
    assert "--warm-start must be left out of a search" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_a_resumed_training_ends_with_the_same_weights(forecasting_run, tmp_path):
    asked = begun(forecasting_run, tmp_path, name="a", rate=0.01)
    asked = replace(asked, training=replace(asked.training, epochs=3))
    whole = train_forecasting(replace(asked, run=replace(asked.run, runs_dir=tmp_path / "whole")))
    cut = replace(asked, run=replace(asked.run, runs_dir=tmp_path / "cut"))
    with killed():
        train_forecasting(cut)
    assert main(["resume", str(tmp_path / "cut" / "a")]) == 0
    resumed = ForecastingRun.open(tmp_path / "cut" / "a")
    for found, expected in zip(
        resumed.load_model().get_weights(), whole.load_model().get_weights(), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    assert resumed.metrics["warm_start"] == whole.metrics["warm_start"]


@pytest.mark.long
def test_a_transform_that_cannot_read_the_new_values(tmp_path):
    def make(folder):
        table = pd.read_csv(write_waves(folder / "old.csv", ROWS))
        table.assign(down=table["down"] + 5).to_csv(folder / "old.csv", index=False)
        small = ["--epochs", "1", "--units", "4", "--horizon", "6", "--transform", "log1p"]
        place = ["--no-combine", "--runs-dir", str(folder), "--name", "old"]
        assert main(["forecasting", "--data", str(folder / "old.csv"), *small, *place]) == 0

    make(tmp_path)
    old = ForecastingRun.open(tmp_path / "old")
    asked = begun(old, tmp_path)
    with pytest.raises(DataError, match="column 'down': expected no values below zero"):
        initial_weights(read_series(asked.data), asked)
