import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gru_training.errors import DataError, RunDirectoryError
from gru_training.forecasting.outcomes import file_outcomes, held_out_outcomes
from gru_training.forecasting.pipeline import train_forecasting
from gru_training.forecasting.run import ForecastingRun
from tests.training.conftest import tiny_forecasting_config, write_waves
from tests.training.forecasting.reading import load_forecasting_data


def values(answers):
    return {each.name: each.value for each in answers.measures}


def changed(run, folder, name, **fields):
    copy = shutil.copytree(run.path, folder / "copy")
    settings = json.loads((copy / name).read_text())
    (copy / name).write_text(json.dumps({**settings, **fields}))
    return ForecastingRun(copy)


def test_held_out_windows_are_scored_as_in_the_report(forecasting_run):
    outcomes = held_out_outcomes(forecasting_run, forecasting_run)
    metrics = forecasting_run.metrics
    for answers, expected in [
        (outcomes.model, metrics["model"]["test"]),
        *(
            (outcomes.baselines[name], floor["test"])
            for name, floor in metrics["baselines"].items()
        ),
    ]:
        found = values(answers)
        assert found["MSE"] == pytest.approx(expected["mse"], rel=1e-6)
        assert found["MAE"] == pytest.approx(expected["mae"], rel=1e-6)
    assert len(outcomes.keys) == metrics["data"]["windows"]["test"]
    assert outcomes.overlap == 6


def test_mase_is_the_error_over_that_of_the_last_season(forecasting_run):
    """In plain loops over the seasonal naive forecast, leaving out missing values."""
    data = load_forecasting_data(forecasting_run.config.data)
    values_ = data.series.values
    train = data.borders.train
    naive = [
        np.nanmean([abs(values_[t, k] - values_[t - 24, k]) for t in range(24, train)])
        for k in range(2)
    ]
    errors = [
        abs(values_[origin + step, k] - values_[origin + step - 24, k]) / naive[k]
        for origin in data.windows("test").origins
        for step in range(6)
        for k in range(2)
    ]
    found = values(held_out_outcomes(forecasting_run, forecasting_run).baselines["seasonal naive"])
    assert found["MASE"] == pytest.approx(np.mean(errors), rel=1e-5)


def test_the_file_trained_on_gives_the_held_out_windows(forecasting_run, tmp_path):
    """With its columns in another order, and one additional column."""
    frame = pd.read_csv(forecasting_run.config.data.data)
    frame.insert(1, "more", 7.0)
    path = tmp_path / "turned.csv"
    frame[["time", "down", "more", "up"]].to_csv(path, index=False)
    of_file = file_outcomes(forecasting_run, path, forecasting_run)
    held_out = held_out_outcomes(forecasting_run, forecasting_run)
    assert len(of_file.keys) == len(held_out.keys)
    assert values(of_file.model) == pytest.approx(values(held_out.model), rel=1e-5)
    for name, answers in of_file.baselines.items():
        assert values(answers) == pytest.approx(values(held_out.baselines[name]), rel=1e-5)
    assert set(of_file.baselines) == {"last value", "seasonal naive"}


def test_new_rows_alone_are_enough(forecasting_run, tmp_path):
    """Then the first windows have nothing to read."""
    frame = pd.read_csv(write_waves(tmp_path / "all.csv", rows=400))
    path = tmp_path / "new.csv"
    frame.iloc[300:].to_csv(path, index=False)
    outcomes = file_outcomes(forecasting_run, path, forecasting_run)
    assert len(outcomes.keys) == 100 - 24 - 6 + 1
    assert outcomes.keys[0] == frame["time"][324]


def test_rows_that_were_trained_on_do_not_count(forecasting_run, tmp_path):
    frame = pd.read_csv(forecasting_run.config.data.data)
    path = tmp_path / "old.csv"
    frame.iloc[:200].to_csv(path, index=False)
    message = "expected at least 6 rows with values from 2021-05-11 16:00:00 on"
    with pytest.raises(DataError, match=message):
        file_outcomes(forecasting_run, path, forecasting_run)


@pytest.mark.slow
def test_runs_on_other_training_rows_come_to_one_scale_on_a_file(forecasting_run, tmp_path):
    config = tiny_forecasting_config(tmp_path, "fewer", forecasting_run.config.data.data)
    later = replace(config.data, validation_fraction=0.4)
    fewer = train_forecasting(replace(config, data=later))
    with pytest.raises(RunDirectoryError, match=r"expected the training rows of .*--data FILE"):
        held_out_outcomes(fewer, forecasting_run)
    path = forecasting_run.config.data.data
    one, other = (file_outcomes(fewer, path, like) for like in (forecasting_run, fewer))
    naive = values(file_outcomes(forecasting_run, path, forecasting_run).baselines["last value"])
    assert values(one.baselines["last value"]) == pytest.approx(naive, rel=1e-5)
    assert values(one.model) != pytest.approx(values(other.model), rel=1e-3)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"horizon": 7}, "expected the horizon 6 of .*, got 7"),
        ({"frequency": "D"}, "expected the frequency h of .*, got D"),
        ({"target_columns": ["up"]}, "expected the targets up, down of .*, got up"),
    ],
)
def test_runs_that_forecast_something_else_are_refused(forecasting_run, tmp_path, fields, message):
    other = changed(forecasting_run, tmp_path, "series.json", **fields)
    with pytest.raises(RunDirectoryError, match=message):
        held_out_outcomes(other, forecasting_run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop(columns="up"), "expected the columns of .*, got none called up"),
        (
            lambda frame: frame.iloc[::2],
            "expected a row every h as .* reads them, got one every 2h",
        ),
    ],
)
def test_files_that_do_not_fit_are_named(forecasting_run, tmp_path, change, message):
    path = tmp_path / "changed.csv"
    change(pd.read_csv(forecasting_run.config.data.data)).to_csv(path, index=False)
    with pytest.raises(DataError, match=message):
        file_outcomes(forecasting_run, path, forecasting_run)
