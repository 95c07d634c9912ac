"""docs/tutorials/shop.md, typed from top to bottom; the networks are smaller ones."""

import json

import pandas as pd
import pytest

from tests.docs.lesson import assert_prints, blocks, reader

PAGE = "docs/tutorials/shop.md"
TINY = ("--epochs", "1", "--units", "4")


@pytest.mark.long
def test_the_lesson_ends_with_a_checked_export(tmp_path):
    data, head, check, train, forecast, again, backtest, export = blocks(PAGE)
    with reader(tmp_path) as typing:
        for block in (data, head, check):
            printed = typing.type_in(block)
            assert_prints(printed, block.shown or "")
        typing.type_in(train, more=TINY)
        report = (tmp_path / "runs" / "shop" / "report.md").read_text("utf-8")
        assert "known inputs promo, price" in report
        assert_prints(typing.type_in(forecast), forecast.shown.split("P001,")[0])
        orders = pd.read_csv(tmp_path / "orders.csv", parse_dates=["ds"])
        assert orders["unique_id"].nunique() == 6
        assert len(orders) == 6 * 14
        assert (orders.filter(like="lo-") >= 0).all(axis=None)
        plans = pd.read_csv(tmp_path / "plans.csv", parse_dates=["ds"])
        both = orders.merge(plans, on=["unique_id", "ds"])
        assert len(both) == len(orders)
        each = both.groupby(["unique_id", "promo"])["forecast"].mean().unstack().dropna()
        assert (each[1] > 1.2 * each[0]).all()
        typing.type_in(again)
        later = pd.read_csv(tmp_path / "orders.csv", parse_dates=["ds"])
        assert later["ds"].min() == orders["ds"].min() + pd.Timedelta(days=9)
        typing.type_in(backtest)
        rolled = json.loads((tmp_path / "runs" / "shop-backtest" / "backtest.json").read_text())
        assert rolled["all"]["combination"]["rmsse"] < rolled["all"]["seasonal naive"]["rmsse"]
        typing.type_in(export)
