"""Requests that would fill the memory or delay everybody else: their bytes are counted."""

import gzip
import http.client
import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import httpx
import numpy as np
import pytest

from gru_serving.protos.classification_pb2 import ClassificationRequest
from gru_serving.protos.predict_pb2 import PredictRequest
from tests.serving.servers import flags_for, running, wait_until

MIB = 1 << 20
ONE, TOGETHER = 24, 48
GZIP = {"content-encoding": "gzip"}
PREDICT = "/v1/models/text:predict"


@pytest.fixture(scope="module")
def counted(models, tmp_path_factory):
    """A separate server with small limits and an access log."""
    directory = tmp_path_factory.mktemp("counted")
    flags = (
        *flags_for(models, directory),
        f"--max_request_mib={ONE}",
        f"--max_requests_mib={TOGETHER}",
        f"--access_log={directory / 'access.log'}",
    )
    with running(directory / "log", *flags) as server:
        for _ in range(3):  # memory that the first requests allocate for good
            assert post(server, PREDICT, b'{"instances": ["good"]}')[0] == 200
            assert post(server, PREDICT, padded(4 * MIB))[0] == 200
        packed = gzip.compress(b" " * (20 * MIB))
        with ThreadPoolExecutor(8) as threads:  # and start all threads
            for answer in threads.map(lambda _: post(server, PREDICT, packed, GZIP), range(8)):
                assert answer[0] == 400
        yield server


def padded(size):
    """A valid request of that size, most of it blanks."""
    head = b'{"instances": ["good"]'
    return head + b" " * (size - len(head) - 1) + b"}"


def post(server, path, body, headers=None, timeout=120):
    """Status and answer, for a client that sends everything before it reads."""
    connection = http.client.HTTPConnection("localhost", server.rest_port, timeout=timeout)
    try:
        connection.request("POST", path, body, headers or {})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def error(answer):
    return json.loads(answer[1])["error"]


def memory(server, key):
    """A line of the process's status, in MiB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(rf"{key}:\s+(\d+) kB", status)[1]) / 1024


@contextmanager
def bounded(server, mib, left=96):
    """In the block memory grows by at most this much; then it is freed; health is quick."""
    waits, stop = [], threading.Event()

    def ask():
        with httpx.Client(base_url=server.rest, trust_env=False, timeout=60) as client:
            while not (stop.is_set() and waits):
                started = time.monotonic()
                assert client.get("/healthz").status_code == 200
                waits.append(time.monotonic() - started)
                stop.wait(0.02)

    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")  # the peak is measured from here
    before = memory(server, "VmRSS")
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(ask)
        try:
            yield
        finally:
            stop.set()
        asking.result()
    assert server.process.poll() is None
    assert memory(server, "VmHWM") - before < mib
    # Usually less than a second; a busy machine must not make the test fail.
    assert max(waits) < 4
    wait_until(lambda: memory(server, "VmRSS") - before < left, server, 20)


@pytest.mark.parametrize("verb", ["predict", "classify", "regress"])
def test_blanks_that_are_unpacked(counted, verb):
    body = gzip.compress(b" " * (20 * MIB))
    with bounded(counted, 2 * 5 * 20), ThreadPoolExecutor(8) as threads:
        path = f"/v1/models/text:{verb}"
        for answer in threads.map(lambda _: post(counted, path, body, GZIP), range(8)):
            assert answer[0] == 400
            assert error(answer) == (
                f"JSON Parse error: The document is empty. at offset: {20 * MIB}"
            )


def test_unpacked_beyond_the_limit(counted):
    with bounded(counted, 80):
        answer = post(counted, PREDICT, gzip.compress(b" " * (99 * MIB)), GZIP)
        assert answer[0] == 413
        assert error(answer) == f"the body is larger than --max_request_mib={ONE} allows"


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"inputs":[1,[2,'])
def test_nesting(counted, opening):
    body = gzip.compress(opening * (20 * MIB // len(opening)))
    with bounded(counted, 120):
        answer = post(counted, PREDICT, body, GZIP)
        assert answer[0] == 400
        assert error(answer).startswith("JSON Parse error: Nesting is deeper than 257. at offset: ")


def chunks(size):
    for _ in range(size // MIB):
        yield b" " * MIB


def test_bodies_beyond_the_limit(counted):
    """Refused because of the announced size, or when they have become too large."""
    with bounded(counted, 5 * ONE):
        for body in (b" " * (40 * MIB), chunks(40 * MIB)):
            answer = post(counted, PREDICT, body)
            assert answer[0] == 413
            assert error(answer) == f"the body is larger than --max_request_mib={ONE} allows"
        assert post(counted, PREDICT, padded(ONE * MIB))[0] == 200


@pytest.mark.slow
def test_bodies_that_wait_and_are_refused(counted):
    """More bodies than fit: some are answered, the others wait and are refused."""
    begun, go = threading.Semaphore(0), threading.Event()

    def slow_body():
        for _ in range(19):
            yield b" " * MIB
        begun.release()
        go.wait(60)
        yield b'{"instances": ["good"]}'

    with bounded(counted, 160), ThreadPoolExecutor(3) as threads:
        first = [threads.submit(post, counted, PREDICT, slow_body()) for _ in range(2)]
        for _ in first:
            assert begun.acquire(timeout=60)
        refused = threads.submit(post, counted, PREDICT, padded(20 * MIB)).result()
        assert refused[0] == 429
        assert f"--max_requests_mib={TOGETHER}" in error(refused)
        # Small ones are not counted.
        assert post(counted, PREDICT, b'{"instances": ["good"]}')[0] == 200
        waiting = threads.submit(post, counted, PREDICT, padded(20 * MIB))
        time.sleep(0.5)
        go.set()
        assert [one.result()[0] for one in [*first, waiting]] == [200, 200, 200]


@pytest.mark.slow
def test_a_long_list_of_numbers_takes_no_multiple_of_its_text(counted):
    """As Python lists and floats, it would take twenty times as much."""
    body = b'{"inputs": [' + b"[0.5]," * (20 * MIB // 6) + b"[1]]}"
    with bounded(counted, 5 * 20):
        answer = post(counted, "/v1/models/affine:predict", body)
        assert answer[0] == 400
        assert "Missing named input" in error(answer) or "multiple input" in error(answer)


def test_answers_that_show_the_request(counted):
    name = "s" * (4 * MIB)
    body = json.dumps({"signature_name": name, "instances": [1]})
    status, text = post(counted, PREDICT, body)
    assert status == 400
    assert 10_000 < len(text) < 20_000
    assert b"...TRUNCATED" in text


def call(server, method, request, **options):
    channel = grpc.insecure_channel(
        server.grpc,
        [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)],
        **options,
    )
    with channel:
        path = f"/tensorflow.serving.PredictionService/{method}"
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary(path)(request.SerializeToString(), timeout=120)
        return caught.value


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_messages_beyond_the_limit(counted, compression):
    request = PredictRequest()
    request.model_spec.name = "text"
    request.inputs["text"].string_val.append(b"a" * (90 * MIB))
    with bounded(counted, 60 if compression is grpc.Compression.NoCompression else 200):
        refusal = call(counted, "Predict", request, compression=compression)
        assert refusal.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "larger than max" in refusal.details()


def test_a_context_for_many_examples(counted):
    request = ClassificationRequest()
    request.model_spec.name = "text"
    listed = request.input.example_list_with_context
    listed.context.features.feature["x"].bytes_list.value.append(b"a" * MIB)
    for _ in range(2000):
        listed.examples.add()
    with bounded(counted, 60):
        refusal = call(counted, "Classify", request)
        assert refusal.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "it is repeated up to 64 MiB only" in refusal.details()
        answer = post(
            counted,
            "/v1/models/text:classify",
            json.dumps({"context": {"x": "a" * MIB}, "examples": [{}] * 2000}),
        )
        assert answer[0] == 400
        assert "it is repeated up to 64 MiB only" in error(answer)


def test_long_names_in_the_access_log(counted):
    request = PredictRequest()
    request.model_spec.name = "text"
    log = Path(counted.log).with_name("access.log")
    size = log.stat().st_size
    with bounded(counted, 100):
        for i in range(100):
            request.model_spec.signature_name = f"{i}\n\x1b[31m" + "s" * MIB
            assert call(counted, "Predict", request).code() is grpc.StatusCode.FAILED_PRECONDITION
    wait_until(lambda: log.read_bytes()[size:].count(b"s... (") == 100, counted)
    assert log.stat().st_size - size < 100 * 4096
    assert b"\x1b" not in log.read_bytes()


@pytest.mark.slow
def test_a_stdout_that_is_full_is_said(models, tmp_path):
    """The log says what is lost, and how much."""
    flags = (f"--model_base_path={models / 'text'}", "--model_name=text", "--access_log=-")
    log = tmp_path / "log"
    prefix = ("sh", "-c", 'exec "$@" > /dev/full', "sh")
    with running(log, *flags, prefix=prefix) as server:
        for _ in range(20):
            assert post(server, PREDICT, b'{"instances": ["good"]}')[0] == 200
    assert re.findall(r"access log: (\d+) entr\w+ lost so far: .*No space left", log.read_text())
    # The health checks at the start count, too.
    assert int(re.findall(r"access log: (\d+) entr", log.read_text())[-1]) > 20


def test_arrays_stay_exact_in_pieces(counted):
    """A body that is read in pieces gives the same values as NumPy."""
    rows = np.random.default_rng(3).normal(size=(60_000, 3)).astype(np.float32)
    body = json.dumps({"inputs": {"x": rows.tolist(), "b": [[0.0]] * len(rows)}}).encode()
    assert len(body) > 3 * MIB
    status, text = post(counted, "/v1/models/affine:predict", body)
    assert status == 200
    small = {"inputs": {"x": rows[-5:].tolist(), "b": [[0.0]] * 5}}
    expected = json.loads(post(counted, "/v1/models/affine:predict", json.dumps(small))[1])
    for name, output in json.loads(text)["outputs"].items():
        assert len(output) == len(rows)
        assert output[-5:] == expected["outputs"][name]
