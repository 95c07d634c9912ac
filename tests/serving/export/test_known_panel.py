"""A panel whose series have known inputs, exported and asked over both transports."""

import numpy as np
import pandas as pd
import pytest

from serving.__main__ import main
from serving.client import connect
from serving.client.series_columns import named_history, series_columns
from serving.export.run import export_run
from tests.known_panel import HORIZON, SERIES, train_sales, write_sales
from tests.serving.conftest import running
from training.estimators.forecaster import Forecaster


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder with the data and the version `sales/1`, and the run."""
    root = tmp_path_factory.mktemp("panel")
    write_sales(root / "sales.csv")
    run = train_sales(root / "sales.csv", root / "runs", "sales")
    export_run(run.path, root / "sales")
    return root, run


@pytest.fixture(scope="module")
def server(made, tmp_path_factory):
    root, _ = made
    log = tmp_path_factory.mktemp("server") / "log"
    with running(log, "--model_name=sales", f"--model_base_path={root / 'sales'}") as server:
        yield server


@pytest.fixture(params=["rest", "grpc"])
def url(request, server):
    return server.rest if request.param == "rest" else f"grpc://{server.grpc}"


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
