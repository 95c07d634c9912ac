"""The same global batch gives the same result on two replicas as on one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gru_training.errors import ConfigError
from gru_training.forecasting.run import ForecastingRun
from gru_training.loop.replicas import make_replicas
from tests.ports import free_ports
from tests.training.conftest import write_waves

ROOT = Path(__file__).parents[3]
TRAIN = ["--epochs", "2", "--units", "6", "--set", "segment=6", "--dropout", "0", "--lookback",
         "24", "--horizon", "6", "--set", "batch_size=33", "--validation-fraction", "0.25",
         "--no-combine", "--no-refit"]  # fmt: skip
MIRRORED_ON_TWO_CPU_DEVICES = """
import sys, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from gru_training.__main__ import main
from tests.ports import free_ports
sys.exit(main(sys.argv[1:]))
"""


def start(arguments, code=None, **environment):
    command = [sys.executable, *(["-c", code] if code else ["-m", "gru_training"]), "forecasting"]
    return subprocess.Popen(
        [*command, *TRAIN, *arguments],
        cwd=ROOT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(*processes):
    outputs = [process.communicate(timeout=300)[0] for process in processes]
    for process, output in zip(processes, outputs, strict=True):
        assert process.returncode == 0, output
    return outputs


@pytest.mark.long
def test_two_workers_and_two_devices_train_as_one(tmp_path):
    data = write_waves(tmp_path / "waves.csv")
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(2)]}

    def arguments(name, *more):
        return ["--data", str(data), "--runs-dir", str(tmp_path / name), "--name", "run", *more]

    workers = [
        start(
            arguments(f"worker{index}", "--set", "distribute=workers"),
            TF_CONFIG=json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}}),
        )
        for index in range(2)
    ]
    outputs = finish(*workers)
    assert "the first worker writes the run" in outputs[1]
    assert not (tmp_path / "worker1").exists()
    finish(start(arguments("one")))
    finish(start(arguments("two", "--set", "distribute=mirrored"), MIRRORED_ON_TWO_CPU_DEVICES))

    one = ForecastingRun.open(tmp_path / "one" / "run")
    for name in ("worker0", "two"):
        run = ForecastingRun.open(tmp_path / name / "run")
        weights = zip(run.load_model().get_weights(), one.load_model().get_weights(), strict=True)
        for found, expected in weights:
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
        for epoch, expected in zip(run.history, one.history, strict=True):
            assert epoch["train"] == pytest.approx(expected["train"], rel=1e-5)
            assert epoch["validation"] == pytest.approx(expected["validation"], rel=1e-4)


@pytest.mark.parametrize("text", ["", "{}", "{", '{"cluster": {"worker": ["a:1"]}}'])
def test_workers_need_a_cluster(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ConfigError, match=r"--distribute workers: expected .* TF_CONFIG"):
        make_replicas("workers")


def test_without_a_strategy_there_is_one_replica():
    replicas = make_replicas("none")
    assert (replicas.count, replicas.writes) == (1, True)
