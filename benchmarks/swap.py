"""Latency for clients of the old version while a server loads and warms up a new one.

    python -m benchmarks.swap models/sentiment/1 [--clients 2] [--swaps 5]

The server gets a copy of the version, and then, again and again, the next one, which holds the same
files. All the while clients send the first golden request over gRPC, one after the other. A request
counts as "during a swap" if it ended between the new version's arrival on disk and its being the
one that serves. Two servers take turns: one that runs the version's warmup requests, one that runs
none.
"""

import argparse
import contextlib
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.server_process import NAME, await_version, publish, running_server
from gru_serving.client import connect
from gru_serving.engine.golden import Request, read_golden, to_array

CALM = 3.0  # seconds between two swaps


class Latencies(NamedTuple):
    """Milliseconds of each request."""

    before: list[float]
    during: list[float]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.swap",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "version", type=Path, help="an exported version, as `gru-serve export` makes"
    )
    parser.add_argument("--clients", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument(
        "--swaps", type=int, default=5, help="of each server (default: %(default)s)"
    )
    parser.add_argument("--runtime", default="auto", help="the server's flag (default: auto)")
    arguments = parser.parse_args(argv)
    request = read_golden(arguments.version)[0]
    measured = {"warmup": Latencies([], []), "no warmup": Latencies([], [])}
    seconds: dict[str, list[float]] = {name: [] for name in measured}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        servers = {
            name: stack.enter_context(
                running_server(
                    Path(folder) / name, arguments.version, name == "warmup", arguments.runtime
                )
            )
            for name in measured
        }
        for version in range(2, arguments.swaps + 2):
            for name, server in servers.items():
                load = _Load(server.url, request, arguments.clients)
                with load:
                    time.sleep(CALM)
                    arrived = time.perf_counter()
                    publish(arguments.version, server.base, version)
                    await_version(server.url, version)
                    live = time.perf_counter()
                seconds[name].append(live - arrived)
                for ended, latency in load.seen:
                    if ended < arrived:
                        measured[name].before.append(latency)
                    elif ended < live:
                        measured[name].during.append(latency)
    print(f"{arguments.clients} clients, {arguments.swaps} swaps; ms")
    print("| server | swap, s | p50 before | p99 before | p50 during | p99 during | worst during |")
    print("|---|---|---|---|---|---|---|")
    for name, (before, during) in measured.items():
        figures = [*np.percentile(before, (50, 99)), *np.percentile(during, (50, 99, 100))]
        cells = " | ".join(f"{figure:.1f}" for figure in figures)
        print(f"| {name} | {statistics.median(seconds[name]):.1f} | {cells} |")
    return 0


class _Load:
    """Clients in threads that ask until the block ends."""

    def __init__(self, url: str, request: Request, clients: int) -> None:
        self.seen: list[tuple[float, float]] = []  # when the answer came, and its milliseconds
        self._over = threading.Event()
        self._threads = ThreadPoolExecutor(clients)
        self._asked = [self._threads.submit(self._ask, url, request) for _ in range(clients)]

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for one in self._asked:
            one.result()
        self._threads.shutdown()

    def _ask(self, url: str, request: Request) -> None:
        inputs = {name: to_array(values) for name, values in request["inputs"].items()}
        with connect(url) as client:
            client.predict(inputs, NAME)
            while not self._over.is_set():
                begun = time.perf_counter()
                client.predict(inputs, NAME)
                ended = time.perf_counter()
                self.seen.append((ended, (ended - begun) * 1e3))


if __name__ == "__main__":
    sys.exit(main())
