"""The example of docs/how_to/many_machines.md that trains with Ray; a worker is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gru_training.__main__ import main
from gru_training.loop.checkpoint import checkpoint_path
from tests.serving.ray.cluster import children, two_nodes
from tests.training.loop.every_task import TRAIN, assert_same
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "train_with_ray.py"
TASK, *SETTINGS = [word for word in TRAIN if word not in ("--name", "run")]


def test_it_is_short():
    assert EXAMPLE.read_text("utf-8").count("\n") < 40


@pytest.mark.long
def test_ray_starts_a_killed_worker_again(tmp_path):
    run = tmp_path / "runs" / "run"
    with two_nodes() as cluster:
        process = subprocess.Popen(
            [sys.executable, EXAMPLE, "2", run, TASK, *SETTINGS],
            env={**os.environ, "PYTHONPATH": str(ROOT), "RAY_ADDRESS": cluster.address,
                 "CUDA_VISIBLE_DEVICES": "-1"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        wait_until(lambda: checkpoint_path(run).exists() or process.poll() is not None, 600)
        assert process.poll() is None, process.communicate()
        workers = [pid for node in cluster.raylets() for pid in children(node) if trains(pid)]
        assert len(workers) == 2
        os.kill(workers[1], signal.SIGKILL)
        output, _ = process.communicate(timeout=600)
        assert process.returncode == 0, output
    assert main([*TRAIN, "--runs-dir", str(tmp_path / "one")]) == 0
    assert_same(run, tmp_path / "one" / "run", "sentiment")


def trains(pid):
    try:
        return "RayTrainWorker" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:  # it has ended
        return False
