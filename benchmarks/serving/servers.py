"""The servers of one run of the benchmark, all running at once, and the load on each."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.serving import model as serving_model
from benchmarks.serving.load_generator import Measured, grpc_load, http_load
from benchmarks.serving.model import NAME, Artifacts
from benchmarks.serving.rivals import Rival
from benchmarks.serving.start import start_seconds
from tests.ports import free_ports

LOADS = ((1, 1), (32, 1), (4, 32))  # clients, rows per request
_ROOT = Path(__file__).parents[2]
_PATIENCE = 120.0
_PREDICT = f"/v1/models/{NAME}:predict"


@dataclass
class Target:
    """Something to put load on.

    Attributes:
        name: Name in the table.
        load: A function of clients, rows and seconds that puts the server under load.
        loads: The loads that the server gets.
        results: One entry per round, by load.
    """

    name: str
    load: Callable[[int, int, int], Measured]
    loads: tuple[tuple[int, int], ...] = LOADS
    results: dict[tuple[int, int], list[Measured]] = field(default_factory=dict)


class Bench:
    """The servers of one run, and their folder."""

    def __init__(self, directory: Path, stack: contextlib.ExitStack) -> None:
        self.directory = directory
        self._stack = stack
        self.versions: dict[str, str] = {}
        self.left_out: dict[str, str] = {}
        module = [sys.executable, "-m", "benchmarks.serving.model", str(directory)]
        subprocess.run(module, check=True, cwd=_ROOT, env=_environment(), capture_output=True)
        base = directory / NAME
        self.artifacts = Artifacts(base, base / "1", directory / "model.keras")
        forms = {
            "grpc": serving_model.grpc_body,
            "rows": serving_model.rest_body,
            "v2": serving_model.v2_body,
        }
        self.bodies: dict[tuple[str, int], Path] = {}
        for form, make in forms.items():
            for rows in (1, 32):
                path = directory / f"{form}-{rows}.body"
                path.write_bytes(make(rows))
                self.bodies[form, rows] = path

    def bare(self, runtime: str = "tensorflow") -> Target:
        """The model itself, called from as many threads as there are clients."""
        process = self._start(
            [
                sys.executable,
                "-m",
                "benchmarks.serving.bare_session",
                str(self.artifacts.saved_model),
                runtime,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

        def load(clients: int, rows: int, seconds: int) -> Measured:
            process.stdin.write(f"{clients} {rows} {seconds}\n")
            process.stdin.flush()
            return Measured(**json.loads(process.stdout.readline()))

        name = "bare session" if runtime == "tensorflow" else f"bare {runtime} session"
        return Target(f"{name}, threads", load, ((1, 1), (4, 32)))

    def own(self, label: str, *flags: str) -> tuple[Target, Target]:
        """This project's server: over gRPC, and over REST."""
        _, grpc_port, rest_port, answer, _ = self._serve(*flags)
        _compare(label, json.loads(answer)["predictions"], self.expected)
        (self.directory / "rest.answer").write_bytes(answer)
        raw = self._grpc_answer(grpc_port)
        (self.directory / "grpc.answer").write_bytes(raw)
        return (
            Target(f"this server, gRPC, {label}", self._grpc(grpc_port)),
            Target(f"this server, REST, {label}", self._http(rest_port, _PREDICT, "rows")),
        )

    def starts(self, count: int) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
        """Seconds to the first answer, and resident memory then in MB, by runtime.

        Beside the seconds of what no server with TensorFlow can do without.
        """
        memory: dict[str, list[float]] = {}

        def start(runtime: str) -> float:
            process, *_, seconds = self._serve(f"--runtime={runtime}")
            memory.setdefault(f"server, {runtime}", []).append(_resident(process.pid))
            _stop(process)
            return seconds

        servers = {f"server, {name}": partial(start, name) for name in ("tensorflow", "auto")}
        seconds = start_seconds(servers, self.artifacts.saved_model, _environment(), count)
        return seconds, memory

    def batching_parameters(self) -> str:
        """The flag for throughput: half of the clients' batch forms while the other half's runs."""
        path = self.directory / "batching.config"
        # The generators leave requests behind, which must not fill the queue of the next load.
        path.write_text(
            "num_batch_threads { value: 1 } "
            "max_batch_size { value: 32 } "
            "enable_large_batch_splitting { value: true } "
            "max_execution_batch_size { value: 16 } "
            "batch_timeout_micros { value: 2000 } "
            "max_enqueued_batches { value: 100 }"
        )
        return f"--batching_parameters_file={path}"

    def empty(self, kind: str) -> Target:
        """A server that answers with the same bytes without computing them."""
        (port,) = free_ports(1)
        answer = self.directory / ("rest.answer" if kind == "asgi" else "grpc.answer")
        script = str(Path(__file__).with_name("empty_servers.py"))
        process = self._start([sys.executable, script, kind, str(port), str(answer)])
        _listening(port, process)
        load = self._http(port, "/", "rows") if kind == "asgi" else self._grpc(port)
        return Target(f"empty server, {kind}", load, ((1, 1), (32, 1)))

    def rival(self, rival: Rival) -> Target | None:
        """A server from PyPI; None if it cannot be installed or started."""
        problem = rival.install()
        if problem:
            self.left_out[rival.name] = problem
            return None
        self.versions[rival.name] = rival.version()
        port = free_ports(1)[0]
        log = self._stack.enter_context((self.directory / f"{rival.name}.log").open("wb"))
        folder = self.directory / rival.name.split()[0]
        process = rival.start(self.artifacts, port, folder, log)
        self._stack.callback(_stop, process)
        try:
            body = self.bodies[rival.protocol, 1].read_bytes()
            answer = _first_answer(port, rival.path, body, process)
        except RuntimeError as error:
            self.left_out[rival.name] = str(error)
            return None
        _compare(rival.name, rival.scores(answer), self.expected)
        return Target(rival.name, self._http(port, rival.path, rival.protocol))

    @property
    def expected(self) -> np.ndarray:
        """The bare model's answer to one row."""
        file = self.directory / "expected.npy"
        if not file.is_file():
            script = (
                "import sys, numpy as np; from pathlib import Path; "
                "from benchmarks.serving.model import tokens; "
                "from gru_serving.engine.predictor import Predictor; "
                "outputs = Predictor(Path(sys.argv[1])).predict({'tokens': tokens(1)}); "
                "np.save(sys.argv[2], outputs['scores'])"
            )
            command = [sys.executable, "-c", script, str(self.artifacts.saved_model), str(file)]
            subprocess.run(command, check=True, cwd=_ROOT, env=_environment(), capture_output=True)
        return np.load(file)

    def _serve(self, *flags: str) -> tuple[subprocess.Popen, int, int, bytes, float]:
        """This server's process, ports, first REST answer, and the seconds that it took."""
        grpc_port, rest_port = free_ports(2)
        started = time.perf_counter()
        process = self._start(
            [
                *(sys.executable, "-m", "gru_serving", "serve", f"--port={grpc_port}"),
                *(f"--rest_api_port={rest_port}", f"--model_name={NAME}"),
                *(f"--model_base_path={self.artifacts.base_path}", *flags),
            ]
        )
        body = self.bodies["rows", 1].read_bytes()
        answer = _first_answer(rest_port, _PREDICT, body, process)
        return process, grpc_port, rest_port, answer, time.perf_counter() - started

    def _grpc_answer(self, port: int) -> bytes:
        import grpc

        from gru_serving.codecs.tensor_proto import decode_tensor
        from gru_serving.protos.predict_pb2 import PredictResponse

        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
            raw: bytes = call(self.bodies["grpc", 1].read_bytes()[5:], timeout=60)
        outputs = PredictResponse.FromString(raw).outputs
        _compare("gRPC", decode_tensor(outputs["scores"]), self.expected)
        return raw

    def _grpc(self, port: int) -> Callable[[int, int, int], Measured]:
        return lambda clients, rows, seconds: grpc_load(
            port, self.bodies["grpc", rows], clients, seconds
        )

    def _http(self, port: int, path: str, form: str) -> Callable[[int, int, int], Measured]:
        return lambda clients, rows, seconds: http_load(
            port, path, self.bodies[form, rows], clients, seconds
        )

    def _start(self, command: list[str], **popen: Any) -> subprocess.Popen:
        log = self._stack.enter_context((self.directory / "servers.log").open("ab"))
        process = subprocess.Popen(
            command,
            cwd=_ROOT,
            env=_environment(),
            start_new_session=True,
            **{"stdout": log, "stderr": log, **popen},
        )
        self._stack.callback(_stop, process)
        return process


def _environment() -> dict[str, str]:
    return {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2"}


def _resident(pid: int) -> float:
    """Memory of a process, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    (kib,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(kib) * 1024 / 1e6


def _listening(port: int, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("it does not start; see its log") from None
            time.sleep(0.02)


def _first_answer(port: int, path: str, body: bytes, process: subprocess.Popen) -> bytes:
    """Ask until there is an answer."""
    deadline = time.monotonic() + _PATIENCE
    said = "no answer"
    headers = {"Content-Type": "application/json"}
    while process.poll() is None and time.monotonic() < deadline:
        _listening(port, process)
        with contextlib.suppress(httpx.TransportError):
            url = f"http://127.0.0.1:{port}{path}"
            response = httpx.post(url, content=body, headers=headers, trust_env=False, timeout=60)
            if response.status_code == 200:
                return response.content
            said = f"{response.status_code} {response.text[:200]}"
        time.sleep(0.1)
    raise RuntimeError(f"it does not answer: {said}; see its log")


def _compare(name: str, scores: Any, expected: np.ndarray) -> None:
    got = np.asarray(scores, np.float64).reshape(expected.shape)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5, err_msg=name)


def _stop(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
