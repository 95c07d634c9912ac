"""Processor time that a server takes per answer: with an addition, and without it.

    python -m benchmarks.processor_time models/sentiment/1 tracing|workers [--rounds 12]

Two servers of one version are asked in turn, the first row of the first golden request by 16
clients over REST. Each ratio is of two rounds in a row, and its median is of all rounds. `tracing`
samples one request in a hundred, and sends the traces to a collector in this process. `workers` has
two of them, and prints what more would give by a model (docs/explanation/server_speed.md). Needs
Linux, and h2load (apt-get install nghttp2-client).
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.server_process import NAME, await_version, publish
from gru_serving.engine.golden import read_golden
from tests.ports import free_ports
from tests.serving.trace_receiver import receiving

ALONE = "one process"
ADDITIONS = {"tracing": "--tracing", "workers": "--workers=2"}
CORES = (2, 4, 8, 16)
IDLE_SECONDS = 10.0


class Server(NamedTuple):
    """A server under test: the process that was started, and the port for REST."""

    process: subprocess.Popen[bytes]
    port: int


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print the tables; returns 0."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.processor_time",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("version", type=Path, help="an exported version, as `gru-serve export` has")
    parser.add_argument("--rounds", type=int, default=12, help="(default: %(default)s)")
    parser.add_argument("addition", choices=ADDITIONS)
    parser.add_argument("--requests", type=int, default=3000, help="of a round (default: 3000)")
    arguments = parser.parse_args(argv)
    added = ADDITIONS[arguments.addition]
    measured: dict[str, list[float]] = {ALONE: [], added: []}
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        publish(arguments.version, folder / NAME, 1)
        inputs = read_golden(arguments.version)[0]["inputs"]
        body = folder / "request.json"
        body.write_text(json.dumps({"inputs": {key: rows[:1] for key, rows in inputs.items()}}))
        _, collector = stack.enter_context(receiving())
        servers = {
            kind: stack.enter_context(started(folder / NAME, flags, collector))
            for kind, flags in ((ALONE, ()), (added, (added,)))
        }
        for number in range(arguments.rounds + 1):  # the first warms up
            for kind in measured if number % 2 else reversed(measured):
                taken = per_answer(servers[kind], body, arguments.requests)
                if number:
                    measured[kind].append(taken)
        owner = servers[added].process.pid
        before = processor_seconds([owner])
        time.sleep(IDLE_SECONDS)
        idle = (processor_seconds([owner]) - before) / IDLE_SECONDS
    alone = measured[ALONE]
    for kind, figures in measured.items():
        ratios = sorted(b / a for a, b in zip(alone, figures, strict=True))
        print(
            f"{kind:<12} {statistics.median(figures):6.1f} us per answer, "
            f"{statistics.median(ratios):.3f} times ({ratios[0]:.3f} to {ratios[-1]:.3f})"
        )
    if arguments.addition == "workers":
        print_model(statistics.median(alone), statistics.median(measured[added]), idle)
    return 0


def print_model(alone: float, worker: float, owner: float) -> None:
    """Print what N workers on N cores would answer at most.

    Args:
        alone: Microseconds of processor time per answer in one process.
        worker: The same with workers, of all processes together.
        owner: Part of a core that the owner takes without requests.
    """
    print(f"model: {owner:.4f} cores for the owner\ncores  answers/s  times one process")
    for cores in CORES:
        rate = (cores - owner) / worker * 1e6
        print(f"{cores:5}  {rate:9,.0f}  {rate * alone / 1e6:.2f}")


@contextlib.contextmanager
def started(base: Path, flags: Sequence[str], collector: str) -> Iterator[Server]:
    """Serve the version on free ports."""
    port, rest_port = free_ports(2)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "gru_serving", "serve", f"--port={port}", *flags),
            *(f"--rest_api_port={rest_port}", f"--model_name={NAME}", f"--model_base_path={base}"),
        ],
        env={
            **os.environ,
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector,
            "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
            "OTEL_TRACES_SAMPLER_ARG": "0.01",
        },
        stderr=subprocess.DEVNULL,
    )
    try:
        await_version(f"grpc://127.0.0.1:{port}", 1)
        yield Server(process, rest_port)
    finally:
        process.terminate()
        process.wait(30)


def per_answer(server: Server, body: Path, requests: int) -> float:
    """Return the microseconds of processor time per answer."""
    processes = [server.process.pid, *children(server.process.pid)]
    before = processor_seconds(processes)
    url = f"http://127.0.0.1:{server.port}/v1/models/{NAME}:predict"
    done = subprocess.run(
        [
            *("h2load", "--h1", "-t", "1", "-c", "16", "-n", str(requests), "-d", str(body)),
            *("-H", "content-type: application/json", url),
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    if f"status codes: {requests} 2xx" not in done:
        raise RuntimeError(f"expected {requests} answers; got {done}")
    return (processor_seconds(processes) - before) / requests * 1e6


def children(parent: int) -> list[int]:
    """List the processes that a process has started."""
    stats = [file.read_text() for file in Path("/proc").glob("[0-9]*/stat")]
    parents = {int(one.split()[0]): int(one.rpartition(")")[2].split()[1]) for one in stats}
    return [process for process, started_by in parents.items() if started_by == parent]


def processor_seconds(processes: Sequence[int]) -> float:
    """Sum the processor time of all threads of some processes, to the nanosecond."""
    files = [
        file for process in processes for file in Path(f"/proc/{process}/task").glob("*/schedstat")
    ]
    return sum(int(file.read_text().split()[0]) for file in files) / 1e9


if __name__ == "__main__":
    sys.exit(main())
