"""Forecasters that read the calendar, exported and asked with a timestamp over both transports."""

import json

import numpy as np
import pandas as pd
import pytest

from gru_serving.__main__ import main
from gru_serving.client import connect
from gru_serving.client.series_columns import named_history, series_columns
from gru_serving.errors import InvalidArgument
from gru_serving.export.run import export_run
from gru_training.__main__ import main as gru_train
from gru_training.estimators.forecaster import Forecaster
from gru_training.forecasting.run import ForecastingRun
from tests.known_calendar import train_demand, write_demand
from tests.known_panel import train_sales, write_sales
from tests.made_once import made_once
from tests.serving.servers import models_flag, running

pytestmark = pytest.mark.long

MODELS = ("demand", "sales")


def make(root):
    """Data, runs and models: of a table, whose network reads all, and of a panel."""
    write_demand(root / "demand.csv")
    write_sales(root / "sales.csv")
    asked = {"calendar": ("weekday", "year"), "holidays": "DE"}
    joint = {"channel_independent": False}
    runs = {
        "demand": train_demand(
            root / "demand.csv", root / "runs", "demand", combine=False, network=joint, **asked
        ),
        "sales": train_sales(root / "sales.csv", root / "runs", "sales", calendar=("weekday",)),
    }
    for name, run in runs.items():
        export_run(run.path, root / "models" / name)


@pytest.fixture(scope="module")
def made():
    root = made_once("exported_calendar", make)
    return root, {name: ForecastingRun.open(root / "runs" / name) for name in MODELS}


@pytest.fixture(scope="module")
def server(made, tmp_path_factory):
    root, _ = made
    folder = tmp_path_factory.mktemp("server")
    bases = {name: root / "models" / name for name in MODELS}
    with running(folder / "log", models_flag(folder, bases)) as server:
        yield server


def request_of(run, rows):
    """What a caller sends: its own columns, the times, and the inputs that only it knows."""
    own = len(run.columns) - len(run.series.calendar.columns)
    inputs = {"history": run.test_windows(rows)[..., :own]}
    inputs["timestamp"] = np.array([time.encode() for time in run.test_times(rows)], object)
    if run.series.future_columns:
        inputs["future"] = run.test_futures(rows)
    return inputs


@pytest.mark.parametrize("name", MODELS)
def test_answers_are_those_of_the_run(made, url, name):
    run = made[1][name]
    assert run.series.calendar.columns
    assert run.metrics["known_inputs"]
    with connect(url) as client:
        signature = client.metadata(name).signatures["serving_default"]
        assert signature.inputs["timestamp"].shape == (-1,)
        assert signature.inputs["history"].shape[-1] == request_of(run, 1)["history"].shape[-1]
        answer = client.predict(request_of(run, 5), name)
    forecasts, quantiles = run.test_answers(5)
    seen = ~np.isnan(answer["forecast"])
    assert seen.mean() > 0.8
    np.testing.assert_allclose(answer["forecast"][seen], forecasts[seen], rtol=1e-4)
    np.testing.assert_allclose(answer["quantiles"][seen], quantiles[seen], rtol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_verify_replays_every_signature(made, url, name):
    version = made[0] / "models" / name / "1"
    assert main(["verify", str(version), "--url", url, "--model", name]) == 0
    card = json.loads((version / "assets.extra" / "model_card.json").read_text("utf-8"))
    assert "weekday" in json.dumps(card)


def test_a_caller_sends_values_and_the_time_of_the_last(made, url, tmp_path, capsys):
    """By name, and from a file: the forecast of `gru-train forecast`, over Christmas."""
    root, runs = made
    table = pd.read_csv(root / "demand.csv", parse_dates=["date"])
    newer = table[table["date"] <= "2023-12-20"]
    newer.to_csv(tmp_path / "newer.csv", index=False)
    expected = Forecaster.load(runs["demand"].path).predict(data=newer)["forecast"]
    assert expected.min() < 120 < expected.max()  # holidays are among the days
    with connect(url) as client:
        assert series_columns(client, "demand").names == ("demand",)
        inputs = named_history({"demand": newer["demand"]}, timestamp="2023-12-20")
        answer = client.predict(inputs, "demand", signature="by_name")
        shown = client.predict(request_of(runs["demand"], 1), "demand", signature="gates")
    np.testing.assert_allclose(answer["forecast"][0, :, 0], expected, rtol=1e-4)
    assert np.isfinite(shown["update_gate"]).all()
    command = ["predict", "--url", url, "--model", "demand", "--output", "json", "--csv"]
    assert main([*command, str(tmp_path / "newer.csv")]) == 0
    served = json.loads(capsys.readouterr().out)["predictions"][0]["forecast"]
    np.testing.assert_allclose(np.array(served)[:, 0], expected, rtol=1e-4)
    command = ["explain", "--url", url, "--model", "demand", "--csv", str(tmp_path / "newer.csv")]
    assert main(command) == 0
    assert gru_train(["forecast", str(runs["sales"].path)]) == 0


@pytest.mark.parametrize(
    ("timestamp", "message"),
    [
        ("tomorrow", "timestamp: expected a time such as 2024-05-31 13:00:00, got tomorrow"),
        ("2040-01-01", "timestamp: expected steps in the years 2020 to 2033"),
    ],
)
def test_times_that_cannot_be_read_are_refused(made, url, timestamp, message):
    inputs = request_of(made[1]["demand"], 1)
    inputs["timestamp"] = np.array([timestamp.encode()], object)
    with connect(url) as client, pytest.raises(InvalidArgument, match=message):
        client.predict(inputs, "demand")
