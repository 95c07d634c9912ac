"""docs/tutorials/tomorrow.md, typed from top to bottom; the networks are smaller ones."""

import json
import re

import pandas as pd
import pytest

from tests.docs.lesson import assert_prints, blocks, reader

PAGE = "docs/tutorials/tomorrow.md"
TINY = ("--epochs", "1", "--units", "4")


@pytest.mark.long
def test_the_lesson_ends_with_a_served_forecast(tmp_path):
    data, head, check, train, forecast, again, backtests, export, serve, ask = blocks(PAGE)
    with reader(tmp_path) as typing:
        for block in (data, head, check):
            printed = typing.type_in(block)
            assert_prints(printed, block.shown or "")
        typing.type_in(train, more=TINY)
        assert (tmp_path / "runs" / "load" / "report.html").is_file()
        printed = typing.type_in(forecast)
        assert_prints(printed, forecast.shown, rel=0.2)
        times = pd.read_csv(tmp_path / "tomorrow.csv", parse_dates=["ds"])["ds"]
        assert times.tolist() == list(pd.date_range("2024-04-11 16:00", periods=24, freq="h"))
        typing.type_in(again)
        later = pd.read_csv(tmp_path / "tomorrow.csv", parse_dates=["ds"])
        assert later["ds"].iloc[0] == pd.Timestamp("2024-04-15 20:00")
        typing.type_in(backtests)
        rolled = json.loads((tmp_path / "runs" / "load-backtest" / "backtest.json").read_text())
        assert len(rolled["folds"]) == 3
        assert 0 < rolled["coverage"]["0.8"] <= 1
        assert rolled["all"]["combination"]["mase"] < 1
        for block in (export, serve):
            typing.type_in(block)
        answered = typing.type_in(ask)
    shown = [line for line in answered.split("\n") if re.match(r"\s*(\+?\d+|load)\b", line)]
    assert len(shown) >= 24
    for value in later["forecast"][:3]:
        assert f"{value:.1f}"[:4] in answered
