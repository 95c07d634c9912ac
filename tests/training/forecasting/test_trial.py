"""A search judges forecasters by what the loss is for, and by one measure throughout."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gru_training.forecasting.config import ForecastingConfig, SeriesConfig
from gru_training.forecasting.pipeline import train_forecasting
from gru_training.task import find_task
from tests.training.conftest import tiny_forecasting_config, write_waves


def with_loss(config, loss):
    return replace(config, model=replace(config.model, loss=loss))


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """The settings of a search for medians."""
    folder = tmp_path_factory.mktemp("search")
    data = write_waves(folder / "waves.csv")
    return with_loss(tiny_forecasting_config(folder / "runs", data=data), "mae")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tried", "combine"), [("mae", True), ("mse", True), ("quantile", True), ("quantile", False)]
)
def test_every_trial_has_the_measure_of_the_search(searched, tried, combine):
    """Searches with `--loss mae` compared squared errors."""
    task, seen = find_task("forecasting"), []
    data = task.read(searched).data
    criterion = task.criterion(searched, data)
    assert criterion.name == "mean absolute error"
    settings = with_loss(searched, tried)
    settings = replace(settings, combination=replace(settings.combination, combine=combine))
    value, left_out = task.try_settings(
        settings, data, criterion, lambda _, value: seen.append(value)
    )
    named = replace(settings.run, name=f"{tried}-{combine}")
    run = train_forecasting(replace(settings, run=named))
    assert value == pytest.approx(run.metrics["model"]["validation"]["mae"], rel=1e-5)
    assert seen
    assert np.mean(left_out) == pytest.approx(value, rel=0.05)


@pytest.mark.parametrize(
    ("loss", "name"), [("mse", "mean squared error"), ("quantile", "mean absolute error")]
)
def test_means_are_judged_by_squares_and_medians_by_absolute_errors(searched, loss, name):
    task, settings = find_task("forecasting"), with_loss(searched, loss)
    assert task.criterion(settings, task.read(settings).data).name == name


def test_too_few_windows_to_choose_by_are_told(tmp_path):
    task = find_task("forecasting")
    for rows, told in ((144, "only 3 validation windows do not overlap"), (1000, "")):
        times = pd.date_range("2000-01-01", periods=rows, freq="MS" if told else "D")
        values = np.random.default_rng(0).normal(size=rows)
        path = tmp_path / f"{rows}.csv"
        pd.DataFrame({"time": times, "value": values}).to_csv(path, index=False)
        config = ForecastingConfig(data=SeriesConfig(path))
        caution = task.criterion(config, task.read(config).data).caution
        assert caution.startswith(told)
        assert bool(caution) == bool(told)
