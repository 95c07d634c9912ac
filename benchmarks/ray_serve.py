"""The cost of Ray Serve: an export behind it and behind the server itself, asked in turns.

python -m benchmarks.ray_serve models/reviews

Both are on this machine, with one replica and one client, so that nothing waits in a queue: the
difference is the way of a request through Ray's proxy. Processor time is that of all processes of
the cluster, and of the server.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from gru_serving.client import connect
from gru_serving.ray import deploy, deployment
from tests.serving.ray.cluster import children, two_nodes
from tests.serving.servers import cpu_seconds, running

ROUNDS, REQUESTS = 20, 25
TEXT = "Starts badly but ends well."


def main(base: Path) -> None:
    """Print medians for both transports."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running(
            Path(folder, "log"), f"--model_name={base.name}", f"--model_base_path={base}"
        ) as server,
        two_nodes() as cluster,
    ):
        deploy(deployment(base), cluster.port, cluster.rest_port, "127.0.0.1")
        for transport in ("grpc", "rest"):
            compare(transport, base.name, server, cluster)


def compare(transport: str, model: str, server: object, cluster: object) -> None:
    """Print latency and processor time of a request over one transport."""
    kinds = {"server": server, "Ray Serve": cluster}
    milliseconds: dict[str, list[float]] = {name: [] for name in kinds}
    seconds = dict.fromkeys(kinds, 0.0)
    clients = {name: connect(getattr(one, transport)) for name, one in kinds.items()}
    for turn in range(ROUNDS + 1):
        for name, one in kinds.items():
            began, before = time.perf_counter(), used(one)
            for _ in range(REQUESTS):
                clients[name].predict([TEXT], model)
            if turn:  # the first one warms up
                milliseconds[name].append((time.perf_counter() - began) / REQUESTS * 1e3)
                seconds[name] += used(one) - before
    for name in kinds:
        print(
            f"{transport:5} {name:10} {statistics.median(milliseconds[name]):7.2f} ms, "
            f"{seconds[name] / (ROUNDS * REQUESTS) * 1e3:7.2f} ms of processor time"
        )
        clients[name].close()


def used(one: object) -> float:
    """The processor time of a server, or of all that the nodes of a cluster have started."""
    if process := getattr(one, "process", None):
        return cpu_seconds(process.pid)
    raylets = one.raylets()  # type: ignore[attr-defined]
    return sum(cpu_seconds(pid) for node in raylets for pid in (node, *children(node)))


if __name__ == "__main__":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    main(Path(sys.argv[1]).absolute())
