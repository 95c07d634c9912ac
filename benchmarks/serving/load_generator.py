"""Load from C programs: h2load for gRPC, wrk for HTTP. One in Python would measure itself."""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

_PREDICT = "/tensorflow.serving.PredictionService/Predict"
_ENOUGH = 5  # requests per client and second
_LONG = 12
_UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6}
# wrk loads a new script for each run; the body comes from a file, so that it needs no quoting.
_SCRIPT = """\
local file = assert(io.open("{body}", "rb"))
wrk.method = "POST"
wrk.body = file:read("*a")
wrk.headers["Content-Type"] = "application/json"
file:close()
"""


@dataclass(frozen=True)
class Measured:
    """The results of one run.

    Attributes:
        rate: Requests per second.
        p50: Median latency in microseconds.
        p99: 99th percentile of the latency in microseconds.
    """

    rate: float
    p50: float
    p99: float


def missing_tools() -> list[str]:
    """The generators that are not installed, with the way to get them."""
    packages = {"h2load": "nghttp2-client", "wrk": "wrk"}
    return [
        f"{tool} is not installed: apt-get install {package} (brew install {tool} on macOS)"
        for tool, package in packages.items()
        if shutil.which(tool) is None
    ]


def grpc_load(port: int, body: Path, clients: int, seconds: int) -> Measured:
    """One call after the other on each of several connections.

    Raises:
        RuntimeError: Some calls were not answered.
    """
    log = body.with_suffix(".log")
    log.unlink(missing_ok=True)
    done = subprocess.run(
        [
            *("h2load", "-p", "h2c", "-t", "1", "-m", "1", "-c", str(clients)),
            *("-D", str(seconds), "--warm-up-time", "1", "-d", str(body)),
            *("-H", "te: trailers", "-H", "content-type: application/grpc"),
            *(f"--log-file={log}", f"http://127.0.0.1:{port}{_PREDICT}"),
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    counts = re.search(r"requests: .* (\d+) failed, (\d+) errored, (\d+) timeout", done)
    if counts is None or any(int(count) for count in counts.groups()):
        raise RuntimeError(f"h2load: {done}")
    times = sorted(int(line.split()[2]) for line in log.read_text().splitlines())
    return Measured(len(times) / seconds, statistics.median(times), times[int(len(times) * 0.99)])


def http_load(port: int, path: str, body: Path, clients: int, seconds: int) -> Measured:
    """One request after the other on each of several connections.

    Raises:
        RuntimeError: Some requests were not answered with 200.
    """
    script = body.with_suffix(".lua")
    script.write_text(_SCRIPT.format(body=body))
    url = f"http://127.0.0.1:{port}{path}"
    command = ["wrk", "-t1", f"-c{clients}", "--latency", "--timeout", "30s", "-s", str(script)]
    warm, _ = _wrk([*command, "-d1", url])
    if warm < _ENOUGH * clients:
        # wrk counts only requests that finish in time; give slow servers time to finish theirs.
        seconds = _LONG
    rate, done = _wrk([*command, f"-d{seconds}", url])
    return Measured(rate, _percentile(done, "50%"), _percentile(done, "99%"))


def _wrk(command: list[str]) -> tuple[float, str]:
    done = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate = re.search(r"Requests/sec:\s+([\d.]+)", done)
    if rate is None or "Non-2xx" in done or "Socket errors" in done:
        raise RuntimeError(f"wrk: {done}")
    return float(rate[1]), done


def _percentile(text: str, which: str) -> float:
    found = re.search(rf"{which}\s+([\d.]+)(us|ms|s)", text)
    assert found is not None, text
    return float(found[1]) * _UNITS[found[2]]
