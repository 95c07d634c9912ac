"""The gateway and what no well-behaved client sends: odd requests, old ciphers, strange paths."""

import socket
import ssl
import struct
import subprocess
import time
from contextlib import closing, suppress

import httpx
import pytest

from .steady_load import MODEL

pytestmark = pytest.mark.docker

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
EMPTY_SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
PING = b"\x00\x00\x08\x06\x00\x00\x00\x00\x00" + bytes(8)
GET = b"\x00\x00\x08\x01\x05\x00\x00\x00\x01" + b"\x82\x87\x04\x01/\x01\x01x"  # escaped "/"
MODERN = {
    f"ECDHE-{key}-{cipher}"
    for key in ("RSA", "ECDSA")
    for cipher in ("AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305")
}
IDLE_SECONDS = 60


def connected(deployment, *protocols):
    host, port = deployment.gateway.split(":")
    context = ssl.create_default_context(cafile=deployment.certificate)
    if protocols:
        context.set_alpn_protocols(protocols)
    plain = socket.create_connection((host, int(port)), 10)
    return context.wrap_socket(plain, server_hostname=host)


def status(deployment, line, authorization=None):
    """The answer to an HTTP/1.1 request with this first line."""
    said = authorization or f"Bearer {deployment.key()}"
    head = f"\r\nHost: localhost\r\nAuthorization: {said}\r\nConnection: close\r\n\r\n"
    with closing(connected(deployment)) as connection:
        connection.sendall(line + head.encode())
        with connection.makefile("rb") as answer:
            return int(answer.readline().split()[1])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"CONNECT example.com:80 HTTP/1.1", {400, 405}),
        (b"TRACE / HTTP/1.1", {405}),
        (b"OPTIONS * HTTP/1.1", {400}),
        (PREFACE, {400}),
        (b"\x00\x01\xff garbage", {400}),
        (b"get / HTTP/1.1", {400}),
        (b"GET /v1/models/%00 HTTP/1.1", {400}),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1", {414}),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 9000, {431}),
    ],
    ids=["CONNECT", "TRACE", "star", "preface", "garbage", "lower", "NUL", "path", "header"],
)
def test_odd_requests(deployment, line, expected):
    assert status(deployment, line) in expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"/v1/models/x/../{MODEL}", 400),
        (f"//v1/models/{MODEL}", 400),
        (f"/v1//models/{MODEL}", 400),
        (f"/v1/models/{MODEL}/./metadata", 400),
        (f"/v1/models/%2e%2e/models/{MODEL}", 400),
        ("/v1/models/a%2F..%2F..%2F..%2Fmodels", 404),
        ("/v1/models/../../models", 404),
        (f"/v1/models/{MODEL}?x=1", 400),
        # The replica must answer these: names may hold escapes, and its answer is 404.
        (f"/v1/models/{MODEL.replace('e', '%65')}", 200),
        ("/v1/models/a%2Fb", 404),
        (f"/v1/models/{MODEL}/labels/no%20such/metadata", 400),
    ],
)
def test_paths_that_wander(deployment, path, expected):
    assert status(deployment, f"GET {path} HTTP/1.1".encode()) == expected


def test_names_with_escapes_arrive(deployment):
    with httpx.Client(
        base_url=f"https://{deployment.gateway}",
        headers={"authorization": f"Bearer {deployment.key()}"},
        verify=ssl.create_default_context(cafile=deployment.certificate),
        trust_env=False,
    ) as client:
        answer = client.get("/v1/models/a%2Fb%3Ac")
    assert "a/b:c" in answer.json()["error"]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR "])
def test_any_case_of_bearer(deployment, scheme):
    line = f"GET /v1/models/{MODEL} HTTP/1.1".encode()
    assert status(deployment, line, f"{scheme} {deployment.key()}") == 200


def test_ciphers_of_tls_1_2(deployment):
    """Offer each cipher that OpenSSL has, one by one."""
    listed = subprocess.run(
        ["openssl", "ciphers", "-s", "-tls1_2", "ALL:@SECLEVEL=0"], capture_output=True, check=True
    )
    names = listed.stdout.decode().strip().split(":")
    taken = set()
    for name in names:
        command = ["openssl", "s_client", "-connect", deployment.gateway, "-tls1_2"]
        done = subprocess.run(
            [*command, "-cipher", f"{name}:@SECLEVEL=0"],
            input=b"",
            capture_output=True,
            check=False,
        )
        if done.returncode == 0:
            taken.add(name)
    assert len(names) > 20
    assert taken == {name for name in MODERN if "RSA" in name}  # the kind of key of the certificate


@pytest.mark.parametrize("asked", [False, True])
def test_connections_without_a_request_end(deployment, asked):
    """HTTP/2, where gRPC clients keep connections open; pings do not extend the time."""
    with closing(connected(deployment, "h2")) as connection:
        connection.sendall(PREFACE + EMPTY_SETTINGS + (GET if asked else b""))
        begun = time.monotonic()
        connection.settimeout(5)
        received = b""
        with suppress(OSError):  # from sending on a closed connection
            while time.monotonic() - begun < 2 * IDLE_SECONDS:
                try:
                    more = connection.recv(65536)
                except TimeoutError:
                    connection.sendall(PING)
                else:
                    received += more
                    if not more:
                        break
        assert time.monotonic() - begun < 1.5 * IDLE_SECONDS
    # The first frame holds the server's settings; 3 is the number of concurrent streams.
    size = int.from_bytes(received[:3], "big")
    settings = dict(struct.iter_unpack(">HI", received[9 : 9 + size]))
    assert settings[3] <= 128
