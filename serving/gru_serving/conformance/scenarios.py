"""Cases that are no single request and answer: connections, sizes, other services, many at once."""

import json
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import grpc

from gru_serving.conformance.differences import difference
from gru_serving.conformance.server import GrpcAnswer, HttpAnswer, Server, read_answer
from gru_serving.protos import types_pb2
from gru_serving.protos.predict_pb2 import PredictRequest

_JSON = {"Content-Type": "application/json"}
_URL = "/v1/models/half_plus_two"
_LARGE, _DEEP = 200_000, 500_000
_MANY = 32
Found = tuple[str | None, str]
"""Difference, None where there is none, and what the server said."""


class NotOfferedError(Exception):
    """The server has no such method; the message says which."""


@dataclass(frozen=True)
class Scenario:
    """A case that is performed by a function; the other attributes are those of a `Case`.

    Attributes:
        name: Unique name.
        topic: Topic of the report.
        rule: Sentence that says what TF Serving does.
        source: Place of the rule in TF Serving.
        transport: `rest` or `grpc`.
        run: Function of the server that returns the difference, None where there is none, and what
            the server said.
    """

    name: str
    topic: str
    rule: str
    source: str
    transport: str
    run: Callable[[Server], Found]


def _check_offered(answer: HttpAnswer | GrpcAnswer) -> None:
    if answer.missing_method:
        raise NotOfferedError("the server has no such method")


def _predictions(answer: HttpAnswer, wanted: list[Any]) -> Found:
    _check_offered(answer)
    if answer.failure or answer.status != 200:
        return f"expected status 200; got {answer.said}", answer.said
    try:
        got = answer.json()
    except ValueError as error:
        return str(error), answer.said
    whole = {"predictions": wanted}
    return None if got == whole else difference(whole, got), answer.said


def _large(chunks: int) -> Callable[[Server], Found]:
    def run(server: Server) -> Found:
        body = json.dumps({"instances": list(range(_LARGE))}).encode()
        answer = server.rest("POST", f"{_URL}:predict", body, _JSON, chunks)
        reason, _ = _predictions(answer, [row / 2 + 2 for row in range(_LARGE)])
        return reason, f"{answer.status}, {len(answer.body)} bytes"

    return run


def _deep(server: Server) -> Found:
    body = b'{"ignored": ' + b"[" * _DEEP + b"]" * _DEEP + b', "instances": [2]}'
    return _predictions(server.rest("POST", f"{_URL}:predict", body, _JSON), [3.0])


def _foreign_host(server: Server) -> Found:
    headers = {"Host": "models.example.org", "Origin": "https://example.org"}
    return _predictions(
        server.rest("POST", f"{_URL}:predict", b'{"instances": [2]}', headers), [3.0]
    )


def _kept_alive(server: Server) -> Found:
    said = []
    with closing(server.connection()) as connection:
        for _ in range(3):
            connection.request("GET", _URL)
            port = connection.sock.getsockname() if connection.sock else None
            answer = read_answer(connection, server.timeout)
            said.append((port, answer.status))
    _check_offered(answer)
    if any(status != 200 for _, status in said):
        return f"expected status 200 three times; got {answer.said}", answer.said
    kept = len({port for port, _ in said}) == 1
    return None if kept else "expected one connection; the server closed it", answer.said


def _written(request: bytes, until: bytes) -> Callable[[Server], Found]:
    """Return a request as bytes on a socket, and how the answer begins."""

    def run(server: Server) -> Found:
        got = b""
        try:
            with socket.create_connection(server.address, server.timeout) as line:
                line.sendall(request)
                while until not in got and (more := line.recv(65536)):
                    got += more
        except OSError as error:
            return f"no answer: {error}", ""
        said = got.partition(b"\r\n")[0].decode(errors="replace")
        if " 404 " in said and until not in got:
            raise NotOfferedError("the server has no such path")
        return (None if until in got else f"expected {until.decode()}; got {said}"), said

    return run


def _side_by_side(server: Server) -> Found:
    def one(number: int) -> str | None:
        body = json.dumps({"instances": [[float(number)], [number + 0.5]]}).encode()
        answer = server.rest("POST", "/v1/models/batched:predict", body, _JSON)
        return _predictions(answer, [[number / 2 + 2], [number / 2 + 2.25]])[0]

    with ThreadPoolExecutor(_MANY) as threads:
        reasons = list(threads.map(one, range(_MANY)))
    wrong = [reason for reason in reasons if reason]
    said = f"{_MANY - len(wrong)} of {_MANY} requests got their own answer"
    return (wrong[0] if wrong else None), said


def _large_message(server: Server) -> Found:
    request = PredictRequest()
    request.model_spec.name = "half_plus_two"
    tensor = request.inputs["x"]
    tensor.dtype = types_pb2.DT_FLOAT
    tensor.tensor_shape.dim.add(size=6 * _LARGE)
    tensor.float_val.extend(range(6 * _LARGE))
    answer = server.grpc("Predict", request)
    _check_offered(answer)
    if answer.message is None:
        return f"expected an answer; got {answer.said}", answer.said
    got = list(answer.message.outputs["y"].float_val)
    reason = difference(
        [row / 2 + 2 for row in range(6 * _LARGE)], got, where="outputs.y.float_val"
    )
    return reason, f"OK, {answer.message.ByteSize()} bytes"


def _long_text(server: Server) -> Found:
    request = PredictRequest()
    request.model_spec.name = "n" * 5000
    answer = server.grpc("Predict", request)
    _check_offered(answer)
    wanted = ("Servable not found for request: Latest(" + "n" * 5000)[:1024] + "...TRUNCATED"
    if (answer.code, answer.text) == ("NOT_FOUND", wanted):
        return None, answer.said
    length = len(answer.text)
    return f"expected 1024 characters and ...TRUNCATED; got {length} characters", answer.said


def _raw(server: Server, path: str, requests: list[bytes], streamed: bool = False) -> bytes:
    """Call a method of any service with bytes.

    Raises:
        RpcError: The call failed; a method that is not there is a `NotOfferedError`.
    """
    try:
        if streamed:
            call = server.channel.stream_stream(path)(iter(requests), timeout=server.timeout)
            return b"".join(call)
        return bytes(server.channel.unary_unary(path)(requests[0], timeout=server.timeout))
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            raise NotOfferedError(f"the server has no {path}") from None
        raise


def _health(service: str, wanted: str) -> Callable[[Server], Found]:
    def run(server: Server) -> Found:
        request = b"\x0a" + bytes([len(service)]) + service.encode() if service else b""
        try:
            answer = _raw(server, "/grpc.health.v1.Health/Check", [request])
            said = "SERVING" if answer == b"\x08\x01" else f"bytes {answer!r}"
        except grpc.RpcError as error:
            said = error.code().name
        return (None if said == wanted else f"expected {wanted}; got {said}"), said

    return run


def _reflection(server: Server) -> Found:
    for version in ("v1", "v1alpha"):
        path = f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
        try:
            listed = _raw(server, path, [b"\x3a\x00"], streamed=True)
            break
        except NotOfferedError:
            continue
        except grpc.RpcError as error:
            return f"expected a list of services; got {error.code().name}", error.details() or ""
    else:
        raise NotOfferedError("the server has no reflection")
    names = (b"tensorflow.serving.PredictionService", b"tensorflow.serving.ModelService")
    missing = [name.decode() for name in names if name not in listed]
    said = "lists " + ", ".join(name.decode() for name in names if name in listed)
    return (f"expected {missing[0]} in the list" if missing else None), said


def _status_of(path: str, request: bytes, wanted: str) -> Callable[[Server], Found]:
    def run(server: Server) -> Found:
        try:
            server.channel.unary_unary(path)(request, timeout=server.timeout)
            said = "OK"
        except grpc.RpcError as error:
            said = error.code().name
        if said == "UNIMPLEMENTED" != wanted:
            raise NotOfferedError(f"the server has no {path}")
        return (None if said == wanted else f"code: expected {wanted}; got {said}"), said

    return run


def _post(
    headers: bytes, version: bytes = b"HTTP/1.1", body: bytes = b'{"instances": [2]}'
) -> bytes:
    length = b"Content-Length: %d\r\n" % len(body)
    head = b"POST " + _URL.encode() + b":predict " + version + b"\r\nHost: localhost\r\n"
    head += b"Content-Type: application/json\r\n"
    return head + length + headers + b"\r\n" + body


def _scenarios() -> Iterator[Scenario]:
    http = "util/net_http/server/internal/evhttp_server.cc: EvHTTPServer"
    body = "util/net_http/server/internal/evhttp_request.cc: EvHTTPRequest::ReadRequestBytes"
    grpc_server = "model_servers/server.cc: Server::BuildAndStart"
    large = "A body may have any size: 200,000 rows are answered row by row."
    yield Scenario("a large body (rest)", "transport", large, body, "rest", _large(0))
    yield Scenario("a large body in chunks (rest)", "transport", large, body, "rest", _large(3))
    yield Scenario(
        "nested far too deep in a key that is ignored (rest)", "transport",
        "The JSON parser is iterative: 500,000 nested lists in an ignored key do no harm.",
        "util/json_tensor.cc: ParseJson", "rest", _deep,
    )  # fmt: skip
    yield Scenario(
        "any host and any origin (rest)", "transport",
        "Requests are answered whatever their Host and Origin are.", http, "rest", _foreign_host,
    )  # fmt: skip
    yield Scenario(
        "three calls over one connection (rest)", "transport",
        "A connection of HTTP/1.1 stays open between requests.", http, "rest", _kept_alive,
    )  # fmt: skip
    yield Scenario(
        "HTTP/1.0 (rest)", "transport", "A request of HTTP/1.0 is answered.", http, "rest",
        _written(_post(b"", b"HTTP/1.0"), b"200 OK"),
    )  # fmt: skip
    yield Scenario(
        "Expect: 100-continue (rest)", "transport",
        "A client that waits to be told may go on.", http, "rest",
        _written(_post(b"Expect: 100-continue\r\n"), b"100 Continue"),
    )  # fmt: skip
    yield Scenario(
        "requests side by side, which may share batches (rest)", "batching",
        "Every request of a batch gets the answer to its own rows.",
        "batching/batching_session.cc: BatchingSession::SplitOutputTensors", "rest", _side_by_side,
    )  # fmt: skip
    yield Scenario(
        "a message beyond 4 MiB, and its answer (grpc)", "transport",
        "Messages may have up to 2^31-1 bytes, both ways.", grpc_server, "grpc", _large_message,
    )  # fmt: skip
    yield Scenario(
        "a long text of an error is cut (grpc)", "transport",
        "The text of a status has at most 1024 bytes, and then ...TRUNCATED.",
        "model_servers/grpc_status_util.cc: ToGRPCStatus", "grpc", _long_text,
    )  # fmt: skip
    for service, wanted in (
        *(("", "SERVING"), ("ModelService", "SERVING"), ("PredictionService", "SERVING")),
        ("NoSuchService", "NOT_FOUND"),
    ):
        yield Scenario(
            f"health of {service or 'the server'} (grpc)", "transport",
            "With --enable_grpc_healthcheck_service, grpc.health.v1 knows three names.",
            grpc_server, "grpc", _health(service, wanted),
        )  # fmt: skip
    yield Scenario(
        "reflection (grpc)", "transport", "Reflection lists both services.", grpc_server, "grpc",
        _reflection,
    )  # fmt: skip
    yield Scenario(
        "a service that is not registered (grpc)", "transport",
        "SessionService is a proto only: its method is UNIMPLEMENTED.", grpc_server, "grpc",
        _status_of("/tensorflow.serving.SessionService/SessionRun", b"", "UNIMPLEMENTED"),
    )  # fmt: skip
    yield Scenario(
        "bytes that are no request (grpc)", "transport",
        "A message that gRPC cannot parse is INTERNAL.", grpc_server, "grpc",
        _status_of("/tensorflow.serving.PredictionService/Predict", b"\xff\xff\xff", "INTERNAL"),
    )  # fmt: skip


SCENARIOS = tuple(_scenarios())
