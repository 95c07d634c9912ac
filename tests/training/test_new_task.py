"""A new task is one folder and one line: it trains, resumes, is exported and served."""

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from gru_serving.__main__ import main as gru_serve
from gru_serving.client import connect
from gru_training.__main__ import main as gru_train
from gru_training.task import TASKS
from tests.serving.servers import running

REPOSITORY = Path(__file__).parents[2]
LINE = ("tagging", "tests.training.toy_task.task")
GRU_TRAIN = f"""
import sys
from gru_training.__main__ import main
from gru_training.task import TASKS
TASKS[{LINE[0]!r}] = {LINE[1]!r}
sys.exit(main())
"""


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(TASKS, *LINE)


def train(runs, name, *arguments):
    return gru_train(["tagging", *arguments, "--runs-dir", str(runs), "--name", name])


def open_run(path):
    from tests.training.toy_task.task import TASK

    return TASK.open_run(path)


@pytest.mark.slow
def test_it_has_its_command_with_presets(capsys):
    assert gru_train(["tagging", "--preset", "few", "--help"]) == 0
    said = capsys.readouterr().out
    assert "Train a sequence tagger on made-up sequences." in said
    assert "(default: 64)" in said
    assert gru_train(["tagging", "--preset", "many"]) == 2
    assert "--preset must be one of few, got 'many'" in capsys.readouterr().err


@pytest.mark.long
def test_killed_and_resumed_it_has_the_same_weights(tmp_path):
    settings = ["--epochs", "12", "--patience", "12"]
    assert train(tmp_path, "whole", *settings) == 0
    checkpoint = tmp_path / ".broken.checkpoint"
    command = [sys.executable, "-c", GRU_TRAIN, "tagging", *settings,
               "--runs-dir", str(tmp_path), "--name", "broken"]  # fmt: skip
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL) as process:
        while not checkpoint.exists():
            assert process.poll() is None
            time.sleep(0.002)
        process.kill()
    assert not (tmp_path / "broken").exists()
    assert gru_train(["resume", str(tmp_path / "broken")]) == 0
    whole, broken = (open_run(tmp_path / name) for name in ("whole", "broken"))
    weights = broken.load_model().get_weights(), whole.load_model().get_weights()
    for value, expected in zip(*weights, strict=True):
        np.testing.assert_array_equal(value, expected)
    assert broken.config.training == whole.config.training


@pytest.mark.long
def test_it_is_exported_and_served(tmp_path, capsys):
    arguments = ["--epochs", "30", "--patience", "30", "--sequences", "1000"]
    assert train(tmp_path / "runs", "digits", *arguments, "--learning-rate", "0.02") == 0
    said = capsys.readouterr().out
    run = open_run(tmp_path / "runs" / "digits")
    assert run.metrics["model"]["test"]["accuracy"] > 0.95  # half of the tags are 0
    assert f"gru-serve export {run.path} --to models/tagging" in said
    models = tmp_path / "models"
    assert gru_serve(["export", str(run.path), "--to", str(models)]) == 0
    card = json.loads((models / "1" / "assets.extra" / "model_card.json").read_text("utf-8"))
    assert card["task"] == "tagging"
    assert card["config"]["data"]["sequences"] == 1000
    tokens = np.load(run.path / "test.npy")[:50]
    logits = run.load_model().predict(tokens, verbose=0).astype(np.float64)
    expected = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    flags = ("--model_name=tagging", f"--model_base_path={models}")
    with running(tmp_path / "log", *flags) as server:
        for url in (server.rest, f"grpc://{server.grpc}"):
            with connect(url) as client:
                scores = client.predict({"tokens": tokens}, "tagging")["scores"]
            np.testing.assert_allclose(scores, expected, atol=1e-6)
        body = json.dumps({"instances": [{"tokens": [5, 3, 4, 4, 1]}]}).encode()
        address = f"{server.rest}/v1/models/tagging:predict"
        with urllib.request.urlopen(address, body, timeout=30) as answer:
            (row,) = json.load(answer)["predictions"]
        assert np.argmax(row, axis=1).tolist() == [0, 1, 0, 0, 1]
        version = str(models / "1")
        assert gru_serve(["verify", version, "--url", server.rest, "--model", "tagging"]) == 0
