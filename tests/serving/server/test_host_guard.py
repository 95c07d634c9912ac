"""Web pages that use a user's browser to send requests to a server, over real sockets."""

import asyncio
import json
import socket
import threading
from contextlib import contextmanager

import pytest
import uvicorn

from gru_serving.config.flags import Flags
from gru_serving.errors import InvalidArgument
from gru_serving.server.rest.guards import Hosts
from tests.ports import free_ports
from tests.serving.raw_http import raw
from tests.serving.servers import answers, wait_until

PREDICT = "/v1/models/half%2Fplus%3Atwo:predict"
BODY = b'{"instances": [2.0]}'
PATHS = ["/healthz", "/readyz", "/models", "/monitoring/prometheus/metrics",
         "/v1/models/echo", "/v1/models/echo/metadata", "/nowhere"]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_rebound_names_read_nothing(server, path):
    """The name of a page that resolves to this machine, as a browser sends it."""
    status, body, headers = raw(server, "GET", path, headers={"Host": "evil.example:8501"})
    assert status == 421
    assert headers["content-type"] == "application/json"
    error = json.loads(body)["error"]
    assert "evil.example" in error
    assert "--allowed_hosts" in error


@pytest.mark.parametrize("method", ["POST", "OPTIONS"])
def test_rebound_names_run_nothing(server, method):
    headers = {"Host": "evil.example", "Content-Type": "text/plain"}
    assert raw(server, method, PREDICT, BODY, headers)[0] == 421
    assert answers(server)


@pytest.mark.parametrize(
    "host",
    ["localhost", "LocalHost:8501", "127.0.0.1", "127.0.0.1:1", "127.8.9.10", "[::1]", "[::1]:80"],
)
def test_names_of_loopback(server, host):
    status, body, _ = raw(server, "POST", PREDICT, BODY, {"Host": host})
    assert (status, json.loads(body)) == (200, {"predictions": [3.0]})


@pytest.mark.parametrize(
    "host",
    [
        "", "localhost.evil.example", "evil.localhost", "localhost.", "127.0.0.1.nip.io",
        "evil.example:localhost", "evil@localhost", "localhost@evil.example", "localhost:1:2",
        "localhost/", "[::1]x", "[::1", "::1", "10.0.0.1", "0.0.0.0", "2130706433",
        "localhost:x", "\x00localhost", "localhost, evil.example",
    ],
)  # fmt: skip
def test_other_hosts(server, host):
    answer = exchanged(server.rest_port, f"GET /models HTTP/1.1\r\nHost: {host}\r\n")
    assert answer.split(b" ")[1] in (b"421", b"400")


def test_a_second_host_does_not_help(server):
    for pair in (("localhost", "evil.example"), ("evil.example", "localhost")):
        lines = "".join(f"Host: {host}\r\n" for host in pair)
        status = exchanged(server.rest_port, f"GET /models HTTP/1.1\r\n{lines}").split(b" ")[1]
        assert status in (b"421", b"400")


def test_no_host_is_no_browser(server):
    assert b" 200 " in exchanged(server.rest_port, "GET /healthz HTTP/1.0\r\n")[:20]


@pytest.mark.parametrize("lines", ["", "Host: localhost\r\nHost: localhost\r\n"])
def test_a_request_of_http_1_1_names_one_host(server, lines):
    answer = exchanged(server.rest_port, f"GET /healthz HTTP/1.1\r\n{lines}")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.endswith(b"A request of HTTP/1.1 needs one Host header.")
    # Not even a second request in the same packet is answered.
    body = "Content-Length: 2\r\n\r\n{}GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    answer = exchanged(server.rest_port, f"POST /v1/models/nix:predict HTTP/1.1\r\n{lines}{body}")
    assert answer.count(b"HTTP/1.1") == 2  # the second is in the text


def test_a_target_with_a_host_counts_for_the_header(server):
    for host, status in (("evil.example", b"421"), ("localhost:1", b"200")):
        head = f"GET http://{host}/models HTTP/1.1\r\nHost: localhost\r\n"
        assert exchanged(server.rest_port, head).split(b" ")[1] == status


@pytest.mark.parametrize("origin", ["https://evil.example", "http://10.0.0.1:8501", "null", ""])
def test_pages_of_other_sites_run_nothing(server, origin):
    """A POST of plain text needs no preflight, so the page need not be allowed first."""
    headers = {"Origin": origin, "Content-Type": "text/plain"}
    status, body, _ = raw(server, "POST", PREDICT, BODY, headers)
    assert status == 403
    assert "--rest_api_enable_cors_support" in json.loads(body)["error"]


@pytest.mark.parametrize("origin", ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:1"])
def test_pages_of_this_machine(server, origin):
    assert raw(server, "POST", PREDICT, BODY, {"Origin": origin})[0] == 200


@pytest.mark.parametrize(
    ("flags", "good", "bad"),
    [
        ({}, ["localhost"], ["models.example", "10.1.2.3"]),
        ({"bind_address": "::1"}, ["[::1]:80"], ["models.example"]),
        ({"bind_address": "localhost"}, ["localhost"], ["models.example"]),
        ({"allowed_hosts": "Models.example, b.example"},
         ["localhost", "models.example:8501", "MODELS.example", "b.example"],
         ["example", "x.models.example", "10.1.2.3"]),
        ({"allowed_hosts": "*"}, ["models.example", "10.1.2.3", ""], []),
        ({"bind_address": "0.0.0.0"}, ["models.example", "10.1.2.3"], []),
        ({"bind_address": "10.9.8.7"}, ["models.example"], []),
        ({"bind_address": "0.0.0.0", "allowed_hosts": "models.example"},
         ["models.example", "10.1.2.3:8501", "[fd00::1]", "localhost"], ["other.example"]),
    ],
)  # fmt: skip
def test_what_the_flags_allow(flags, good, bad):
    with guarded(Flags(**flags)) as port:
        said = {host: status(port, Host=host) for host in (*good, *bad)}
    assert said == {**dict.fromkeys(good, 200), **dict.fromkeys(bad, 421)}


def test_origins_that_the_flags_allow():
    page = {"Host": "localhost", "Origin": "https://models.example"}
    with guarded(Flags()) as port:
        assert status(port, **page) == 403
    with guarded(Flags(allowed_hosts="models.example")) as port:
        assert status(port, **page) == 200
    with guarded(Flags(rest_api_enable_cors_support=True)) as port:
        assert status(port, **page) == 200
        assert status(port, **{**page, "Host": "models.example"}) == 421


def test_many_names_take_no_memory():
    """The memory of good names is bounded, and other names are still let in."""
    with guarded(Flags()) as port, socket.create_connection(("127.0.0.1", port)) as connection:
        for number in range(600):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % number)
            assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 421 ")


@pytest.mark.parametrize("hosts", ["http://a.example", "a.example:8501", "a b", "*.example", "a,/"])
def test_lists_that_are_none(hosts):
    with pytest.raises(InvalidArgument, match="--allowed_hosts: expected host names"):
        Hosts(Flags(allowed_hosts=hosts))


def exchanged(port, head):
    """A server's answer to these lines."""
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        connection.sendall(head.encode("latin-1") + b"Connection: close\r\n\r\n")
        answer = b""
        while part := connection.recv(4096):
            answer += part
        return answer


def status(port, **headers):
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return int(exchanged(port, f"GET / HTTP/1.1\r\n{lines}").split(b" ")[1])


async def hello(scope, receive, send):
    headers = [(b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


@contextmanager
def guarded(flags):
    """A small application behind the guard, on its own port."""
    (port,) = free_ports(1)
    config = uvicorn.Config(
        Hosts(flags).wrap(hello), port=port, log_level="warning", lifespan="off", ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    try:
        wait_until(lambda: server.started, seconds=60)
        yield port
    finally:
        server.should_exit = True
        thread.join()
