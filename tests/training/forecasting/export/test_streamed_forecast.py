"""`gru-train forecast` with a model that streams answers as the servers of its export do."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from gru_training.forecasting.export.servable import ForecastingServable
from gru_training.forecasting.future import forecast, recent_of_file, recent_of_run
from gru_training.forecasting.run import ForecastingRun
from tests.made_once import made_once
from tests.training.conftest import tiny_forecasting_config, write_waves


@pytest.fixture(scope="module")
def streaming_run():
    from gru_training.forecasting.pipeline import train_forecasting

    def make(folder: Path) -> None:
        data = write_waves(folder / "waves.csv", 200)
        options = {"architecture": "one_shot", "normalisation": "none", "segment": None}
        config = tiny_forecasting_config(folder, data=data, **options)
        train_forecasting(replace(config, data=replace(config.data, lookback=4)))

    return ForecastingRun.open(made_once("streaming_run", make) / "waves")


@pytest.mark.slow_cases
@pytest.mark.parametrize("rows", [60, None])
def test_a_forecast_is_that_of_the_last_tick(streaming_run, tmp_path, rows):
    """Of all rows that are there, not only of the four that its windows have."""
    run = streaming_run
    table = pd.read_csv(run.path.parent / "waves.csv").iloc[-(rows or 200) :]
    recent = recent_of_run(run)
    if rows:
        table.to_csv(tmp_path / "newer.csv", index=False)
        recent = recent_of_file(run, tmp_path / "newer.csv")
    assert len(recent.times) == len(table)
    found = forecast(run, recent)
    servable = ForecastingServable(run)
    history = table[["up", "down"]].to_numpy(np.float32)[np.newaxis]
    served = np.asarray(
        servable.signatures["serving_default"](history=tf.constant(history))["forecast"]
    )[0]
    state = tf.zeros((1, servable.module.state_size))
    for value in history[0]:
        answer = servable.signatures["step"](value=tf.constant(value[np.newaxis]), state=state)
        state = answer["state"]
    for number, name in enumerate(("up", "down")):
        ahead = found.loc[found["unique_id"] == name, "forecast"]
        np.testing.assert_allclose(ahead, served[:, number], rtol=1e-4)
        np.testing.assert_allclose(ahead, np.asarray(answer["forecast"])[0, :, number], rtol=1e-3)
