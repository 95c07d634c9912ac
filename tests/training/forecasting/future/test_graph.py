"""Forecasts by a run's ONNX graph: without TensorFlow, and as the Keras model's."""

import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from gru_training.errors import RunDirectoryError
from gru_training.forecasting.future import forecast, recent_of_run, served_predictor
from gru_training.forecasting.graph import GRAPH, graph_predictor
from gru_training.forecasting.run import ForecastingRun
from tests.known_inputs import HORIZON, train, write_load
from tests.made_once import made_once

WITHOUT_TENSORFLOW = """
import sys
sys.modules["tensorflow"] = None  # so that its import fails
from gru_training.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def run():
    """A combination of networks and simple forecasters that reads known inputs."""

    def make(folder):
        write_load(folder / "load.csv")
        train(folder / "load.csv", folder, "load", transform="log1p")

    return ForecastingRun.open(made_once("forecast_graph", make) / "load")


def test_the_command_needs_no_tensorflow(run, tmp_path):
    output = tmp_path / "ahead.csv"
    command = ["forecast", str(run.path), "--output", str(output)]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TENSORFLOW, *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = pd.read_csv(output)
    assert len(found) == HORIZON
    expected = forecast(run, recent_of_run(run), predict=served_predictor(run))
    for name in expected.columns[2:]:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-4)


def test_missing_values_are_answered_alike(run):
    windows = run.test_windows(5)
    windows[:, ::4, 1] = np.nan
    expected = served_predictor(run)(windows)
    np.testing.assert_allclose(graph_predictor(run)(windows), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["scaler.json", "model.keras", "config.json"])
def test_the_graph_of_other_files_is_not_used(run, tmp_path, name):
    copy = shutil.copytree(run.path, tmp_path / "copy")
    with (copy / name).open("ab") as file:
        file.write(b"\n")
    assert graph_predictor(ForecastingRun(copy)) is None


def test_a_run_without_a_graph_has_none_and_a_damaged_one_is_named(run, tmp_path):
    copy = shutil.copytree(run.path, tmp_path / "copy")
    (copy / GRAPH).write_bytes(b"damaged")
    with pytest.raises(RunDirectoryError, match=r"cannot load .*forecast\.onnx"):
        graph_predictor(ForecastingRun(copy))
    (copy / GRAPH).unlink()
    assert graph_predictor(ForecastingRun(copy)) is None
