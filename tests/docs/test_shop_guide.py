"""The commands of docs/shop.md, in their order, on a small shop."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from serving.__main__ import main as gru_serve
from training.__main__ import main as gru_train

GUIDE = (Path(__file__).parents[2] / "docs" / "shop.md").read_text("utf-8")
BLOCKS = [
    [shlex.split(line) for line in block.replace("\\\n", " ").strip().split("\n")]
    for block in re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
]
TINY = ["--epochs", "1", "--units", "4"]
PRODUCTS, DAYS, AHEAD = 6, 320, 30


def shop():
    """Weeks, and promotions that double what is sold; two products begin late."""
    rng = np.random.default_rng(0)
    days = pd.date_range("2023-01-02", periods=DAYS + AHEAD)
    week = 1 + 0.4 * np.sin(2 * np.pi * np.arange(len(days)) / 7)
    tables = []
    for number in range(PRODUCTS):
        promo = np.repeat(rng.random(len(days) // 5 + 1) < 0.2, 5)[: len(days)]
        price = 4.0 + number
        table = pd.DataFrame(
            {
                "unique_id": f"P{number:03}",
                "ds": days,
                "y": rng.poisson(6 * (1 + number) * week * np.where(promo, 2.0, 1.0)),
                "promo": promo.astype(int),
                "price": np.where(promo, 0.75 * price, price),
            }
        )
        tables.append(table[80 * (number > 3) :])
    return pd.concat(tables, ignore_index=True)


@pytest.fixture
def place(tmp_path, monkeypatch):
    table = shop()
    first = table["ds"].min() + pd.Timedelta(days=DAYS)
    today = first + pd.Timedelta(days=9)
    table[table["ds"] < first].to_csv(tmp_path / "sales.csv", index=False)
    table[table["ds"] < today].to_csv(tmp_path / "sales-until-today.csv", index=False)
    plans = table[table["ds"] >= first].drop(columns="y")
    plans.to_csv(tmp_path / "plans.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_guide_ends_with_a_checked_export(place, capsys):
    check, train, forecast, again, backtest, export = BLOCKS
    assert gru_train(check[0][1:]) == 0, capsys.readouterr()
    assert gru_train([*train[0][1:], *TINY]) == 0
    report = (place / "runs" / "shop" / "report.md").read_text("utf-8")
    assert "known inputs promo, price" in report
    assert gru_train(forecast[0][1:]) == 0
    orders = pd.read_csv("orders.csv", parse_dates=["ds"])
    assert orders["unique_id"].nunique() == PRODUCTS
    assert len(orders) == PRODUCTS * 14
    assert (orders.filter(like="lo-") >= 0).all(axis=None)
    plans = pd.read_csv("plans.csv", parse_dates=["ds"])
    both = orders.merge(plans, on=["unique_id", "ds"])
    sold = both.groupby("promo")["forecast"].sum() / both.groupby("promo")["forecast"].count()
    assert len(both) == len(orders)
    assert sold[1] > 1.2 * sold[0]
    assert gru_train(again[0][1:]) == 0
    later = pd.read_csv("orders.csv", parse_dates=["ds"])
    assert later["ds"].min() == orders["ds"].min() + pd.Timedelta(days=9)
    assert gru_train(backtest[0][1:]) == 0, capsys.readouterr().err
    rolled = json.loads((place / "runs" / "shop-backtest" / "backtest.json").read_text())
    errors = rolled["all"]
    assert errors["combination"]["rmsse"] < errors["seasonal naive"]["rmsse"]
    for command in export:
        assert gru_serve(command[1:]) == 0, capsys.readouterr().err
