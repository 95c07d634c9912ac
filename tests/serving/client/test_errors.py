"""The error table of docs/reference/clients.md, row by row, on real sockets."""

import asyncio
import re
import time

import grpc
import numpy as np
import pytest

from gru_serving.client import connect, connect_async
from gru_serving.client.streaming import StreamingSession, StreamState
from gru_serving.commands.connection_arguments import check_texts
from gru_serving.errors import ServingError, Unavailable
from tests.ports import free_ports
from tests.serving.certificate import certificate
from tests.serving.client.odd_answers import RIGHT, over_rest
from tests.serving.servers import REPOSITORY
from tests.serving.strange_servers import bytes_over_grpc, rpc, secure, web


def table():
    """From situation to (code, text), as documented."""
    section = (
        (REPOSITORY / "docs/reference/clients.md").read_text("utf-8").partition("## Errors")[2]
    )
    rows = re.findall(
        r"^\| (.+?) \| ([A-Z_]+(?: or [A-Z_]+)?) \| (.+?) \| .+ \|$", section, re.MULTILINE
    )
    return {situation: (code, text) for situation, code, text in rows}


TABLE = table()
PRODUCERS = {}


def produces(*situations):
    def register(function):
        PRODUCERS.update(dict.fromkeys(situations, function))
        return function

    return register


@pytest.fixture(params=["rest", "grpc"])
def transport(request):
    return request.param


@pytest.mark.parametrize("situation", TABLE)
def test_documented(situation, server, transport, tmp_path):
    code, text = TABLE[situation]
    with pytest.raises(ServingError) as caught:
        PRODUCERS[situation](situation, server, transport, tmp_path)
    assert caught.value.code.name in code.split(" or "), caught.value.status
    assert text in caught.value.message


def test_every_situation_is_documented():
    assert PRODUCERS.keys() == TABLE.keys()
    assert len(TABLE) >= 20


def ask(url, same=True, **options):
    """A call with both kinds of client, whose errors must be the same."""
    options = {"retries": 0, "timeout": 10, **options}
    with connect(url, **options) as client, pytest.raises(ServingError) as first:
        client.status("m")

    async def again():
        async with connect_async(url, **options) as client:
            await client.status("m")

    with pytest.raises(ServingError) as second:
        asyncio.run(again())
    if same:
        assert second.value.code == first.value.code
        assert second.value.message[:30] == first.value.message[:30]
    raise second.value


@produces("server down")
def down(_, server, transport, tmp_path):
    (port,) = free_ports(1)
    ask(f"{'http' if transport == 'rest' else 'grpc'}://localhost:{port}")


@produces("server too slow")
def slow(_, server, transport, tmp_path):
    if transport == "rest":
        with web(200, b"{}", "application/json", 1.0) as (_, url):
            ask(url, timeout=0.2)
    with rpc(grpc.StatusCode.OK, seconds=1.0) as (_, url):
        ask(url, timeout=0.2)


@produces("answer too large")
def large(_, server, transport, tmp_path):
    if transport == "rest":
        with web(200, bytes(1001), "application/json") as (_, url):
            ask(url, max_answer_bytes=1000)
    with bytes_over_grpc(bytes(1001)) as url:
        ask(url, max_answer_bytes=1000)


@produces("another web server")
def website(_, server, transport, tmp_path):
    with web(404, b"<html>not here</html>", "text/html") as (_, url):
        ask(url)


@produces("JSON of another kind")
def other_json(_, server, transport, tmp_path):
    with web(200, b'{"status": "ok"}', "application/json") as (_, url), connect(url) as client:
        client.metadata("m")


@produces("answer of other rows or columns than its signature", "number beyond its type")
def other_answer(situation, server, transport, tmp_path):
    wrong = {"pair": [[1.0]]} if situation.startswith("answer") else {"y": [1e39]}
    with over_rest({**RIGHT, **wrong}) as (_, url), connect(url) as client:
        client.predict({"x": [1.0]}, "m")


@produces("REST client at a gRPC port")
def rest_at_grpc(_, server, transport, tmp_path):
    ask(f"http://{server.grpc}")


@produces("gRPC client at a REST port")
def grpc_at_rest(_, server, transport, tmp_path):
    # By number: if a name has several addresses, gRPC may name any of them as the one that failed.
    ask(server.rest.replace("http://localhost", "grpc://127.0.0.1"))


@produces("another gRPC service")
def other_service(_, server, transport, tmp_path):
    with rpc() as (_, url):
        ask(url)


@produces("gateway without a server behind")
def gateway(_, server, transport, tmp_path):
    with web(502, b"<html>Bad Gateway</html>", "text/html") as (_, url):
        ask(url)


@produces("replica of Ray Serve that ends with the request in it")
def lost_replica(_, server, transport, tmp_path):
    text = "The actor died unexpectedly before finishing this task.\n\tclass_name: ServeReplica"
    with (
        rpc(grpc.StatusCode.INTERNAL, text) if transport == "grpc"
        else web(500, b"Internal Server Error", "text/plain; charset=utf-8")
    ) as (_, url):  # fmt: skip
        ask(url)


@produces("unknown model", "unknown version", "unknown label", "unknown signature")
def unknown(situation, server, transport, tmp_path):
    which = {
        "unknown model": {"model": "nix"},
        "unknown version": {"model": "affine", "version": 2},
        "unknown label": {"model": "affine", "label": "beta"},
        "unknown signature": {"model": "affine", "signature": "nix"},
    }
    with connect(getattr(server, transport)) as client:
        client.predict([[1.0, 2.0, 3.0]], **which[situation])


@produces("model without a step")
def no_step(_, server, transport, tmp_path):
    with connect(getattr(server, transport)) as client:
        StreamingSession(client, "text").feed("good")


@produces("missing or extra input", "wrong type", "rows of different lengths", "wrong width")
def wrong_input(situation, server, transport, tmp_path):
    inputs = {
        "missing or extra input": {"x": [[1, 2, 3]]},
        "wrong type": {"x": [["a", "b", "c"]], "b": [[1]]},
        "rows of different lengths": {"x": [[1, 2], [3]], "b": [[1]]},
        "wrong width": {"x": np.ones((2, 4)), "b": np.ones((2, 1))},
    }
    with connect(getattr(server, transport)) as client:
        client.predict(inputs[situation], "affine")


@produces("text that is not UTF-8")
def not_utf8(_, server, transport, tmp_path):
    check_texts([b"ab\xffcd".decode("utf-8", "surrogateescape")])


@produces("text that UTF-8 cannot hold")
def half_a_pair(_, server, transport, tmp_path):
    with connect(getattr(server, transport)) as client:
        client.predict(["good", "a \ud83d b"], "text")


@produces("no token", "refused token", "token without permission")
def tokens(situation, server, transport, tmp_path):
    options = {} if situation == "no token" else {"token": "abc"}
    status, code = 401, grpc.StatusCode.UNAUTHENTICATED
    if situation == "token without permission":
        status, code = 403, grpc.StatusCode.PERMISSION_DENIED
    if transport == "rest":
        with web(status, b'{"error": "no"}', "application/json") as (site, url):
            try:
                ask(url, **options)
            finally:
                sent = {headers.get("Authorization") for headers in site.seen}
                assert sent == {"Bearer abc" if options else None}
    with rpc(code, "no") as (seen, url):
        try:
            ask(url, **options)
        finally:
            assert {m.get("authorization") for m in seen} == {"Bearer abc" if options else None}


@produces("certificate not trusted", "client certificate wanted")
def certificates(situation, server, transport, tmp_path):
    key, cert = certificate(tmp_path)
    wanted = situation == "client certificate wanted"
    with secure(transport, key, cert, wanted) as url:
        ask(url, same=not wanted, ca_file=str(cert) if wanted else None)


@produces("no TLS where the server wants it")
def no_tls(_, server, transport, tmp_path):
    key, cert = certificate(tmp_path)
    with secure(transport, key, cert, False) as url:
        plain = url.replace("https://", "http://").replace("grpcs://", "grpc://")
        ask(plain, cert_file=str(cert), key_file=str(key))


@produces("state of a version that is gone")
def gone(_, server, transport, tmp_path):
    with connect(getattr(server, transport)) as client:
        # There was never a version 2; a session that does not keep its history cannot start over.
        saved = StreamState("affine", 2, "step", "", 5, (0.0,), None)
        StreamingSession.resume(client, saved).feed([1.0, 2.0, 3.0])


def test_a_certificate_of_another_name_is_told_by_that(tmp_path, transport):
    key, cert = certificate(tmp_path, "DNS:other.example")
    with (
        secure(transport, key, cert, False) as url,
        pytest.raises(ServingError, match="no secure connection") as caught,
    ):
        ask(url, same=False, ca_file=str(cert))
    assert caught.value.code.name == "UNAUTHENTICATED"


def test_tls_with_the_right_files_reaches_the_server(tmp_path, transport):
    key, cert = certificate(tmp_path)
    for client_verify in (False, True):
        options = {"ca_file": str(cert)}
        if client_verify:
            options |= {"cert_file": str(cert), "key_file": str(key)}
        with (
            secure(transport, key, cert, client_verify) as url,
            pytest.raises(ServingError) as caught,
        ):
            ask(url, **options)
        assert (caught.value.code.name, caught.value.message) == ("NOT_FOUND", "reached")


def test_only_unavailable_is_tried_again(transport):
    for status, code, tries in (
        (503, grpc.StatusCode.UNAVAILABLE, 3),
        (429, grpc.StatusCode.RESOURCE_EXHAUSTED, 1),
        (500, grpc.StatusCode.INTERNAL, 1),
    ):
        if transport == "rest":
            with web(status, b'{"error": "no"}', "application/json") as (site, url):
                with connect(url, retries=2) as client, pytest.raises(ServingError):
                    client.status("m")
                assert len(site.seen) == tries
        else:
            with rpc(code, "no") as (seen, url):
                with connect(url, retries=2) as client, pytest.raises(ServingError):
                    client.status("m")
                assert len(seen) == tries


def test_calls_that_a_stopping_server_did_not_read_are_tried_again():
    # gRPC's own answer to calls that wait in its queue when a server stops.
    with rpc(grpc.StatusCode.CANCELLED, "CANCELLED") as (seen, url):
        message = f"{url} did not read the request: it stops, or too many others wait"
        with connect(url, retries=2) as client, pytest.raises(Unavailable, match=message):
            client.status("m")
        assert len(seen) == 3
    with rpc(grpc.StatusCode.CANCELLED, "the run was ended") as (seen, url):
        with connect(url, retries=2) as client, pytest.raises(ServingError, match="was ended"):
            client.status("m")
        assert len(seen) == 1


def test_retries_end_with_the_time_allowed(transport):
    (port,) = free_ports(1)
    started = time.monotonic()
    url = f"{'http' if transport == 'rest' else 'grpc'}://localhost:{port}"
    with connect(url, retries=100, timeout=1) as client, pytest.raises(Unavailable):
        client.status("m")
    assert time.monotonic() - started < 30


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"timeout": 0}, "timeout must be positive"),
        ({"retries": -1}, "retries must not be negative"),
        ({"max_batch_size": 0}, "max_batch_size must be at least 1"),
        ({"max_answer_bytes": 0}, "max_answer_bytes must be from 1 to 2"),
        ({"max_answer_bytes": 1 << 31}, "max_answer_bytes must be from 1 to 2"),
        ({"cert_file": "c"}, "cert_file and key_file belong together"),
        ({"token": "a b"}, "token must be visible ASCII"),
        ({"ca_file": "/nix"}, "ca_file /nix: cannot be read"),
        ({"ca_file": str(REPOSITORY / "Makefile")}, "expected PEM"),
    ],
)
def test_options_that_cannot_work(options, said):
    for url in ("https://localhost:1", "grpcs://localhost:1"):
        for made in (connect, connect_async):
            with pytest.raises(ValueError, match=said):
                made(url, **options)


@pytest.mark.parametrize("made", [connect, connect_async])
def test_an_address_that_is_not_set(made):
    with pytest.raises(ValueError, match=r"url: expected text such as .*; got None"):
        made(None)
