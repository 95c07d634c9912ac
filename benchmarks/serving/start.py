"""Start-up time of a server, compared with TensorFlow's import and loading the model."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

# Only the most expensive part of a start, which every server needs.
_LOAD = """
import sys
import tensorflow as tf
session = tf.compat.v1.Session(graph=tf.Graph())
tf.compat.v1.saved_model.load(session, ["serve"], sys.argv[1])
print("loaded", flush=True)
"""


def start_seconds(
    servers: dict[str, Callable[[], float]],
    saved_model: Path,
    environment: dict[str, str],
    rounds: int,
) -> dict[str, list[float]]:
    """Start all in turn.

    Args:
        servers: Functions by name that start and stop a server and return the seconds until its
            first answer.
        saved_model: Path of the SavedModel that the server loads.
        environment: Environment variables of the processes.
        rounds: Number of measured rounds; one more runs before them and does not count.

    Returns:
        Seconds of each round: ``"import and load"``, and those of the servers.
    """
    times: dict[str, list[float]] = {name: [] for name in ("import and load", *servers)}
    for _ in range(rounds + 1):
        times["import and load"].append(_load(saved_model, environment))
        for name, start in servers.items():
            times[name].append(start())
    return {name: seconds[1:] for name, seconds in times.items()}


def _load(saved_model: Path, environment: dict[str, str]) -> float:
    started = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", _LOAD, str(saved_model)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        if process.stdout.readline() != b"loaded\n":
            raise RuntimeError(f"cannot load {saved_model}")
        return time.perf_counter() - started
