"""The cost of Ray Serve: an export behind it and behind the server itself, asked in turns.

python -m benchmarks.ray_serve models/reviews

Both are on this machine, with one replica and one client, so that nothing waits in a queue: the
difference is the way of a request through Ray's proxy. Processor time is that of all processes of
the cluster, and of the server. Then several clients ask at once, on one node and on two, and the
processor time is that of a request in each kind of process: the parameters of
`benchmarks.ray_nodes`.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from gru_serving.client import connect
from gru_serving.ray import deploy, deployment
from tests.serving.ray.cluster import children, two_nodes
from tests.serving.servers import cpu_seconds, running

ROUNDS, REQUESTS = 20, 25
CLIENTS, SECONDS = 8, 12.0
KINDS = {
    "ray::ProxyActor": "proxy",
    "ray::ServeReplica": "replica",
    "ray::ServeController": "controller",
}
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
        for nodes in (1, 2):
            options = {"num_replicas": nodes, "ray_actor_options": {"num_cpus": 1}}
            deploy(deployment(base, **options), cluster.port, cluster.rest_port, "127.0.0.1")
            for transport in ("grpc", "rest"):
                load(transport, base.name, cluster, nodes)


def load(transport: str, model: str, cluster: object, replicas: int) -> None:
    """Print throughput and processor time of requests that several clients send at once."""
    done, end = Counter[int](), time.perf_counter() + SECONDS

    def ask(number: int) -> None:
        with connect(getattr(cluster, transport)) as client:
            while time.perf_counter() < end:
                client.predict([TEXT], model)
                done[number] += 1

    before = by_kind(cluster)
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent, count = by_kind(cluster) - before, done.total()
    parts = ", ".join(f"{name} {seconds / count * 1e3:.2f}" for name, seconds in spent.items())
    print(
        f"{transport:5} {replicas} replicas, {CLIENTS} clients: {count / SECONDS:.0f} a second, "
        f"{count / spent.total():.0f} for a second of processor time; ms each: {parts}"
    )


def by_kind(cluster: object) -> Counter[str]:
    """Return the processor time so far of each kind of process of the cluster."""
    found = Counter[str]()
    for node in cluster.raylets():  # type: ignore[attr-defined]
        for pid in (node, *children(node)):
            title = Path(f"/proc/{pid}/cmdline").read_text()
            kind = next((kind for name, kind in KINDS.items() if title.startswith(name)), "others")
            found[kind] += cpu_seconds(pid)  # type: ignore[assignment]
    return found


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
