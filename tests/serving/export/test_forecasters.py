"""Forecasters from training to answers: exported, served by a real server, asked by the clients."""

import json
import re
import subprocess
import sys

import httpx
import numpy as np
import pytest

from gru_serving.__main__ import main
from gru_serving.client import connect
from gru_serving.client.results import Forecast, SeriesExplanation
from gru_serving.client.series_columns import named_history
from gru_serving.client.streaming import StreamingSession
from gru_serving.engine.load_options import LoadOptions
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.runtime import open_version
from gru_serving.errors import FailedPrecondition, InvalidArgument, ServingError
from gru_serving.export.run import export_run
from tests.made_once import made_once
from tests.serving.servers import models_flag, running

COLUMNS = ("load", "heat")
LOOKBACK, HORIZON = 48, 24


def write_series(path, rows=900):
    """Hourly: a daily wave with noise, far from zero, with some cells missing."""
    rng = np.random.default_rng(1)
    hours = np.arange(rows)
    load = 500 + 80 * np.sin(2 * np.pi * hours / 24) + rng.normal(0, 8, rows)
    heat = 20 - 5 * np.cos(2 * np.pi * hours / 24) + rng.normal(0, 0.5, rows)
    times = np.datetime64("2024-01-01T00") + hours.astype("timedelta64[h]")
    lines = ["time,load,heat"]
    for number, (time, *cells) in enumerate(zip(times, load, heat, strict=True)):
        first = "" if number % 97 == 50 else f"{cells[0]:.2f}"
        lines.append(f"{time}:00,{first},{cells[1]:.3f}")
    path.write_text("\n".join(lines) + "\n")


def train(root, name, combine=False, **model):
    from gru_training.forecasting.config import (
        CombinationConfig,
        ForecasterConfig,
        ForecastingConfig,
        ForecastingTrainingConfig,
        RunConfig,
        SeriesConfig,
    )
    from gru_training.forecasting.pipeline import train_forecasting

    series = SeriesConfig(data=root / "series.csv", lookback=LOOKBACK, horizon=HORIZON)
    return train_forecasting(
        ForecastingConfig(
            data=series,
            model=ForecasterConfig(units=8, segment=12, **model),
            training=ForecastingTrainingConfig(epochs=1, batch_size=32, learning_rate=5e-3),
            combination=CombinationConfig(combine=combine, refit=False),
            run=RunConfig(runs_dir=root / "runs", name=name),
        )
    )


def make_fleet(root):
    """Runs and exports by name: `segment` reads segments, `stream` tick by tick."""
    write_series(root / "series.csv")
    runs = {
        "segment": train(root, "segment"),
        "combined": train(root, "combined", combine=True),
        "stream": train(root, "stream", architecture="one_shot", normalisation="difference"),
    }
    for name, run in runs.items():
        export_run(run.path, root / name)


@pytest.fixture(scope="module")
def fleet():
    from gru_training.forecasting.run import ForecastingRun

    root = made_once("forecasters", make_fleet)
    names = ("segment", "combined", "stream")
    return root, {name: ForecastingRun.open(root / "runs" / name) for name in names}


@pytest.fixture(scope="module")
def server(fleet, tmp_path_factory):
    root, _ = fleet
    folder = tmp_path_factory.mktemp("server")
    bases = {name: root / name for name in ("segment", "combined", "stream")}
    with running(folder / "log", models_flag(folder, bases)) as server:
        yield server


@pytest.fixture
def client(url):
    with connect(url) as client:
        yield client


@pytest.mark.parametrize("name", ["segment", "combined", "stream"])
def test_a_server_answers_as_the_run(fleet, client, name):
    _, runs = fleet
    histories = runs[name].test_windows(6)
    forecasts, quantiles = runs[name].test_answers(6)
    assert np.isnan(histories).any()  # missing values pass through both transports
    answers = Forecast.from_outputs(client.predict({"history": histories}, name))
    for answer, forecast, of_row in zip(answers, forecasts, quantiles, strict=True):
        np.testing.assert_allclose(answer.values, forecast, rtol=1e-5)
        np.testing.assert_allclose(answer.quantiles, of_row, rtol=1e-5)
        assert (np.diff(answer.quantiles, axis=-1) >= 0).all()


@pytest.mark.parametrize("name", ["segment", "combined", "stream"])
def test_verify_replays_every_signature(fleet, url, name, capsys):
    root, _ = fleet
    assert main(["verify", str(root / name / "1"), "--url", url, "--model", name]) == 0
    out = capsys.readouterr().out
    assert ("step" in out) == (name == "stream")
    assert "gates" in out


def test_the_model_card_says_what_to_send(fleet):
    root, _ = fleet
    card = json.loads((root / "stream" / "1" / "assets.extra" / "model_card.json").read_text())
    assert card["task"] == "forecasting"
    assert card["columns"] == card["forecast_columns"] == list(COLUMNS)
    assert (card["lookback"], card["horizon"], card["least_steps"]) == (LOOKBACK, HORIZON, 1)
    assert card["levels"] == [0.025, 0.1, 0.5, 0.9, 0.975]
    assert card["streaming"]
    assert card["streaming_parity"]["largest_difference"] <= 1e-5
    segment = json.loads((root / "segment" / "1" / "assets.extra" / "model_card.json").read_text())
    assert segment["least_steps"] == LOOKBACK
    assert segment["streaming_parity"] is None


def test_histories_that_cannot_be_forecast(fleet, client):
    _, runs = fleet
    history = np.nan_to_num(runs["segment"].test_windows(2), nan=500.0)
    with pytest.raises(InvalidArgument, match=r"history: expected shape \[\?, \?, 2\], sent"):
        client.predict({"history": history[..., :1]}, "segment")
    with pytest.raises(InvalidArgument, match="history: expected at least 48 steps, got 47"):
        client.predict({"history": history[:, 1:]}, "segment")
    empty = history.copy()
    empty[1, :, 1] = np.nan
    with pytest.raises(
        InvalidArgument, match="row 1 has no value of column heat in the steps read"
    ):
        client.predict({"history": empty}, "segment")
    infinite = history.copy()
    infinite[0, 3, 0] = np.inf
    with pytest.raises(InvalidArgument, match="expected finite numbers, or NaN where missing"):
        client.predict({"history": infinite}, "segment")


@pytest.mark.parametrize(
    ("signature", "inputs", "refusal"),
    [
        ("", {"history": np.ones((1, 60, 1))}, "history: expected shape [?, ?, 2], got [1, 60, 1]"),
        ("", {"history": np.ones((1, 60, 3))}, "history: expected shape [?, ?, 2], got [1, 60, 3]"),
        ("", {"history": np.ones((60, 2))}, "history: expected shape [?, ?, 2], got [60, 2]"),
        ("gates", {"history": np.ones((1, 60, 0))}, "history: expected shape [?, ?, 2], got"),
        ("step", {"value": np.ones((1, 1))}, "value: expected shape [?, 2], got [1, 1]"),
        ("step", {"value": np.ones((1, 3))}, "value: expected shape [?, 2], got [1, 3]"),
        ("step", {"value": np.ones((1, 1, 2))}, "value: expected shape [?, 2], got [1, 1, 2]"),
        ("step", {"state": np.zeros((1, 7))}, "state: expected shape [?, 20], got [1, 7]"),
    ],
)
def test_other_shapes_are_refused_whoever_asks(server, signature, inputs, refusal):
    if signature == "step":
        inputs = {"value": np.ones((1, 2)), "state": np.zeros((1, 20)), **inputs}
    columns = {name: array.tolist() for name, array in inputs.items()}
    body = {"signature_name": signature, "inputs": columns}
    answer = httpx.post(f"{server.rest}/v1/models/stream:predict", json=body)
    assert answer.status_code == 400, answer.text
    assert refusal in answer.json()["error"]


def in_both_runtimes(root, name):
    for runtime in ("tensorflow", "onnx"):
        opened = open_version(root / name / "1", LoadOptions(runtime=runtime))
        yield Predictor(opened.session)


@pytest.mark.parametrize("name", ["segment", "stream"])
def test_both_runtimes_answer_windows_with_gaps_alike(fleet, name):
    root, runs = fleet
    both = list(in_both_runtimes(root, name))
    rng = np.random.default_rng(2)
    windows = np.resize(runs[name].test_windows(40), (1000, LOOKBACK, 2))
    windows += rng.normal(0, 1, windows.shape).astype(np.float32)
    windows[rng.random(windows.shape) < 0.2] = np.nan
    wanted, got = (predictor.predict({"history": windows}) for predictor in both)
    for output, values in wanted.items():
        # Near zero a quantile of the heat is its mean, 20, less about as much.
        np.testing.assert_allclose(got[output], values, rtol=1e-5, atol=1e-5, err_msg=output)
    for predictor in both:
        predictor.close()


@pytest.mark.slow
def test_both_runtimes_refuse_alike(fleet):
    root, _ = fleet
    tensorflow, onnx = in_both_runtimes(root, "stream")
    good = np.ones((2, 60, 2), np.float32)
    empty, infinite = good.copy(), good * np.inf
    empty[1, :, 1] = np.nan
    state = np.zeros((1, 20), np.float32)
    for signature, inputs in (
        *(("", {"history": bad}) for bad in (empty, infinite, good[..., :1], good[0], good[:, :0])),
        *(("", {"history": bad}) for bad in (np.float32(1), good.astype(np.float64))),
        ("gates", {"history": empty}),
        ("step", {"value": infinite[:1, 0], "state": state}),
        ("step", {"value": good[:1, 0], "state": state[:, 1:]}),
        ("step", {"value": good[:1, 0, :1], "state": state}),
        ("step", {"value": good[:1, 0], "state": state.astype(np.float64)}),
    ):
        said = []
        for predictor in (tensorflow, onnx):
            with pytest.raises(ServingError) as refused:
                predictor.predict(inputs, signature)
            said.append(refused.value.status)
        assert said[0] == said[1]
    for predictor in (tensorflow, onnx):
        assert len(predictor.predict({"history": good[:0]})["forecast"]) == 0
        predictor.close()


def test_a_stream_of_ticks_equals_the_sequence(fleet, client):
    _, runs = fleet
    ticks = runs["stream"].test_windows(3)[2].copy()
    ticks[0] = [500.0, 20.0]
    ticks[5:8, 0] = np.nan
    session = StreamingSession(client, "stream")
    for t, tick in enumerate(ticks):
        answer = Forecast.from_outputs(session.feed(tick).outputs)[0]
        if t % 9 == 0 or t == len(ticks) - 1:
            whole = client.predict({"history": ticks[np.newaxis, : t + 1]}, "stream")
            np.testing.assert_allclose(answer.values, whole["forecast"][0], rtol=1e-5)
            np.testing.assert_allclose(answer.quantiles, whole["quantiles"][0], rtol=1e-5)


def test_a_model_that_cannot_stream_says_which_can(client):
    with pytest.raises(InvalidArgument, match="--architecture one_shot --normalisation difference"):
        StreamingSession(client, "segment").feed([500.0, 20.0])


def test_stream_from_a_csv_file(fleet, url, tmp_path, capsys):
    root, _ = fleet
    lines = (root / "series.csv").read_text().splitlines()
    (tmp_path / "a.csv").write_text("\n".join(lines[:20]) + "\n")
    (tmp_path / "b.csv").write_text("\n".join([lines[0], *lines[20:60]]) + "\n")
    (tmp_path / "both.csv").write_text("\n".join(lines[:60]) + "\n")
    common = ["stream", "--url", url, "--model", "stream", "--output", "json"]
    state = ["--state", str(tmp_path / "state.json")]
    assert main([*common, *state, "--csv", str(tmp_path / "a.csv")]) == 0
    assert main([*common, *state, "--csv", str(tmp_path / "b.csv")]) == 0
    parted = capsys.readouterr().out.splitlines()
    assert main([*common, "--csv", str(tmp_path / "both.csv"), "--columns", "load,heat"]) == 0
    whole = capsys.readouterr().out.splitlines()
    assert len(whole) == 59
    assert parted == whole
    assert json.loads(whole[0])["fed"] == "2024-01-01T00:00"


def test_predict_from_a_csv_file(fleet, url, capsys):
    root, _ = fleet
    asked = ["predict", "--url", url, "--model", "segment", "--csv", str(root / "series.csv")]
    assert main(asked) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == ["step", "load", "interval", "heat", "interval"]
    assert len(table) == 1 + HORIZON
    assert main([*asked, "--output", "json"]) == 0
    forecast = json.loads(capsys.readouterr().out)["predictions"][0]["forecast"]
    assert f"{forecast[0][0]:.5g}" in table[1]
    assert main([*asked, "--columns", "load,rain"]) == 2
    error = capsys.readouterr().err
    assert "expected a header with the column rain" in error
    assert "note" not in error


def test_columns_of_a_csv_file_are_matched_by_name(fleet, url, tmp_path, capsys):
    root, _ = fleet
    rows = [line.split(",") for line in (root / "series.csv").read_text().splitlines()]
    swapped, short = tmp_path / "swapped.csv", tmp_path / "short.csv"
    swapped.write_text("".join(f"{time},{heat},7,{load}\n" if time != "time" else
                               "time,heat,rain,load\n" for time, load, heat in rows))  # fmt: skip
    short.write_text("".join(f"{time},{load}\n" for time, load, _ in rows))
    for name in ("segment", "stream"):
        asked = ["predict", "--url", url, "--model", name, "--output", "json", "--csv"]
        assert main([*asked, str(root / "series.csv")]) == 0
        expected = capsys.readouterr().out
        assert main([*asked, str(swapped)]) == 0
        assert capsys.readouterr().out == expected
        assert main([*asked, str(short)]) == 2
        assert "expected a header with the column heat; got 'time,load'" in capsys.readouterr().err


def test_empty_rows_at_the_end_are_what_is_to_be_forecast(fleet, url, tmp_path, capsys):
    root, _ = fleet
    path = tmp_path / "open.csv"
    ahead = "".join(f"2024-02-07T{hour:02}:00,,\n" for hour in range(12, 15))
    path.write_text((root / "series.csv").read_text() + ahead)
    asked = ["predict", "--url", url, "--model", "segment", "--output", "json", "--csv"]
    assert main([*asked, str(root / "series.csv")]) == 0
    expected = capsys.readouterr().out
    assert main([*asked, str(path)]) == 0
    found = capsys.readouterr()
    assert found.out == expected
    assert "the last 3 rows have no value of the columns that are forecast" in found.err


def test_a_client_asks_by_name(fleet, client):
    root, _ = fleet
    history = np.genfromtxt(root / "series.csv", delimiter=",", skip_header=1)[:, 1:]
    wanted = client.predict({"history": history[np.newaxis]}, "segment")
    asked = named_history({"heat": history[:, 1], "load": history[:, 0]})
    answer = client.predict(asked, "segment", signature="by_name")
    np.testing.assert_allclose(answer["forecast"], wanted["forecast"], rtol=1e-6)
    with pytest.raises(InvalidArgument, match="row 0 has no column load; expected load, heat"):
        client.predict(named_history({"heat": history[:, 1]}), "segment", signature="by_name")


def test_rows_left_out_of_a_csv_file_are_noted(fleet, url, tmp_path, capsys):
    root, _ = fleet
    lines = (root / "series.csv").read_text().splitlines()
    path = tmp_path / "gap.csv"
    path.write_text("\n".join(lines[:-9] + lines[-4:]) + "\n")
    for command in (["predict"], ["explain", "--picture", str(tmp_path / "gates.png")]):
        asked = [*command, "--url", url, "--model", "segment", "--csv", str(path)]
        assert main(asked) == 0
        found = capsys.readouterr()
        last, after = lines[-10].split(",")[0], lines[-4].split(",")[0]
        assert f"{path}: the rows are not evenly spaced: most are 1:00:00 apart, " in found.err
        assert f"{last} and {after} are 6:00:00. A model treats" in found.err
        assert "evenly" not in found.out


def test_predict_cuts_no_number_on_a_narrow_screen(fleet, client, url, capsys, monkeypatch):
    root, _ = fleet
    history = np.genfromtxt(root / "series.csv", delimiter=",", skip_header=1)[np.newaxis, :, 1:]
    wanted = client.predict({"history": history}, "segment")
    monkeypatch.setenv("COLUMNS", "30")
    assert main(["predict", "--url", url, "--model", "segment", "--csv", f"{root}/series.csv"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    shown = [[float(number) for number in re.findall(r"-?\d+\.?\d*", line)] for line in lines]
    assert [line[0] for line in shown] == list(range(1, HORIZON + 1))
    for column in range(2):
        columns = np.array(shown)[:, 1 + 3 * column : 4 + 3 * column]
        of_column = wanted["quantiles"][0, :, column, [2, 0, 4]].T
        np.testing.assert_allclose(columns, of_column, rtol=1e-4)


def test_explain_draws_the_gates(fleet, url, tmp_path, capsys):
    root, _ = fleet
    picture = tmp_path / "gates.png"
    asked = ["explain", "--url", url, "--model", "segment", "--csv", str(root / "series.csv")]
    assert main([*asked, "--picture", str(picture), "--gru", "1"]) == 0
    out = capsys.readouterr().out
    assert "2024-02-07" in out  # the file ends there, after 900 hours
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main([*asked, "--gru", "2"]) == 2
    assert "expected a number below 2" in capsys.readouterr().err
    assert main(asked[:-2]) == 2
    assert "expected either a text or --csv FILE" in capsys.readouterr().err


def test_gates_end_with_the_history(fleet, client):
    _, runs = fleet
    history = runs["segment"].test_windows(1)
    longer = np.concatenate([history[:, :5], history], axis=1)
    outputs = client.predict({"history": longer}, "segment", signature="gates")
    shown = SeriesExplanation.from_outputs(outputs)[0]
    np.testing.assert_array_equal(shown.end, [16, 28, 40, 52])
    assert shown.update_gate.shape == (4, 2, 8)
    with pytest.raises(FailedPrecondition, match="expected a model with the outputs"):
        Forecast.from_outputs(outputs)


@pytest.mark.parametrize("signature", ["serving_default", "step"])
def test_example_requests_work(fleet, server, signature, capsys):
    root, _ = fleet
    asked = ["example-request", str(root / "stream"), "--signature", signature, "--only", "python"]
    assert main([*asked, "--rest", server.rest]) == 0
    lines = capsys.readouterr().out
    run = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True)
    assert "'forecast'" in run.stdout
