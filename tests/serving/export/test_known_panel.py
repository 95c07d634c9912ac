"""A panel whose series have known inputs, exported and asked over both transports."""

import json

import numpy as np
import pandas as pd
import pytest

from gru_serving.__main__ import main
from gru_serving.client import connect
from gru_serving.client.series_columns import named_history, series_columns
from gru_serving.errors import InvalidArgument
from gru_serving.export.run import export_run
from gru_training.estimators.forecaster import Forecaster
from gru_training.forecasting.run import ForecastingRun
from tests.known_panel import HORIZON, SERIES, train_sales, write_sales
from tests.made_once import made_once
from tests.serving.servers import running

pytestmark = pytest.mark.long


def make(root):
    write_sales(root / "sales.csv")
    run = train_sales(root / "sales.csv", root / "runs", "sales")
    export_run(run.path, root / "sales")


@pytest.fixture(scope="module")
def made():
    """The folder with the data and the version `sales/1`, and the run."""
    root = made_once("exported_panel", make)
    return root, ForecastingRun.open(root / "runs" / "sales")


@pytest.fixture(scope="module")
def server(made, tmp_path_factory):
    root, _ = made
    log = tmp_path_factory.mktemp("server") / "log"
    with running(log, "--model_name=sales", f"--model_base_path={root / 'sales'}") as server:
        yield server


def test_answers_are_those_of_the_run(made, url):
    _, run = made
    goes_on = np.arange(SERIES) != 2  # of a series that has ended the answer is NaN
    inputs = {"history": run.test_windows(4), "future": run.test_futures(4)}
    forecasts, quantiles = run.test_answers(4)
    with connect(url) as client:
        answer = client.predict(inputs, "sales")
    for name, expected in (("forecast", forecasts), ("quantiles", quantiles)):
        np.testing.assert_allclose(answer[name][:, :, goes_on], expected[:, :, goes_on], rtol=1e-4)
    assert np.isnan(answer["forecast"][-1, :, ~goes_on]).all()


def test_columns_of_products_go_by_name(made, url):
    """The future of the data file, sent by name in another order: as `gru-train forecast`."""
    root, run = made
    table = pd.read_csv(root / "sales.csv", parse_dates=["ds"])
    wide = {
        "{}": table.pivot(index="ds", columns="unique_id", values="y"),
        "promo[{}]": table.pivot(index="ds", columns="unique_id", values="promo"),
        "price[{}]": table.pivot(index="ds", columns="unique_id", values="price"),
    }
    columns = {name.format(of): values[of] for name, values in wide.items() for of in values}
    with connect(url) as client:
        found = series_columns(client, "sales")
        assert set(found.names) == set(columns)
        assert found.forecast == tuple(f"p{number}" for number in range(SERIES))
        assert found.horizon == HORIZON
        future = {name: columns[name].to_numpy()[-HORIZON:] for name in reversed(found.future)}
        history = {name: values.to_numpy()[:-HORIZON] for name, values in columns.items()}
        answer = client.predict(named_history(history, future), "sales", signature="by_name")
    expected = Forecaster.load(run.path).predict()
    for number in range(SERIES):
        of = expected[expected["unique_id"] == f"p{number}"]["forecast"]
        if len(of):
            np.testing.assert_allclose(answer["forecast"][0, :, number], of, rtol=1e-4)


def test_verify_replays_every_signature(made, url):
    root, _ = made
    assert main(["verify", str(root / "sales" / "1"), "--url", url, "--model", "sales"]) == 0


def added_by_hand(run, promo, price):
    """What the mean of the effects adds, in deviations; the price over its mean in the series."""
    scaler = json.loads((run.path / "scaler.json").read_text("utf-8"))
    known, columns = scaler["known"], scaler["known"]["columns"][:2]
    mean, deviation = (np.array(scaler[name])[columns] for name in ("mean", "deviation"))
    x = [(promo - mean[0]) / deviation[0], (price - 1) / (deviation[1] / mean[1])]
    bases = [
        [each, *(np.maximum(each - knot, 0) for knot in knots)]
        for each, knots in zip(np.clip(x, -4, 4), known["knots"], strict=True)
    ]
    made = bases[0] + bases[1]
    if known["pairs"]:
        made += [bases[0][0] * each for each in bases[1]]
        made += [bases[1][0] * each for each in bases[0][1:]]
    return np.array(made) @ np.array(known["coefficients"]).mean(axis=1)


def make_kinds(root):
    """A run whose promotions work by kind of product, which is in a file of its own; exported."""
    rng = np.random.default_rng(11)
    times = pd.date_range("2024-01-01", periods=90 + HORIZON)
    tables = []
    for number in range(10):
        promo = (rng.random(len(times)) < 0.2).astype(int)
        lift = 60 if number % 2 else 10
        sales = 100 + lift * promo + rng.normal(0, 6, len(times))
        sales[90:] = np.nan
        tables.append(
            pd.DataFrame({"unique_id": f"p{number}", "ds": times, "y": sales, "promo": promo})
        )
    pd.concat(tables).to_csv(root / "sales.csv", index=False)
    kinds = {"unique_id": [f"p{n}" for n in range(10)], "kind": ["food", "toy"] * 5}
    pd.DataFrame(kinds).to_csv(root / "products.csv", index=False)
    static = root / "products.csv"
    run = train_sales(root / "sales.csv", root / "runs", "kinds", ("promo",), static=static)
    export_run(run.path, root / "kinds")


@pytest.fixture(scope="module")
def of_kinds():
    root = made_once("exported_kinds", make_kinds)
    return root, ForecastingRun.open(root / "runs" / "kinds")


@pytest.fixture(params=["rest", "grpc"])
def url_of_kinds(request, of_kinds, tmp_path_factory):
    root, _ = of_kinds
    log = tmp_path_factory.mktemp("server") / "log"
    with running(log, "--model_name=kinds", f"--model_base_path={root / 'kinds'}") as server:
        yield server.rest if request.param == "rest" else f"grpc://{server.grpc}"


def test_what_is_known_of_each_product_is_in_the_exported_model(of_kinds, url_of_kinds):
    """A caller sends no static covariates: toys gain more, about as the data were made."""
    root, run = of_kinds
    note = next(note for note in run.metrics["data"]["notes"] if "known inputs" in note)
    assert "static covariates: kind" in note
    assert "by static covariates" in note
    history, future = run.test_windows(3), run.test_futures(3)
    usual, promoted = np.zeros_like(future), np.ones_like(future)
    with connect(url_of_kinds) as client:
        signature = client.metadata("kinds").signatures["serving_default"]
        assert set(signature.inputs) == {"history", "future"}
        answer = client.predict({"history": history, "future": future}, "kinds")
        found = [
            client.predict({"history": history, "future": each}, "kinds")["forecast"]
            for each in (usual, promoted)
        ]
    np.testing.assert_allclose(answer["forecast"], run.test_answers(3)[0], rtol=1e-4)
    added = (found[1] - found[0]).mean(axis=(0, 1))
    np.testing.assert_allclose(added, [10, 60] * 5, atol=10)
    version = root / "kinds" / "1"
    assert main(["verify", str(version), "--url", url_of_kinds, "--model", "kinds"]) == 0


def test_of_a_product_that_is_new_the_usual_effect_counts(made, url):
    """In thousands and at 700 a piece: all scales are those of its own history."""
    _, run = made
    rng = np.random.default_rng(8)
    history = (5000 + 800 * rng.normal(size=(1, 14))).astype(np.float32)
    past = np.stack([np.zeros((1, 14)), np.full((1, 14), 700.0)], axis=-1).astype(np.float32)
    plans = {"usual": (0, 1.0), "promoted": (1, 1.0), "cheaper": (0, 0.85)}
    found = {}
    with connect(url) as client:
        for name, (promo, price) in plans.items():
            future = np.full((1, HORIZON, 2), [promo, 700 * price], np.float32)
            inputs = {"history": history, "past": past, "future": future}
            found[name] = client.predict(inputs, "sales", signature="one_series")["forecast"][0]
        inputs["future"] = future[:, :3]
        with pytest.raises(InvalidArgument, match=r"future: expected shape \[\?, 7, 2\]"):
            client.predict(inputs, "sales", signature="one_series")
    usual = added_by_hand(run, *plans["usual"])
    for name in ("promoted", "cheaper"):
        expected = (added_by_hand(run, *plans[name]) - usual) * history.std()
        assert expected > 100
        np.testing.assert_allclose(found[name] - found["usual"], expected, rtol=1e-3)
