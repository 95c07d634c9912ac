"""A live server under requests that nobody should send: it answers all, refuses most, stays well.

The seed of a request is its number: `hostile_calls.call(random.Random(number))` makes it again.
"""

import contextlib
import random
import re
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from gru_serving.client import connect
from gru_serving.protos import services
from tests.serving import hostile, hostile_calls, hostile_http
from tests.serving.servers import flags_for, running

PATIENCE = 60.0
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
# 501 says that JSON cannot express a type, which is TF Serving's answer.
# 403 and 421 are for pages of other sites, and for hosts with other names.
NO_FAULT = {200, 400, 403, 404, 405, 411, 413, 414, 421, 431, 501}
GRPC_NO_FAULT = {
    "OK",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "FAILED_PRECONDITION",
    "UNIMPLEMENTED",
    "OUT_OF_RANGE",
}


@pytest.fixture(scope="module")
def server(models, tmp_path_factory):
    """A separate server, whose log and memory nothing else touches."""
    directory = tmp_path_factory.mktemp("hostile")
    with running(directory / "log", *flags_for(models, directory)) as server:
        yield server
        assert server.process.poll() is None
        assert "Traceback" not in server.log.read_text()


def is_well(server):
    for transport in (server.rest, server.grpc):
        with connect(transport, timeout=PATIENCE) as client:
            assert client.predict([[2.0]], "half/plus:two")["y"] == 3


def send(server, raw):
    """All bytes of the answer; empty if the server closes without one."""
    with socket.create_connection(("127.0.0.1", server.rest_port), PATIENCE) as connection:
        with contextlib.suppress(OSError):  # refused, and closed, before the end was sent
            connection.sendall(raw)
        answer = b""
        # Most answers come at once; a server that waits for more must see that there is none.
        connection.settimeout(0.5)
        with contextlib.suppress(ConnectionResetError):
            while piece := _receive(connection):
                answer += piece
    return answer.removeprefix(CONTINUE)


def _receive(connection):
    try:
        return connection.recv(1 << 16)
    except TimeoutError:
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(PATIENCE)
        return connection.recv(1 << 16)


def http_status(answer):
    match = re.match(rb"HTTP/1\.[01] (\d{3}) ", answer)
    return int(match[1]) if match else None


@pytest.mark.slow
def test_http(server, figures):
    count = hostile.inputs(1500, 20_000)

    def ask(number):
        raw = hostile_http.http_request(random.Random(number))
        answer = send(server, raw)
        status = http_status(answer)
        assert status in NO_FAULT or not answer, (number, raw[:300], answer[:300])
        if b"application/json" in answer and status != 200:
            assert b'"error":' in answer or answer.endswith(b"\r\n\r\n"), (number, answer)
        return status

    with ThreadPoolExecutor(4) as threads:
        statuses = Counter(threads.map(ask, range(count)))
    figures(f"{count} requests: {dict(statuses)}")
    assert statuses[200] > count // 50
    assert statuses[400] > count // 5
    assert statuses[None] < count // 10
    is_well(server)


def test_grpc(server, figures):
    count = hostile.inputs(1500, 20_000)
    with grpc.insecure_channel(server.grpc) as channel:

        def ask(number):
            method, raw = hostile_calls.call(random.Random(number))
            try:
                channel.unary_unary(method)(raw, timeout=PATIENCE)
            except grpc.RpcError as error:
                code, text = error.code().name, error.details()
            else:
                code, text = "OK", ""
            assert code in GRPC_NO_FAULT or (code == "INTERNAL" and not parses(method, raw)), (
                number, method, code, text,
            )  # fmt: skip
            return code

        with ThreadPoolExecutor(4) as threads:
            codes = Counter(threads.map(ask, range(count)))
    figures(f"{count} requests: {dict(codes)}")
    assert codes["OK"] > count // 100
    assert codes["INVALID_ARGUMENT"] > count // 5
    is_well(server)


def parses(method, raw):
    """Whether the bytes are a request of the method at all."""
    _, service, name = method.split("/")
    known = {one.full_name: one for one in (services.PREDICTION_SERVICE, services.MODEL_SERVICE)}
    request, _ = services._classes(known[service].methods_by_name[name])
    try:
        request.FromString(raw)
    except Exception:
        return False
    return True
