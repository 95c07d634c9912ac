"""TF Serving's REST API over the transport-free core, as a Starlette application."""

from __future__ import annotations

import logging
import re
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from serving.errors import Code, Internal, InvalidArgument, ServingError
from serving.examples import classify, regress
from serving.exchange import classify_messages, predict_messages, regress_messages
from serving.grpc_codec import decode_input
from serving.grpc_service import status_response
from serving.json_example import encode_classifications, encode_regressions, parse_examples
from serving.json_inputs import PredictBody, decode_inputs, parse_predict
from serving.metrics import Metrics
from serving.protos.model_pb2 import ModelSpec
from serving.repository import Repository
from serving.request_record import note, note_exchange, note_status
from serving.rest_codec import (
    encode_error,
    encode_metadata,
    encode_outputs,
    encode_status,
)
from serving.signature import DEFAULT_SIGNATURE
from serving.worker_threads import WorkerThreads

log = logging.getLogger(__name__)

# Full matches over path and query string, as TF Serving's: a query makes a request malformed.
_NAME = rb"/v1/models/(?P<model>[^/:]+)"
_VERSION = rb"(?:/versions/(?P<version>[0-9]+)|/labels/(?P<label>[^/:]+))?"
_POST = re.compile(rb"(?i)" + _NAME + _VERSION + rb":(?P<verb>classify|regress|predict)")
_GET = re.compile(
    rb"(?i)/v1/models(?:/(?P<model>[^/:]+))?" + _VERSION + rb"(?P<metadata>/metadata)?"
)
_API = re.compile(rb"(?i)/v1/.*", re.DOTALL)
_MAX_UNPACKED = 100 << 20
_INT64_DIGITS = 19
# Bodies up to this size are read, and outputs written, on the event loop: that takes less than the
# way to a thread and back.
_LARGE = 1 << 14
_LARGE_OUTPUT = 1 << 12
_METHODS = ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH")
# Bytes that a URI may not have, and per cent signs without two digits (RFC 3986).
_NO_URI = re.compile(rb"[^!$%&-;=?-Z_a-z~]|%(?![0-9A-Fa-f]{2})")
_HTML = b"text/html; charset=ISO-8859-1"

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class _Target:
    """What the path names."""

    model: str
    version: int | None
    label: str | None


class _EmptyError(InvalidArgument):
    """Answered without a body, as TF Serving happens to."""


class Api:
    """The part under /v1/, as an ASGI application in front of another.

    Args:
        rest: Answers all other paths.
        repository: The models.
        threads: Where requests are worked on.
        timeout_ms: Time allowed for a model run; 0 for no limit.
        cors: Headers of every answer under /v1/, for browsers.
        metrics: Where requests are counted.
        metrics_path: Where the counts can be read; empty for nowhere.
    """

    def __init__(
        self,
        rest: ASGIApp,
        repository: Repository,
        threads: WorkerThreads,
        timeout_ms: int = 30000,
        cors: Sequence[tuple[bytes, bytes]] = (),
        metrics: Metrics | None = None,
        metrics_path: str = "",
    ) -> None:
        self._metrics = metrics or Metrics()
        self._metrics_path = metrics_path.encode()
        self._rest = rest
        self._repository = repository
        self._threads = threads
        self._timeout_ms = max(0, timeout_ms)
        self._headers = cors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path: bytes = scope.get("raw_path", b"")
        if self._metrics_path and path == self._metrics_path:
            await self._read_metrics(scope)(scope, receive, send)
            return
        if scope["type"] != "http" or not _API.fullmatch(path):
            await self._rest(scope, receive, send)
            return
        if scope["query_string"]:
            path += b"?" + scope["query_string"]
        if scope["method"] not in _METHODS:
            await _page(HTTPStatus.NOT_IMPLEMENTED)(scope, receive, send)
            return
        if _NO_URI.search(path):
            await _page(HTTPStatus.BAD_REQUEST)(scope, receive, send)
            return
        if scope["method"] == "OPTIONS":
            origin = dict(scope["headers"]).get(b"origin", b"")
            status = 200 if b"http://" in origin or b"https://" in origin else 400
            await self._send(send, status, b"", _HTML)
            return
        body = await _body(receive)
        if body is None:
            return
        status, answer = await self._answer(scope["method"], path, scope["headers"], body)
        await self._send(send, status, answer)

    async def _send(
        self, send: Send, status: int, body: bytes, kind: bytes = b"application/json"
    ) -> None:
        length = (b"content-length", b"%d" % len(body))
        headers = [length, (b"content-type", kind), *self._headers]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _read_metrics(self, scope: Scope) -> Response:
        headers = {"content-type": "text/plain"}
        if scope["query_string"]:
            shown = f"{scope['path']}?{scope['query_string'].decode('latin-1')}"
            text = f"Unexpected path: {shown}. Should be {scope['path']}"
            return Response(text, 400, headers)
        return Response(self._metrics.render(), headers=headers)

    async def _answer(
        self, method: str, path: bytes, headers: Headers, body: bytes
    ) -> tuple[int, bytes]:
        started = time.perf_counter()
        match = (_POST if method == "POST" else _GET).fullmatch(path)
        model = _unquote(match["model"]) if match else ""
        verb = match["verb"].decode().lower() if match and method == "POST" else ""
        code = Code.CANCELLED
        note(model)
        try:
            answer = await self._result(method, path, match, headers, body)
            code = Code.OK
            return 200, answer
        except ServingError as error:
            code = error.code
            status, text = encode_error(error)
            return status, b"" if isinstance(error, _EmptyError) else text
        except Exception as error:
            code = Code.INTERNAL
            log.exception("%s %s failed", method, path.decode("utf-8", "replace"))
            return encode_error(Internal(f"{type(error).__name__}: {error}"))
        finally:
            self._metrics.request(model, verb, "REST", code.name, started)
            note_status(code.name)

    async def _result(
        self, method: str, path: bytes, match: re.Match[bytes] | None, headers: Headers, body: bytes
    ) -> bytes:
        if match and method == "POST":
            target = _target(match)
            # The match ignores case, the choice of what to answer does not.
            if match["verb"] == b"predict":
                return await self._predict(target, headers, body)
            if match["verb"] == b"classify":
                return await self._threads.run(self._classify, target, _unpack(headers, body))
            if match["verb"] == b"regress":
                return await self._threads.run(self._regress, target, _unpack(headers, body))
        elif match and method == "GET":
            return await self._threads.run(self._describe, _target(match), match["metadata"])
        shown = path.decode("utf-8", "replace")
        raise InvalidArgument(f"Malformed request: {method} {shown}")

    def _describe(self, target: _Target, metadata: bytes | None) -> bytes:
        if not target.model:
            raise InvalidArgument("Missing model name in request.")
        if metadata == b"/metadata":
            return self._metadata(target)
        return encode_status(status_response(self._repository.status(target.model, target.version)))

    async def _predict(self, target: _Target, headers: Headers, raw: bytes) -> bytes:
        large = len(raw) > _LARGE or _is_packed(headers)
        if large:
            body = await self._threads.run(_parse_packed, headers, raw)
        else:
            body = parse_predict(raw)
        with self._repository.acquire(target.model, target.version, target.label) as (
            model,
            version,
        ):
            name = body.signature_name or DEFAULT_SIGNATURE
            note(target.model, version, name)
            signature = model.signatures.get(name)
            if signature is None:
                raise InvalidArgument(
                    f'Serving signature name: "{name}" not found in signature def'
                )
            if large:
                inputs, row = await self._threads.run(decode_inputs, body, signature)
            else:
                inputs, row = decode_inputs(body, signature)
            with self._metrics.runtime(target.model, "Predict"):
                outputs = await model.predict_soon(
                    self._threads, inputs, name, timeout_ms=self._timeout_ms
                )
        spec = _spec(target.model, version, name)
        note_exchange("predict", lambda: predict_messages(spec(), inputs, outputs))
        if sum(array.nbytes for array in outputs.values()) > _LARGE_OUTPUT:
            return await self._threads.run(encode_outputs, outputs, row)
        return encode_outputs(outputs, row)

    def _classify(self, target: _Target, raw: bytes) -> bytes:
        examples, name = parse_examples(raw)
        with self._repository.acquire(target.model, target.version, target.label) as (
            model,
            version,
        ):
            note(target.model, version, name or DEFAULT_SIGNATURE)
            listed = decode_input(examples)
            with self._metrics.runtime(target.model, "Classify"):
                result = classify(model, name, listed, self._timeout_ms)
        spec = _spec(target.model, version, name)
        note_exchange("classify", lambda: classify_messages(spec(), examples, result))
        return encode_classifications(result.rows())

    def _regress(self, target: _Target, raw: bytes) -> bytes:
        examples, name = parse_examples(raw)
        with self._repository.acquire(target.model, target.version, target.label) as (
            model,
            version,
        ):
            note(target.model, version, name or DEFAULT_SIGNATURE)
            listed = decode_input(examples)
            with self._metrics.runtime(target.model, "Regress"):
                values = regress(model, name, listed, self._timeout_ms)
        spec = _spec(target.model, version, name)
        note_exchange("regress", lambda: regress_messages(spec(), examples, values))
        return encode_regressions(values)

    def _metadata(self, target: _Target) -> bytes:
        with self._repository.acquire(target.model, target.version, target.label) as held:
            model, version = held
            note(target.model, version)
            spec = ModelSpec(name=target.model)
            spec.version.value = version
            return encode_metadata(spec, model.signature_defs)


def _target(match: re.Match[bytes]) -> _Target:
    version = None
    if match["version"]:
        digits = match["version"].lstrip(b"0")
        if len(digits) > _INT64_DIGITS or int(digits or b"0") >= 1 << 63:
            shown = match["version"].decode()
            raise _EmptyError(f"Failed to convert version: {shown} to numeric.")
        version = int(digits or b"0")
    label = _unquote(match["label"]) if match["label"] else None
    return _Target(_unquote(match["model"]), version, label)


def _unquote(part: bytes | None) -> str:
    return unquote_to_bytes(part or b"").decode("utf-8", "surrogateescape")


def _spec(model: str, version: int, signature: str) -> Callable[[], ModelSpec]:
    """Makes the ModelSpec that an answer over gRPC would have had."""

    def made() -> ModelSpec:
        spec = ModelSpec(name=model, signature_name=signature or DEFAULT_SIGNATURE)
        spec.version.value = version
        return spec

    return made


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None when the client went away meanwhile."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _is_packed(headers: Headers) -> bool:
    encodings = (value for name, value in headers if name == b"content-encoding")
    return b"gzip" in next(encodings, b"")


def _parse_packed(headers: Headers, body: bytes) -> PredictBody:
    return parse_predict(_unpack(headers, body))


def _unpack(headers: Headers, body: bytes) -> bytes:
    """The body, unpacked where it is packed; one that cannot be unpacked counts as empty."""
    if not _is_packed(headers):
        return body
    unpacker = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacker.decompress(body, _MAX_UNPACKED)
    except zlib.error:
        return b""
    return unpacked if unpacker.eof and not unpacker.unused_data else b""


def _page(status: HTTPStatus, text: str = "") -> Response:
    """An error page, as TF Serving's HTTP library answers beside the API."""
    title, body = f"{status.value} {status.phrase}", f"<h1>{status.phrase}</h1>\n{text}"
    page = f"<html><head>\n<title>{title}</title>\n</head><body>\n{body}</body></html>\n"
    return Response(page, status, media_type="text/html")


def create_app(
    repository: Repository,
    threads: WorkerThreads,
    timeout_ms: int = 30000,
    cors: Sequence[tuple[bytes, bytes]] = (),
    draining: Callable[[], bool] = lambda: False,
    metrics: Metrics | None = None,
    metrics_path: str = "",
) -> Api:
    """The REST application: TF Serving's API; /healthz, /readyz and /models beside it.

    Args:
        repository: The models.
        threads: Where requests are worked on.
        timeout_ms: Time allowed for a model run; 0 for no limit.
        cors: Headers of every answer under /v1/, for browsers.
        draining: Whether the server is about to stop.
        metrics: Where requests are counted.
        metrics_path: Where the counts can be read; empty for nowhere.
    """

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(_: Request) -> Response:
        if draining():
            return JSONResponse({"status": "stopping"}, 503)
        ready = repository.ready()
        return JSONResponse({"status": "ready" if ready else "loading"}, 200 if ready else 503)

    async def models(_: Request) -> Response:
        return JSONResponse({"models": repository.listing()})

    async def missing(_: Request, __: Exception) -> Response:
        return _page(HTTPStatus.NOT_FOUND, "<p>The API is under /v1/models.</p>\n")

    others = Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/models", models),
        ],
        exception_handlers={404: missing},
    )
    return Api(others, repository, threads, timeout_ms, cors, metrics, metrics_path)
