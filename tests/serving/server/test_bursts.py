"""Thousands of calls at once on one server, by raw clients and by this project's own."""

import asyncio
import contextlib
import resource
import shutil
import socket
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import aiohttp
import grpc
import httpx
import numpy as np
import pytest

from gru_serving.client import connect_async
from gru_serving.codecs.tensor_proto import encode_tensor
from gru_serving.errors import DeadlineExceeded
from gru_serving.protos.predict_pb2 import PredictRequest
from gru_serving.protos.services import PREDICTION_SERVICE, Stub
from keras_gru.convert.onnx_graph import OnnxGraph
from tests.serving.scrape import metrics_of
from tests.serving.servers import flags_for, running, wait_until

ONE = {"x": np.float32([[1, 0, 0]]), "b": np.float32([[0]])}
ONE_BY_VERSION_3 = 10.0
# The limit on descriptors of many systems leaves no room for more.
CONNECTIONS = min(5000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
SPIN = {"steps": np.int64(5_000)}  # takes a thread some tens of milliseconds


def raw_burst(server, calls, inputs=ONE, signature=""):
    """How many of these calls at once, over one channel of grpc's own, end with which status."""
    request = PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = "affine", signature
    for name, array in inputs.items():
        request.inputs[name].CopyFrom(encode_tensor(array, content=True))

    async def burst():
        async with grpc.aio.insecure_channel(server.grpc) as channel:
            stub = Stub(channel, PREDICTION_SERVICE)

            async def one():
                try:
                    await stub.Predict(request, timeout=60)
                except grpc.aio.AioRpcError as error:
                    return error.code().name, error.details()
                return "OK", ""

            return Counter(await asyncio.gather(*(one() for _ in range(calls))))

    return asyncio.run(burst())


def own_burst(url, calls, **options):
    """The answers to these calls at once by `connect_async`; all are good."""

    async def burst():
        client = connect_async(url, timeout=60, retries=0, **options)
        try:
            return await asyncio.gather(*(client.predict(ONE, "affine") for _ in range(calls)))
        finally:
            await client.close()

    return [answer["y"][0, 0] for answer in asyncio.run(burst())]


@pytest.fixture(scope="module")
def narrow(models, tmp_path_factory):
    """A server that admits few streams on a connection, and few calls at once."""
    directory = tmp_path_factory.mktemp("narrow")
    flags = (
        *flags_for(models, directory),
        "--grpc_channel_arguments=grpc.max_concurrent_streams=256",
        "--max_request_mib=1",
        "--max_requests_mib=1",
    )
    with running(directory / "log", *flags) as server:
        yield server


@pytest.mark.slow
def test_a_raw_client_with_thousands_of_calls(server):
    """By itself gRPC cancels some beyond a thousand, and all beyond three thousand."""
    assert raw_burst(server, 5000) == {("OK", ""): 5000}


@pytest.mark.slow
def test_a_raw_client_over_rest_with_thousands_of_connections(server):
    body = {"instances": [{name: array[0].tolist() for name, array in ONE.items()}]}

    async def burst():
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(server.rest, connector=connector) as session:

            async def one():
                async with session.post("/v1/models/affine:predict", json=body) as response:
                    return response.status, (await response.json())["predictions"][0]["y"][0]

            return Counter(await asyncio.gather(*(one() for _ in range(CONNECTIONS))))

    assert asyncio.run(burst()) == {(200, ONE_BY_VERSION_3): CONNECTIONS}


@pytest.mark.long
def test_a_raw_client_with_ten_thousand_calls(server):
    assert raw_burst(server, 10_000) == {("OK", ""): 10_000}


def test_calls_beyond_the_streams_of_a_connection_wait_in_the_client(narrow):
    """By itself gRPC refuses streams of clients that keep to the limit, as UNAVAILABLE."""
    outcomes = raw_burst(narrow, 2000)
    assert {status for status, _ in outcomes} <= {"OK", "RESOURCE_EXHAUSTED"}
    assert own_burst(f"grpc://{narrow.grpc}", 500, max_under_way=16) == [ONE_BY_VERSION_3] * 500


def test_refused_calls_are_counted_and_logged(narrow):
    def refused():
        return metrics_of(narrow)["gru_serve:refused_count"][("busy",)]

    before = refused()
    outcomes = raw_burst(narrow, 200, SPIN, "spin")
    good = outcomes.pop(("OK", ""))
    ((status, details),) = outcomes
    assert status == "RESOURCE_EXHAUSTED"
    assert details == (
        "the requests in progress have reached --max_requests_mib=1; try again later"
    )
    assert good >= 32  # as many as are in progress at once
    assert refused() - before == outcomes[status, details] == 200 - good
    assert "request(s), busy: the requests in progress" in narrow.log.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("calls", [5000, pytest.param(10_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("transport", ["REST", "gRPC"])
def test_an_own_client_with_thousands_of_calls(server, transport, calls):
    url = server.rest if transport == "REST" else f"grpc://{server.grpc}"
    assert own_burst(url, calls) == [ONE_BY_VERSION_3] * calls


@pytest.mark.parametrize("transport", ["REST", "gRPC"])
def test_waiting_in_the_client_counts_towards_the_timeout(server, transport):
    url = server.rest if transport == "REST" else f"grpc://{server.grpc}"
    endless = {"steps": np.int64(10**12)}

    async def ask():
        client = connect_async(url, timeout=1, retries=0, max_under_way=2)
        started = time.monotonic()
        try:
            calls = (client.predict(endless, "affine", signature="spin") for _ in range(20))
            failures = await asyncio.gather(*calls, return_exceptions=True)
            return failures, time.monotonic() - started
        finally:
            await client.close()

    failures, seconds = asyncio.run(ask())
    assert {type(one) for one in failures} == {DeadlineExceeded}
    assert seconds < 9  # one after the other, they would take ten


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    """Flags of a server of a small graph of ONNX, which needs little memory."""
    directory = tmp_path_factory.mktemp("twice")
    graph = OnnxGraph()
    x = graph.input("x", "float32", (None, 2))
    graph.output("y", graph.add("Add", x, x), "float32", (None, 2))
    (directory / "base" / "1").mkdir(parents=True)
    graph.write(directory / "base" / "1" / "model.onnx", "twice")
    return f"--model_base_path={directory / 'base'}", flags_for(directory, directory)[1]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prlimit") is None, reason="prlimit is not installed")
def test_a_line_says_that_few_descriptors_are_left(twice, tmp_path):
    """Connections beyond the limit are reset, which no request shows."""
    prefix = ("prlimit", "--nofile=128:128")
    with running(tmp_path / "log", *twice, prefix=prefix) as server, ExitStack() as connections:
        page = metrics_of(server)
        assert page["process_max_fds"][()] == 128
        assert 10 < page["process_open_fds"][()] < 100
        for _ in range(120):
            with contextlib.suppress(OSError):
                connections.enter_context(
                    socket.create_connection(("127.0.0.1", server.rest_port), 5)
                )
        wait_until(lambda: "of 128 descriptors are open" in server.log.read_text(), server, 30)


@pytest.mark.slow
def test_a_body_for_which_there_is_no_memory_is_refused(twice, tmp_path):
    with running(tmp_path / "log", *twice) as server:
        url = f"{server.rest}/v1/models/default:predict"
        good = b'{"instances": [[1, 2]]}'
        assert httpx.post(url, content=good, trust_env=False).json() == {"predictions": [[2, 4]]}
        pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + (16 << 20)
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (most, most))
        with contextlib.suppress(httpx.TransportError):  # it may be refused while it is sent
            answer = httpx.post(url, content=good + b" " * (96 << 20), timeout=60, trust_env=False)
            assert answer.status_code == 429
            assert answer.json()["error"].startswith("the process got no more memory")
        assert httpx.post(url, content=good, trust_env=False).json() == {"predictions": [[2, 4]]}
