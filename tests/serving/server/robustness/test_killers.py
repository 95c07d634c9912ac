"""What once ended, froze or swelled the server gets an answer now, and leaves the server as it was.

A server in a process of its own gets it, since what is looked for ends processes.
"""

import http.client
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import grpc
import httpx
import numpy as np
import pytest
import tensorflow as tf

from gru_serving.codecs.dtypes import DTYPES
from gru_serving.conformance.models import ECHOED, Affine
from gru_serving.engine.runtime import MODEL_FILE
from gru_serving.protos.predict_pb2 import PredictRequest
from tests.serving import hostile, killers
from tests.serving.saved_models import save_grow
from tests.serving.servers import REPOSITORY, models_flag, running

PATIENCE = 60.0
PREDICT = "/tensorflow.serving.PredictionService/Predict"
MIB = 1 << 20


@pytest.fixture(scope="module")
def grow(tmp_path_factory):
    base = tmp_path_factory.mktemp("grow")
    save_grow(base / "1")
    return base


@pytest.fixture(scope="module")
def server(models, grow, tmp_path_factory):
    directory = tmp_path_factory.mktemp("killers")
    bases = {"echo": models / "echo", "text": models / "text", "grow": grow}
    with running(directory / "log", models_flag(directory, bases)) as server:
        yield server
        assert server.process.poll() is None, server.log.read_text()[-3000:]
        assert "Traceback" not in server.log.read_text()


def ask_rest(server, model, body):
    url = f"{server.rest}/v1/models/{model}:predict"
    return httpx.post(url, content=body, timeout=PATIENCE, trust_env=False)


def ask_grpc(channel, message):
    """The name of the code, and the details."""
    try:
        channel.unary_unary(PREDICT)(message.SerializeToString(), timeout=PATIENCE)
    except grpc.RpcError as error:
        return error.code().name, error.details()
    return "OK", ""


def peak(server):
    """The largest number of bytes that the process has had resident."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) << 10


class Healthz(threading.Thread):
    """Asks `/healthz` again and again; `worst` is the longest time to an answer, in seconds."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self._server, self._done = server, threading.Event()
        self.worst, self.asked = 0.0, 0

    def run(self):
        while not (self.asked and self._done.wait(0.02)):
            started = time.monotonic()
            connection = http.client.HTTPConnection("localhost", self._server.rest_port, PATIENCE)
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200
            connection.close()
            self.worst = max(self.worst, time.monotonic() - started)
            self.asked += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self.join()


@pytest.mark.parametrize("killer", killers.REST, ids=lambda killer: killer.name)
def test_over_rest(server, killer):
    answer = ask_rest(server, killer.model, killer.content())
    assert answer.status_code in killer.codes
    assert answer.json()["error"]
    assert server.process.poll() is None


@pytest.mark.parametrize("killer", killers.GRPC, ids=lambda killer: killer.name)
def test_over_grpc(server, killer, figures):
    message = killer.content()
    message.model_spec.name = killer.model
    before = peak(server)
    with grpc.insecure_channel(server.grpc) as channel, Healthz(server) as healthz:
        code, details = ask_grpc(channel, message)
    assert code in killer.codes, details
    assert details
    assert server.process.poll() is None
    # The refused message was not unpacked: memory is that of the message, a few times, and noise.
    assert peak(server) - before < 64 * MIB
    assert healthz.asked
    # Far below a second if nothing else runs; the tests share their CPUs.
    assert healthz.worst < 10
    figures(
        f"{killer.name}: {message.ByteSize()} bytes, {code}, worst /healthz "
        f"{healthz.worst * 1e3:.0f} ms, peak + {(peak(server) - before) / MIB:.1f} MiB"
    )


LIMITS = {"string": 32} | {dtype.name: 64 for dtype in DTYPES if dtype.name != "string"}
NOT_IN_JSON = ("float16", "bfloat16", "complex64", "uint16")
NAMES = {dtype.name: dtype for dtype in DTYPES}


@pytest.mark.parametrize("name", ECHOED)
def test_every_rank_over_grpc(server, name):
    dtype = NAMES[{"float64": "double", "float16": "half"}.get(name, name)]
    request = PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = "echo", name
    proto = request.inputs["x"]
    proto.dtype = dtype.number
    if dtype.name != "string":
        proto.tensor_content = np.ones(1, dtype.numpy).tobytes()
    limit = LIMITS[dtype.name]
    with grpc.insecure_channel(server.grpc) as channel:
        for rank in range(301):
            if rank:
                proto.tensor_shape.dim.add(size=1)
            code, details = ask_grpc(channel, request)
            if rank <= limit:
                assert code == "OK", (rank, details)
            else:
                assert code == "INVALID_ARGUMENT", rank
                # TF Serving's text above TensorFlow's own limit, and ours up to it.
                reason = f"a tensor of {rank} dimensions; expected at most {limit} of type"
                shown = f": {reason} {dtype.name}" if rank <= 254 else ""
                assert details == f"tensor parsing error: x{shown}"


@pytest.mark.parametrize("key", ["inputs", "instances"])
@pytest.mark.parametrize("name", [name for name in ECHOED if name not in NOT_IN_JSON])
def test_every_rank_over_rest(server, name, key):
    value = {"string": "x", "bool": True}.get(name, 1)
    limit = 32 if name == "string" else 64
    statuses = Counter()
    with httpx.Client(base_url=server.rest, timeout=PATIENCE, trust_env=False) as client:
        for rank in range(1, 301):
            body = killers.nested(rank, key, value, name)
            answer = client.post("/v1/models/echo:predict", content=body)
            statuses[answer.status_code] += 1
            assert answer.status_code in ((200,) if rank <= limit else (400,)), (rank, answer.text)
    assert statuses == {200: limit, 400: 300 - limit}


@pytest.fixture
def lite(tmp_path):
    """The affine model as a TensorFlow Lite file."""
    tf.saved_model.save(module := Affine(1.0), tmp_path / "saved", signatures=module.serve)
    converter = tf.lite.TFLiteConverter.from_saved_model(str(tmp_path / "saved"))
    (tmp_path / MODEL_FILE).write_bytes(converter.convert())
    return tmp_path


def fuzzed(fuzzer, count, directories):
    """The output of a fuzzer, a process that may die."""
    command = [sys.executable, "-m", f"tests.serving.{fuzzer}", "0", str(count), *directories]
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(
        command, cwd=REPOSITORY, env=os.environ | quiet, capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines() or ["nothing"]
    assert done.returncode == 0, f"ended by request {lines[-1]}: {done.stderr[-2000:]}"
    return lines


@pytest.mark.slow
def test_what_the_codecs_let_through(models, grow, lite, figures):
    """The fuzzer of `onnx_fuzz`, on real sessions."""
    directories = [next(base.iterdir()) for base in (models / "echo", models / "text", grow)]
    directories.append(lite)
    count = hostile.inputs(300, 20_000)
    lines = fuzzed("onnx_fuzz", count, directories)
    answered = [int(line.split()[1]) for line in lines if line.startswith("answered ")]
    figures(f"{count} requests to each of {len(directories)} models, {answered} of them answered")
    assert len(answered) == len(directories)
    *graphs, of_lite = answered
    assert all(count // 20 < one < count for one in graphs)
    assert count // 50 < of_lite < count  # it takes one request of each rank and type


@pytest.mark.slow
def test_what_is_merged_into_batches(models, grow, figures):
    """The fuzzer `batch_fuzz`: each request gets the answer that it gets alone."""
    directories = [next(base.iterdir()) for base in (models / "affine", models / "text", grow)]
    rounds = hostile.inputs(10, 200)
    lines = fuzzed("batch_fuzz", rounds, directories)
    outcomes = [line for line in lines if line.startswith("outcome ")]
    figures(f"{rounds} rounds with each of {len(directories)} models: {'; '.join(outcomes)}")
    assert len(outcomes) == len(directories)
    assert all("answered: " in one and "refused: " in one for one in outcomes)
