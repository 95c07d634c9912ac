"""Latency of a server's answers with shadow traffic, and without it.

    python -m benchmarks.shadow [--rounds 30] [--seconds 2]

One server has two versions of the serving benchmark's model, a GRU over 50 tokens that runs in ONNX
Runtime. The configuration is reloaded before each round, in turn without a shadow and with one that
gets all requests. In `spare` one client asks 150 times a second, so that a core is free; in `busy`
16 clients ask without a pause. Each ratio is of two rounds in a row, and its median is of all
rounds. Needs h2load (apt-get install nghttp2-client).
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

from google.protobuf import text_format
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.server_process import await_version
from benchmarks.serving.model import NAME, rest_body
from gru_serving.client import connect
from gru_serving.protos.model_server_config_pb2 import ModelServerConfig
from gru_serving.telemetry.metrics import DEFAULT_PATH
from tests.ports import free_ports

CONFIG = """model_config_list {{ config {{
  name: "{name}" base_path: "{base}" model_platform: "tensorflow"
  model_version_policy {{ specific {{ versions: 1 versions: 2 }} }} {shadow}
}} }}"""
SHADOW = "shadow { version: 2 share: 1 }"
LOADS = {"spare": ("-c", "1", "--rps", "150"), "busy": ("-c", "16")}
"""Clients of each load, as h2load has it; those without a rate ask without a pause."""


class Server(NamedTuple):
    """A server under test."""

    base: Path
    port: int
    rest_port: int
    process: subprocess.Popen[bytes]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print the table; returns 0."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.shadow",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=30, help="of each kind (default: 30)")
    parser.add_argument("--seconds", type=int, default=2, help="of a round (default: 2)")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder, started(Path(folder)) as server:
        request = Path(folder) / "request.json"
        request.write_bytes(rest_body(1))
        for load, options in LOADS.items():
            figures = defaultdict[str, list[tuple[float, ...]]](list)
            before = counts(server)
            for number in range(arguments.rounds):
                kinds = ("off", "on") if number % 2 else ("on", "off")
                for kind in kinds:
                    configure(server, SHADOW if kind == "on" else "")
                    figures[kind].append(measured(server, request, options, arguments.seconds))
            outcomes = {k: int(v - before.get(k, 0)) for k, v in counts(server).items()}
            print(f"{load}: {outcomes}")
            for i, (name, unit) in enumerate((("p50", "ms"), ("p99", "ms"), ("answers", "/s"))):
                off, on = ([one[i] for one in figures[kind]] for kind in ("off", "on"))
                ratio = statistics.median(b / a for a, b in zip(off, on, strict=True))
                print(
                    f"  {name:<8} off {statistics.median(off):9.2f} {unit}"
                    f"   on {statistics.median(on):9.2f} {unit}   ratio {ratio:.3f}"
                )
    return 0


@contextmanager
def started(folder: Path) -> Iterator[Server]:
    """Serve the model twice."""
    subprocess.run([sys.executable, "-m", "benchmarks.serving.model", str(folder)], check=True)
    base = folder / NAME
    shutil.copytree(base / "1", base / "2")
    config, monitoring = folder / "models.config", folder / "monitoring.config"
    config.write_text(CONFIG.format(name=NAME, base=base, shadow=""))
    monitoring.write_text("prometheus_config { enable: true }")
    port, rest_port = free_ports(2)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "gru_serving", "serve", f"--port={port}"),
            *(f"--rest_api_port={rest_port}", f"--model_config_file={config}"),
            *(f"--monitoring_config_file={monitoring}", "--runtime=onnx"),
        ]
    )
    try:
        for version in (1, 2):
            await_version(f"grpc://127.0.0.1:{port}", version, NAME)
        yield Server(base, port, rest_port, process)
    finally:
        process.terminate()
        process.wait(30)


def configure(server: Server, shadow: str) -> None:
    """Have the server take a configuration with or without a shadow."""
    config = ModelServerConfig()
    text_format.Merge(CONFIG.format(name=NAME, base=server.base, shadow=shadow), config)
    with connect(f"grpc://127.0.0.1:{server.port}") as client:
        client.reload(config)


def counts(server: Server) -> dict[str, float]:
    """Read the number of requests by outcome."""
    connection = HTTPConnection("127.0.0.1", server.rest_port)
    connection.request("GET", DEFAULT_PATH)
    text = connection.getresponse().read().decode()
    connection.close()
    return {
        sample.labels["outcome"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("gru_serve:shadow_count")
    }


def measured(
    server: Server, request: Path, options: Sequence[str], seconds: int
) -> tuple[float, float, float]:
    """Ask version 1 for some time; returns p50 and p99 in milliseconds, and answers per second."""
    log = request.with_suffix(".log")
    log.unlink(missing_ok=True)
    url = f"http://127.0.0.1:{server.rest_port}/v1/models/{NAME}/versions/1:predict"
    subprocess.run(
        [
            *("h2load", "--h1", "-t", "1", *options, "-D", str(seconds), "-d", str(request)),
            *("-H", "content-type: application/json", f"--log-file={log}", url),
        ],
        capture_output=True,
        check=True,
    )
    rows = [line.split() for line in log.read_text().splitlines()]
    if any(status != "200" for _, status, _ in rows):
        raise RuntimeError(f"expected answers with status 200; got {rows[:3]}")
    times = sorted(int(microseconds) / 1e3 for *_, microseconds in rows)
    return statistics.median(times), times[int(0.99 * len(times))], len(times) / seconds


if __name__ == "__main__":
    sys.exit(main())
