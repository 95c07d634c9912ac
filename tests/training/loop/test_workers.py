"""The same batches give any number of workers the result of one, and a lost worker costs no run."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gru_training.__main__ import main
from gru_training.errors import ConfigError
from gru_training.loop.checkpoint import checkpoint_path
from gru_training.loop.cluster import Place, find_place
from gru_training.loop.workers import Workers
from gru_training.task import find_task
from tests.ports import free_ports
from tests.serving.ray.cluster import children
from tests.training.loop import every_task
from tests.training.loop.every_task import TRAIN, assert_same
from tests.waiting import wait_until

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
TASKS = ("sentiment", "language", "forecasting")


def start(*command, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, command)],
        cwd=ROOT,
        env={**ENVIRONMENT, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def place(addresses, number, **others):
    cluster = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": number}}
    return json.dumps({**cluster, **others})


@pytest.fixture(scope="module")
def trained_by_one(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    every_task.write_data(folder)
    every_task.train(folder / "runs", folder)
    return folder


@pytest.mark.long
@pytest.mark.parametrize("count", [2, 3])
def test_workers_train_every_task_as_one_does(tmp_path, trained_by_one, count):
    addresses = [f"127.0.0.1:{port}" for port in free_ports(count)]
    processes = [
        start(
            "tests.training.loop.every_task",
            tmp_path / f"worker{number}",
            trained_by_one,
            TF_CONFIG=place(addresses, number),
        )
        for number in range(count)
    ]
    for process in processes:
        output, _ = process.communicate(timeout=600)
        assert process.returncode == 0, output
    for task in TASKS:
        assert_same(tmp_path / "worker0" / task, trained_by_one / "runs" / task, task)
        for number in range(1, count):
            assert not list((tmp_path / f"worker{number}").glob(f"*{task}*"))


@pytest.mark.long
def test_a_killed_worker_ends_all_and_another_number_goes_on(tmp_path):
    """Of three workers one is killed; then one goes on, or two."""
    assert main([*TRAIN, "--runs-dir", str(tmp_path / "whole")]) == 0
    place = tmp_path / "three"
    checkpoint = checkpoint_path(place / "run")
    launcher = start("gru_training", *TRAIN, "--runs-dir", place, "--workers", "3")
    wait_until(lambda: checkpoint.exists() or launcher.poll() is not None, 600)
    assert launcher.poll() is None, launcher.communicate()
    os.kill(sorted(children(launcher.pid))[1], signal.SIGKILL)
    output, _ = launcher.communicate(timeout=60)
    assert launcher.returncode == 2
    resume = f"gru-train resume {place / 'run'}"
    assert f"worker 2 of 3 was killed by SIGKILL; continue with `{resume}`" in output
    assert not list(children(launcher.pid))
    assert not (place / "run").exists()

    for number in ("1", "2"):
        again = tmp_path / number
        again.mkdir()
        shutil.copy(checkpoint, again)
        command = ["resume", str(again / "run"), "--workers", number]
        if number == "1":
            assert main(command) == 0
        else:
            launcher = start("gru_training", *command)
            output, _ = launcher.communicate(timeout=600)
            assert launcher.returncode == 0, output
        assert_same(again / "run", tmp_path / "whole" / "run", "sentiment")


@pytest.mark.long
def test_ctrl_c_ends_all_workers_after_the_same_step(tmp_path):
    launcher = subprocess.Popen(
        [sys.executable, "-m", "gru_training", *TRAIN, "--runs-dir", tmp_path, "--workers", "2"],
        env=ENVIRONMENT, cwd=ROOT, start_new_session=True,
    )  # fmt: skip
    wait_until(checkpoint_path(tmp_path / "run").exists, 300)
    os.killpg(launcher.pid, signal.SIGINT)
    assert launcher.wait(600) == 130
    assert find_task("sentiment").open_run(tmp_path / "run").metrics["interrupted"]


@pytest.mark.long
def test_workers_with_other_data_are_refused(tmp_path):
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    processes = [
        start("gru_training", *TRAIN, "--runs-dir", tmp_path, "--seed", number,
              TF_CONFIG=place(addresses, number))
        for number in range(2)
    ]  # fmt: skip
    for process in processes:
        output, _ = process.communicate(timeout=600)
        assert process.returncode == 2
        assert "expected the same settings and data in all 2 workers" in output
    assert not list(tmp_path.glob("*"))


@pytest.mark.parametrize(
    "text",
    ["{}", "{", place(["a:1"], 1), place(["a:1", "b:1"], 0, cluster={"ps": ["a:1"]}),
     place(["a:1"], 0, task={"type": "evaluator", "index": 0}), '{"cluster": {"worker": ["a:1"]}}'],
)  # fmt: skip
def test_a_cluster_without_this_process_is_refused(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ConfigError, match=r"TF_CONFIG: expected a cluster .* unset it to train"):
        find_place()


def test_places_in_a_cluster(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert Workers(find_place()).count == 1
    monkeypatch.setenv("TF_CONFIG", place(["a:1", "b:1", "b:2"], 2))
    found = find_place()
    assert (found.number, len(found.addresses), found.number_on_host) == (2, 3, 1)
    cluster = {"chief": ["a:1"], "worker": ["b:1"]}
    monkeypatch.setenv("TF_CONFIG", place([], 0, cluster=cluster))
    assert find_place() == Place(1, ("a:1", "b:1"))


@pytest.mark.parametrize("arguments", [["--workers", "0"], ["--workers=-1"]])
def test_a_training_has_a_worker(arguments, capsys):
    assert main(["sentiment", *arguments]) == 2
    assert "--workers must be at least 1" in capsys.readouterr().err


def test_workers_of_a_cluster_are_not_started_by_hand(monkeypatch, capsys):
    monkeypatch.setenv("TF_CONFIG", place(["a:1", "b:1"], 0))
    assert main(["sentiment", "--workers", "2"]) == 2
    assert "leave out one of the two" in capsys.readouterr().err
