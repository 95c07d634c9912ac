"""The commands of docs/tomorrow.md, in their order, on a small file."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from serving.__main__ import main as gru_serve
from tests.serving.conftest import running
from training.__main__ import main as gru_train

GUIDE = (Path(__file__).parents[2] / "docs" / "tomorrow.md").read_text("utf-8")
BLOCKS = [
    [shlex.split(line) for line in block.replace("\\\n", " ").strip().split("\n")]
    for block in re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
]
TINY = ["--epochs", "1", "--units", "4"]


def hourly(rows):
    rng = np.random.default_rng(0)
    t = np.arange(rows)
    load = 800 + 90 * np.sin(2 * np.pi * t / 24) + rng.normal(0, 8, rows)
    times = pd.date_range("2024-03-01", periods=rows, freq="h")
    return pd.DataFrame({"time": times, "load": load.round(1), "price": rng.normal(60, 5, rows)})


@pytest.fixture
def place(tmp_path, monkeypatch):
    table = hourly(1100)
    table.loc[2, "load"] = np.nan
    table[:1000].to_csv(tmp_path / "load.csv", index=False)
    table.to_csv(tmp_path / "load-until-today.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_guide_ends_with_a_served_forecast(place, capsys):
    check, train, forecast, again, backtests, export, serve, ask = BLOCKS
    assert gru_train(check[0][1:]) == 0
    assert "1,000 times every h from 2024-03-01" in capsys.readouterr().out
    assert gru_train([*train[0][1:], *TINY]) == 0
    assert (place / "runs" / "load" / "report.html").is_file()
    assert gru_train(forecast[0][1:]) == 0
    first = pd.read_csv("tomorrow.csv", parse_dates=["ds"])
    assert list(first.columns) == GUIDE.split("unique_id,ds")[1].split("\n")[0].join(
        ["unique_id,ds", ""]
    ).split(",")
    assert first["ds"].tolist() == list(pd.date_range("2024-04-11 16:00", periods=24, freq="h"))
    assert gru_train(again[0][1:]) == 0
    later = pd.read_csv("tomorrow.csv", parse_dates=["ds"])
    assert later["ds"].iloc[0] == pd.Timestamp("2024-04-15 20:00")
    for command in backtests:
        assert gru_train(command[1:]) == 0, capsys.readouterr().err
    rolled = json.loads((place / "runs" / "load-backtest" / "backtest.json").read_text())
    assert len(rolled["folds"]) == 3
    assert 0 < rolled["adaptive_coverage"]["0.8"] <= 1
    assert rolled["all"]["combination"]["mase"] < 1
    for command in export:
        assert gru_serve(command[1:]) == 0
    flags = [flag.replace("$PWD", str(place)) for flag in serve[0][2:4]]
    with running(place / "log", *flags) as server:
        for command in ask:
            words = [server.rest if "localhost" in word else word for word in command[1:]]
            capsys.readouterr()
            assert gru_serve(words) == 0, capsys.readouterr().err
    answered = capsys.readouterr().out
    shown = [line for line in answered.split("\n") if re.match(r"\s*(\+?\d+|load)\b", line)]
    assert len(shown) >= 24
    for value in later["forecast"][:3]:
        assert f"{value:.1f}"[:4] in answered
