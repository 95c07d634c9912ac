"""Trainings that a real MLflow server with a SQLite store is told of."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import httpx
import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient
from starlette.testclient import TestClient

from gru_training.errors import DivergenceError, TrackingError
from gru_training.estimators.forecaster import Forecaster
from gru_training.estimators.text import TextEstimator
from gru_training.forecasting.pipeline import train_forecasting
from gru_training.sentiment.pipeline import train_sentiment
from gru_training.tracking.mlflow_tracker import MLflowTracker
from gru_training.tracking.tracked_training import Tracked
from gru_training.tracking.tracker import TrackedData
from tests.training.conftest import tiny_forecasting_config, write_waves

pytestmark = [
    pytest.mark.slow,
    # Other projects' code, on which nothing here depends.
    pytest.mark.filterwarnings("ignore:::mlflow"),
    pytest.mark.filterwarnings("ignore:::sqlalchemy"),
    pytest.mark.filterwarnings("ignore:::pydantic"),
    pytest.mark.filterwarnings("ignore:.*Any type hint is inferred:UserWarning"),
]
DATA = TrackedData("tickets", "ab" * 32, {"train": 30, "test": 3})


class Server:
    """An MLflow server on loopback that can be stopped and started again with the same store."""

    def __init__(self, folder):
        self.folder = folder
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            self.port = listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None

    def start(self):
        command = [
            sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", self.port,
            "--backend-store-uri", f"sqlite:///{self.folder / 'store.db'}",
            "--artifacts-destination", self.folder / "artifacts", "--workers", "1",
        ]  # fmt: skip
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                list(map(str, command)), stdout=log, stderr=log, cwd=self.folder,
                env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
                start_new_session=True,
            )  # fmt: skip
        for _ in range(600):
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{self.url}/health").status_code == 200:
                    return
            assert self.process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.1)
        raise AssertionError((self.folder / "log").read_text())

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, 15)
            self.process.wait(30)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("mlflow"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def server_to_stop(tmp_path):
    """One that no other test needs."""
    server = Server(tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def client(server):
    return MlflowClient(server.url)


def only_run(client, experiment):
    found = client.get_experiment_by_name(experiment)
    (run,) = client.search_runs([found.experiment_id])
    return run


def history(client, run, name):
    return {each.step: each.value for each in client.get_metric_history(run.info.run_id, name)}


@contextlib.contextmanager
def at(server):
    """Within, MLflow's own functions speak to the server."""
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(server.url)
    try:
        yield
    finally:
        mlflow.set_tracking_uri(before)


def scoring_app(model):
    """What `mlflow models serve` runs; its import warns of MLflow's own type hints."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mlflow.pyfunc import scoring_server

        return scoring_server.init(model)


@pytest.mark.long
def test_a_classifier_from_training_to_the_registry(server, client, tracked_config, tmp_path):
    config = tracked_config(
        track="mlflow", track_to=server.url, track_project="texts", register="films"
    )
    run = train_sentiment(config)
    told = only_run(client, "texts")
    assert told.info.status == "FINISHED"
    assert told.info.run_name == "tracked"
    assert told.data.params["training.batch_size"] == "32"
    assert told.data.params["model.bidirectional"] == "true"
    losses = {each["epoch"]: each["validation"]["loss"] for each in run.history}
    assert history(client, told, "validation/loss") == losses
    test = run.metrics["model"]["test"]["accuracy"]
    assert history(client, told, "final/test/accuracy") == {run.metrics["best_epoch"]: test}
    (entry,) = told.inputs.dataset_inputs
    assert told.data.tags["data.sha256"].startswith(entry.dataset.digest)
    assert len(told.data.tags["data.sha256"]) == 64
    pictures = {Path(each.path).name for each in client.list_artifacts(told.info.run_id, "report")}
    assert pictures == {"report.html", *(path.name for path in run.path.glob("*.png"))}

    texts = ["a wonderful film", "not good at all", ""]
    expected = TextEstimator.load(run.path).predict_frame(texts)
    with at(server):
        model = mlflow.pyfunc.load_model("models:/films/1")
        for asked in (texts, pd.DataFrame({"text": texts}), np.array(texts)):
            pd.testing.assert_frame_equal(model.predict(asked), expected)
        served = TestClient(scoring_app(model))
        for sent in (
            {"inputs": texts},
            {"dataframe_split": {"columns": ["text"], "data": [[text] for text in texts]}},
        ):
            answered = served.post("/invocations", json=sent).json()["predictions"]
            assert [row["label"] for row in answered] == expected["label"].tolist()
        copied = Path(mlflow.artifacts.download_artifacts("models:/films/1", dst_path=tmp_path))
    exported = subprocess.run(
        [sys.executable, "-m", "gru_serving", "export", copied / "data" / "run",
         "--to", tmp_path / "models" / "films"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert exported.returncode == 0, exported.stderr
    assert (tmp_path / "models" / "films" / "1" / "saved_model.pb").is_file()


def test_a_forecaster_from_training_to_the_registry(server, client, tmp_path):
    data = write_waves(tmp_path / "waves.csv")
    config = tiny_forecasting_config(tmp_path, data=data)
    settings = {"track": "mlflow", "track_to": server.url, "track_project": "waves"}
    run = train_forecasting(replace(config, run=replace(config.run, **settings, register="waves")))
    told = only_run(client, "waves")
    losses = {each["epoch"]: each["train"]["loss"] for each in run.history}
    assert history(client, told, "train/loss") == losses
    rows = pd.read_csv(data, parse_dates=["time"]).tail(60)
    with at(server):
        model = mlflow.pyfunc.load_model("models:/waves/1")
    expected = Forecaster.load(run.path).predict(data=rows)
    pd.testing.assert_frame_equal(model.predict(rows), expected)


@pytest.mark.long
def test_a_server_that_is_gone_for_a_while_costs_nothing(
    server_to_stop, tracked_config, console, shown, records, tmp_path, tiny_run
):
    server = server_to_stop
    config = tracked_config(track="mlflow", track_to=server.url)
    with Tracked(config, "sentiment", console) as tracked:
        tracked.begin(tmp_path / "tracked", DATA)
        tracked.epoch(records[0])
        server.stop()
        for record in records[1:3]:
            tracked.epoch(record)
        assert shown().count("mlflow cannot be reached; the training continues") == 1
        server.start()
        tracked.epoch(records[3])
        tracked.complete(tiny_run.path)
    client = MlflowClient(server.url)
    run = only_run(client, "keras-gru")
    assert history(client, run, "validation/loss") == {n: 2 / n for n in range(1, 5)}
    assert run.info.status == "FINISHED"


@pytest.mark.long
def test_a_server_that_does_not_come_back_costs_nothing(
    server_to_stop, tracked_config, console, shown, records, tmp_path, tiny_run
):
    server = server_to_stop
    with Tracked(tracked_config(track="mlflow", track_to=server.url), "t", console) as tracked:
        tracked.begin(tmp_path / "tracked", DATA)
        server.stop()
        for record in records:
            tracked.epoch(record)
        tracked.complete(tiny_run.path)
    assert shown().count("warning: mlflow cannot be told") == 1


def test_no_server_at_the_start_is_an_error(tracked_config, tmp_path):
    config = tracked_config(track="mlflow", track_to="http://127.0.0.1:9")
    with pytest.raises(TrackingError, match=r"--track mlflow: cannot start: .*127\.0\.0\.1"):
        train_sentiment(config)
    assert [path.name for path in tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("error", "status"), [(DivergenceError("nan"), "FAILED"), (KeyboardInterrupt(), "KILLED")]
)
def test_a_training_that_ends_early(
    server, client, tracked_config, console, tmp_path, error, status
):
    config = tracked_config(track="mlflow", track_to=server.url, track_project=f"ends {status}")

    def train():
        with Tracked(config, "sentiment", console) as tracked:
            tracked.begin(tmp_path / "tracked", DATA)
            raise error

    with pytest.raises(type(error)):
        train()
    assert only_run(client, f"ends {status}").info.status == status


def test_results_that_are_not_taken_do_not_hide_the_end(
    server, client, tracked_config, console, shown, tmp_path, tiny_run, monkeypatch
):
    def refuse(self, run):
        raise OSError("no space left")

    monkeypatch.setattr(MLflowTracker, "results", refuse)
    config = tracked_config(track="mlflow", track_to=server.url, track_project="refused")
    with Tracked(config, "sentiment", console) as tracked:
        tracked.begin(tmp_path / "tracked", DATA)
        tracked.complete(tiny_run.path)
    assert only_run(client, "refused").info.status == "FINISHED"
    assert "OSError: no space left" in shown()


def test_a_resumed_training_goes_on_with_its_run(
    server, client, tracked_config, console, records, tmp_path, tiny_run
):
    config = tracked_config(track="mlflow", track_to=server.url, track_project="resumed")
    for resume, epochs in ((False, records[:2]), (True, records)):
        with (
            contextlib.suppress(KeyboardInterrupt),
            Tracked(config, "sentiment", console, resume) as tracked,
        ):
            tracked.begin(tmp_path / "it's here", DATA)
            for record in epochs:  # the first ones are told again
                tracked.epoch(record)
            if not resume:
                raise KeyboardInterrupt
            tracked.complete(tiny_run.path)
    run = only_run(client, "resumed")
    assert run.info.status == "FINISHED"
    metrics = client.get_metric_history(run.info.run_id, "train/loss")
    assert [(each.step, each.value) for each in metrics] == [(n, 1 / n) for n in range(1, 5)]
