"""Servers that lie to clients: no call takes more time or memory than it may."""

import contextlib
import gzip
import itertools
import json
import resource
import subprocess
import sys
import time
import zlib

import grpc
import numpy as np
import pytest

from gru_serving.client import connect
from gru_serving.client.options import ClientOptions
from gru_serving.client.streaming import StreamingSession
from gru_serving.errors import (
    DeadlineExceeded,
    ResourceExhausted,
    ServingError,
    Unavailable,
    Unknown,
)
from gru_serving.protos.predict_pb2 import PredictResponse
from tests.serving.client.both_clients import both
from tests.serving.endless_answers import (
    NEVER,
    OK,
    STRANGE,
    TOO_LARGE,
    endless,
)
from tests.serving.servers import REPOSITORY
from tests.serving.strange_servers import bare, bytes_over_grpc

MOST = 1 << 20
LARGER = "larger than 1,048,576 bytes; allow more|Content-Length overflow"


@pytest.mark.parametrize("kind", TOO_LARGE)
def test_answers_that_are_too_large(kind):
    with bare(TOO_LARGE[kind]) as url:
        for ask in both(url, max_answer_bytes=MOST, timeout=60, retries=0):
            with pytest.raises(ServingError, match=LARGER) as caught:
                ask()
            # A length beyond 64 bits is no HTTP to aiohttp.
            assert isinstance(caught.value, ResourceExhausted) or "20 digits" in kind


@pytest.mark.slow_cases
@pytest.mark.parametrize("kind", NEVER)
def test_answers_that_never_end(kind):
    with bare(NEVER[kind]) as url:
        for ask in both(url, timeout=0.5, retries=0):
            started = time.monotonic()
            with pytest.raises(DeadlineExceeded, match=r"did not answer within 0\.5 s"):
                ask()
            assert time.monotonic() - started < 10


@pytest.mark.parametrize("kind", STRANGE)
def test_answers_that_are_none(kind):
    send, said = STRANGE[kind]
    with bare(send) as url:
        for ask in both(url, timeout=20, retries=0):
            with pytest.raises(Unknown, match=said):
                ask()


@pytest.mark.slow
def test_a_server_that_does_not_read():
    """The time limit holds for the whole call, including sending, which would take a minute."""
    values = np.zeros(3_000_000, np.float32)
    metadata = json.dumps(METADATA).encode()

    def answer(connection):
        connection.sendall(OK + b"Content-Length: %d\r\n\r\n" % len(metadata) + metadata)
        while connection.recv(1000):
            time.sleep(0.01)

    with bare(answer) as url, connect(url, timeout=3.0, retries=0) as client:
        started = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            client.predict({"x": values}, "m")
        assert time.monotonic() - started < 20


FLOAT = {"dtype": "DT_FLOAT", "tensor_shape": {"dim": [{"size": "-1"}]}, "name": "x:0"}
METADATA = {
    "model_spec": {"name": "m", "version": "1"},
    "metadata": {
        "signature_def": {
            "signature_def": {
                "serving_default": {"inputs": {"x": FLOAT}, "outputs": {"y": FLOAT}},
            }
        }
    },
}


def test_packed_answers_are_read():
    body = gzip.compress(json.dumps(METADATA).encode())
    head = OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    with bare(lambda connection: connection.sendall(head + body)) as url, connect(url) as client:
        assert client.metadata("m").version == 1


def test_an_answer_may_be_as_large_as_allowed():
    body = json.dumps({"model_version_status": []}).encode()
    head = OK + b"Content-Length: %d\r\n\r\n" % len(body)
    with bare(lambda connection: connection.sendall(head + body)) as url:
        for ask in both(url, max_answer_bytes=len(body)):
            assert ask() == []
        for ask in both(url, max_answer_bytes=len(body) - 1):
            with pytest.raises(ResourceExhausted):
                ask()


@pytest.mark.parametrize("packed", [False, True])
def test_answers_over_grpc_that_are_too_large(packed):
    def answer(_, context):
        if packed:
            context.set_compression(grpc.Compression.Gzip)
        return bytes(64 << 20)

    with bytes_over_grpc(answer) as url:
        for ask in both(url, max_answer_bytes=MOST, timeout=60, retries=0):
            with pytest.raises(ResourceExhausted, match="larger than 1,048,576 bytes; allow more"):
                ask()


@pytest.mark.slow
def test_answers_over_grpc_that_never_come():
    with bytes_over_grpc(b"", seconds=5) as url:
        for ask in both(url, timeout=1.0, retries=0):
            with pytest.raises(DeadlineExceeded, match=r"did not answer within 1(\.0)? s"):
                ask()


def test_random_bytes_over_grpc():
    """Whatever a server answers, a client raises only ServingErrors."""
    random = np.random.default_rng(7)
    answers = itertools.cycle(
        [bytes(random.integers(0, 256, size, np.uint8)) for size in (1, 3, 9, 27, 81, 243)]
        + [PredictResponse().SerializeToString(), b"\x0a\x02\x08\x01" * 9]
    )
    with bytes_over_grpc(lambda *_: next(answers)) as url, connect(url, retries=0) as client:
        for _ in range(30):
            for ask in (client.status, client.metadata):
                with contextlib.suppress(ServingError):
                    ask("m")


@pytest.mark.parametrize(
    "broken",
    [
        {"model_spec": {"version": float("inf")}},
        {"model_spec": {"version": []}},
        {"model_spec": []},
        {"metadata": {"signature_def": {"signature_def": []}}},
        {"metadata": {"signature_def": {"signature_def": {"serving_default": {"inputs": [1]}}}}},
        {"metadata": {"signature_def": {"signature_def": {"s": {"inputs": {"x": {
            "dtype": "DT_FLOAT", "tensor_shape": {"dim": [{"size": "9" * 5000}]}}}}}}}},
        {"metadata": {"signature_def": {"signature_def": {"s": {"inputs": {"x": {
            "dtype": ["DT_FLOAT"]}}}}}}},
    ],
)  # fmt: skip
def test_metadata_of_other_forms(broken):
    body = json.dumps({**METADATA, **broken}).encode()
    head = OK + b"Content-Length: %d\r\n\r\n" % len(body)
    with (
        bare(lambda connection: connection.sendall(head + body)) as url,
        connect(url) as client,
        pytest.raises(Unknown, match="unknown form"),
    ):
        client.metadata("m")


def test_a_stream_keeps_the_time_and_the_size():
    with bare(NEVER["100 Continue"]) as url, connect(url, retries=0) as client:
        session = StreamingSession(client, "m", patience=1.0)
        started = time.monotonic()
        with pytest.raises((DeadlineExceeded, Unavailable)):
            session.feed("word")
        assert time.monotonic() - started < 20
    with (
        bare(TOO_LARGE["chunks without end"]) as url,
        connect(url, max_answer_bytes=MOST) as client,
        pytest.raises(ResourceExhausted),
    ):
        StreamingSession(client, "m").feed("word")


PEAK = """
import asyncio, sys
from pathlib import Path
from gru_serving.client import connect
from gru_serving.client import connect_async
from gru_serving.errors import ResourceExhausted

async def later(url):
    async with connect_async(url, retries=0) as client:
        await client.status("m")

for ask in (lambda url: connect(url, retries=0).status("m"), lambda url: asyncio.run(later(url))):
    try:
        ask(sys.argv[1])
    except ResourceExhausted:
        print("refused")
# Not ru_maxrss, which goes on from the process that started this one.
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


@pytest.mark.slow
def test_memory_by_default(figures):
    """By default a client takes at most a few times the limit, whatever is sent."""
    bomb = zlib.compressobj(9, wbits=31)
    bomb = b"".join([*(bomb.compress(bytes(64 << 20)) for _ in range(16)), bomb.flush()])
    head = OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    with bare(endless(head, bomb, 1)) as url:
        done = subprocess.run(
            [sys.executable, "-c", PEAK, url],
            cwd=REPOSITORY, check=True, capture_output=True, text=True, timeout=300,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30)),
        )  # fmt: skip
    *refused, peak = done.stdout.split()
    assert refused == ["refused"] * 2
    figures(f"gzip of 1 GiB: the client took {int(peak) >> 10} MiB")
    assert int(peak) << 10 < 4 * ClientOptions.max_answer_bytes
