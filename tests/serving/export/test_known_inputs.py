"""A forecaster that reads known inputs, exported and asked by the clients over both transports."""

import json

import numpy as np
import pandas as pd
import pytest

from gru_serving.__main__ import main
from gru_serving.client import connect
from gru_serving.client.results import Forecast
from gru_serving.client.series_columns import named_history, series_columns
from gru_serving.errors import InvalidArgument
from gru_serving.export.run import export_run
from gru_serving.preprocessing.description import Description
from gru_training.__main__ import main as gru_train
from gru_training.forecasting.run import ForecastingRun
from tests.known_inputs import HORIZON, KNOWN_AHEAD, LOOKBACK, train, write_load
from tests.made_once import made_once
from tests.serving.servers import running

KNOWN = ("temperature", "holiday")


def make(root):
    write_load(root / "load.csv")
    run = train(root / "load.csv", root / "runs", "load", combine=False)
    export_run(run.path, root / "load")


@pytest.fixture(scope="module")
def made():
    """The folder with the data and the version `load/1`, and the run."""
    root = made_once("exported_inputs", make)
    return root, ForecastingRun.open(root / "runs" / "load")


@pytest.fixture(scope="module")
def server(made, tmp_path_factory):
    root, _ = made
    log = tmp_path_factory.mktemp("server") / "log"
    with running(log, "--model_name=load", f"--model_base_path={root / 'load'}") as server:
        yield server


@pytest.mark.slow
def test_nothing_is_left_to_tensorflow(made):
    root, _ = made
    described = Description.read(root / "load" / "1")
    assert described.left == {}
    assert {"serving_default", "by_name", "columns"} <= described.signatures.keys()


@pytest.mark.slow_cases
def test_answers_are_those_of_the_run(made, url):
    _, run = made
    histories, futures = run.test_windows(6), run.test_futures(6)
    forecasts, quantiles = run.test_answers(6)
    with connect(url) as client:
        answers = Forecast.from_outputs(
            client.predict({"history": histories, "future": futures}, "load")
        )
        for answer, forecast, of_row in zip(answers, forecasts, quantiles, strict=True):
            np.testing.assert_allclose(answer.values, forecast, rtol=1e-5)
            np.testing.assert_allclose(answer.quantiles, of_row, rtol=1e-5)
        colder = futures - [5, 0]
        others = client.predict({"history": histories, "future": colder}, "load")
    assert (others["forecast"][..., 0] - forecasts[..., 0]).mean() > 3


def test_columns_go_by_name(made, url):
    _, run = made
    history, future = run.test_windows(1)[0], run.test_futures(1)[0]
    with connect(url) as client:
        columns = series_columns(client, "load")
        assert columns is not None
        assert columns.names == ("temperature", "load", "holiday")
        assert columns.needed == columns.names
        assert columns.forecast == ("load",)
        assert columns.future == KNOWN
        assert columns.horizon == HORIZON
        inputs = named_history(
            {name: history[:, place] for place, name in reversed([*enumerate(columns.names)])},
            {"rain": np.zeros(HORIZON), "holiday": future[:, 1], "temperature": future[:, 0]},
        )
        answer = client.predict(inputs, "load", signature="by_name")
        np.testing.assert_allclose(answer["forecast"], run.test_answers(1)[0], rtol=1e-5)
        inputs["future_columns"][0, 1] = b"holidays"
        with pytest.raises(InvalidArgument, match="no column holiday; expected temperature, holi"):
            client.predict(inputs, "load", signature="by_name")


@pytest.mark.parametrize(
    ("future", "message"),
    [
        (np.zeros((2, HORIZON - 1, 2)), rf"future: expected shape \[\?, {HORIZON}, 2\], got"),
        (np.zeros((2, HORIZON, 1)), rf"future: expected shape \[\?, {HORIZON}, 2\], got"),
        (np.zeros((1, HORIZON, 2)), "expected a row for each of the 2 of history, got 1"),
        (np.full((2, HORIZON, 2), np.inf), "future: expected finite numbers"),
    ],
)
def test_what_does_not_fit_is_refused(made, url, future, message):
    _, run = made
    inputs = {"history": run.test_windows(2), "future": future.astype(np.float32)}
    with connect(url) as client, pytest.raises(InvalidArgument, match=message):
        client.predict(inputs, "load")


def test_verify_replays_every_signature(made, url, capsys):
    root, _ = made
    assert main(["verify", str(root / "load" / "1"), "--url", url, "--model", "load"]) == 0
    card = json.loads((root / "load" / "1" / "assets.extra" / "model_card.json").read_text())
    assert "temperature" in json.dumps(card)


def test_the_rows_after_the_last_load_are_forecast(made, url, tmp_path, capsys):
    root, run = made
    command = ["predict", "--url", url, "--model", "load", "--output", "json", "--csv"]
    assert main([*command, str(root / "load.csv")]) == 0
    captured = capsys.readouterr()
    assert "note" not in captured.err
    served = np.array(json.loads(captured.out)["predictions"][0]["forecast"])[:, 0]
    assert gru_train(["forecast", str(run.path), "--output", str(tmp_path / "f.csv")]) == 0
    np.testing.assert_allclose(served, pd.read_csv(tmp_path / "f.csv")["forecast"], rtol=1e-5)

    table = pd.read_csv(root / "load.csv")
    short, bare = tmp_path / "short.csv", tmp_path / "bare.csv"
    table.iloc[: len(table) - KNOWN_AHEAD + 3].to_csv(short, index=False)
    assert main([*command, str(short)]) == 0
    assert f"temperature, holiday are known of 3 of the {HORIZON} steps" in capsys.readouterr().err
    table.iloc[: len(table) - KNOWN_AHEAD].to_csv(bare, index=False)
    assert main([*command, str(bare)]) == 2
    said = capsys.readouterr().err
    assert f"expected {HORIZON} rows after 2024-01-30 03:00:00 with these" in said


def test_gates_are_those_of_the_history_alone(made, url):
    _, run = made
    histories = run.test_windows(2)
    with connect(url) as client:
        shown = client.predict({"history": histories}, "load", signature="gates")
    np.testing.assert_allclose(
        shown["values"][..., 0], histories[:, -LOOKBACK:, 1], rtol=1e-4, atol=1e-2
    )
