"""Trains with Ray Train: each worker of the cluster takes its rows of every batch.

RAY_ADDRESS=head:6379 python docs/examples/train_with_ray.py 2 /shared/runs/tickets \
    sentiment --data /shared/tickets.csv
"""

import sys
from pathlib import Path
from typing import Any

import ray
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.tensorflow import TensorflowTrainer

from gru_training.__main__ import main
from gru_training.loop.checkpoint import checkpoint_path


def train(settings: dict[str, Any]) -> None:
    """Run `gru-train` in a worker, which finds the others in TF_CONFIG."""
    run = Path(settings["run"])
    command = [*settings["command"], "--runs-dir", str(run.parent), "--name", run.name]
    if checkpoint_path(run).exists():  # a worker was lost, and Ray starts all of them again
        command = ["resume", str(run)]
    if status := main(command):
        raise RuntimeError(f"gru-train {' '.join(command)} ended with status {status}")


if __name__ == "__main__":
    ray.init()  # the cluster of RAY_ADDRESS, or this machine
    workers, place, *words = sys.argv[1:]
    TensorflowTrainer(
        train,
        train_loop_config={"run": place, "command": words},
        scaling_config=ScalingConfig(num_workers=int(workers)),  # use_gpu=True: a GPU for each
        run_config=RunConfig(failure_config=FailureConfig(max_failures=3)),
    ).fit()
