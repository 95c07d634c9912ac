"""Connections that deliver only part of a request, on real sockets."""

import asyncio
import contextlib
import socket
import struct
import threading
import time

import pytest
import uvicorn

from gru_serving.server.rest.listener import AnswerTransport, PatientProtocol
from tests.waiting import wait_until

SECONDS = 0.6
HEAD = b"POST /v1/models/m:predict HTTP/1.1\r\nHost: localhost\r\n"


class Impatient(PatientProtocol):
    seconds = SECONDS
    head_bytes = 4096


async def app(scope, receive, send):
    """Answers with the size of the body; at /early, before the body has arrived."""
    size, more = 0, scope["path"] != "/early"
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message["body"]), message.get("more_body", False)
    if scope["path"] == "/late":
        await asyncio.sleep(0.01)
    body = str(size).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def port():
    config = uvicorn.Config(
        app, http=Impatient, port=0, lifespan="off", ws="none", log_config=None,
        timeout_keep_alive=30,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


@contextlib.contextmanager
def connected(port):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        yield connection


def until_closed(connection):
    """What arrives until the server closes, and how long that takes."""
    began, parts = time.monotonic(), []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(1 << 16):
            parts.append(part)
    return b"".join(parts), time.monotonic() - began


def trickle(connection, part, every=SECONDS / 6):
    """From another thread, send a part again and again until the connection is closed."""

    def send():
        with contextlib.suppress(OSError):
            while True:
                connection.sendall(part)
                time.sleep(every)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    return thread


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "begin", [b"", b"\r\n", b"POST", HEAD, HEAD + b"Content-Length: 9\r\n\r\n1"]
)
def test_half_a_request_is_given_up(port, begin):
    with connected(port) as connection:
        connection.sendall(begin)
        said, seconds = until_closed(connection)
    assert said == b""
    assert 0.9 * SECONDS < seconds < SECONDS + 5


def test_a_head_in_small_parts_gets_no_more_time(port):
    with connected(port) as connection:
        connection.sendall(HEAD)
        thread = trickle(connection, b"X-Part: 1\r\n")
        said, seconds = until_closed(connection)
        assert said == b""
        assert seconds < SECONDS + 5
    thread.join()


def test_empty_lines_after_an_answer_get_no_more_time(port):
    with connected(port) as connection:
        connection.sendall(HEAD + b"Content-Length: 2\r\n\r\nab")
        thread = trickle(connection, b"\r\n")
        said, seconds = until_closed(connection)
        assert said.endswith(b"\r\n\r\n2")
        assert seconds < SECONDS + 5
    thread.join()


def test_a_body_that_keeps_coming_has_all_the_time_it_needs(port):
    parts = 12
    with connected(port) as connection:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % parts)
        for _ in range(parts):
            time.sleep(SECONDS / 6)
            connection.sendall(b"x")
        assert connection.recv(1 << 16).endswith(b"\r\n\r\n12")


def test_a_body_that_nobody_waits_for_gets_no_more_time(port):
    with connected(port) as connection:
        connection.sendall(HEAD.replace(b"/v1/models/m:predict", b"/early"))
        connection.sendall(b"Content-Length: 99\r\n\r\nab")
        said, seconds = until_closed(connection)
    assert said.endswith(b"\r\n\r\n0")
    assert seconds < SECONDS + 5


@pytest.mark.slow
def test_an_answer_ends_no_connection(port):
    with connected(port) as connection:
        for _ in range(2):
            connection.sendall(HEAD + b"Content-Length: 2\r\n\r\nab")
            assert connection.recv(1 << 16).endswith(b"\r\n\r\n2")
            time.sleep(2 * SECONDS)


def test_a_head_without_end_is_refused(port):
    with connected(port) as connection:
        connection.sendall(HEAD + b"X-Long: ")
        thread = trickle(connection, b"x" * 1024, every=0.005)
        said, _ = until_closed(connection)
        assert said.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert said.endswith(b"\r\n\r\nThe header of the request is too large.")
    thread.join()


@pytest.mark.parametrize("path", [b"/late", b"/now"])
def test_clients_that_reset_the_connection_are_no_fault(port, caplog, path):
    reset = struct.pack("ii", 1, 0)
    request = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab" % path
    for count in range(200):
        with connected(port) as connection:
            connection.sendall((1 + count % 5) * request)
            if count % 2:
                time.sleep(0.005 * (count % 4))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
    with connected(port) as connection:
        connection.sendall(HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\nab")
        assert until_closed(connection)[0].endswith(b"2")
    assert not [record for record in caplog.records if record.exc_info]


class Sent:
    """A transport that notes what it is given."""

    def __init__(self):
        self.parts = []
        self.closed = False

    def write(self, data):
        assert not self.closed
        self.parts.append(data)

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True


def test_a_head_is_sent_with_its_body():
    async def written(*parts, close=False, turns=2):
        sent = Sent()
        transport = AnswerTransport(sent, asyncio.get_running_loop())
        for part in parts:
            transport.write(part)
        if close:
            transport.close()
            transport.write(b"late")
        for _ in range(turns):
            await asyncio.sleep(0)
        return list(sent.parts)

    def parts(*written_parts, **options):
        return asyncio.run(written(*written_parts, **options))

    assert parts(b"head", b"body", turns=0) == [b"headbody"]
    assert parts(b"head", b"", turns=0) == [b"head"]
    assert parts(b"head", turns=0) == []
    assert parts(b"head") == [b"head"]
    assert parts(b"head", close=True) == [b"head"]
    assert parts(b"head", b"body", b"more", b"end", b"tail") == [b"headbody", b"moreend", b"tail"]
    large = bytes(1 << 17)
    assert parts(b"head", large, large, turns=0) == [b"head", large, large]  # not copied
