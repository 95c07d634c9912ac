"""TF Serving's REST API over the transport-free core, as a Starlette application."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TypeVar

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.byte_budget import ByteBudget, Held
from serving.errors import Code, Internal, InvalidArgument, ServingError
from serving.examples import classify, regress
from serving.exchange import classify_messages, predict_messages, regress_messages
from serving.grpc_codec import decode_input
from serving.grpc_service import status_response
from serving.json_example import encode_classifications, encode_regressions, parse_examples
from serving.json_inputs import decode_inputs, parse_predict
from serving.metrics import Metrics
from serving.protos.input_pb2 import Input
from serving.protos.model_pb2 import ModelSpec
from serving.repository import Repository
from serving.request_record import note, note_exchange, note_status
from serving.rest_body import (
    LARGE,
    Body,
    BodyTooLarge,
    Headers,
    discard_body,
    is_packed,
    parse_body,
    read_body,
)
from serving.rest_codec import (
    encode_error,
    encode_metadata,
    encode_outputs,
    encode_status,
)
from serving.rest_paths import (
    API,
    GET,
    METHODS,
    NO_URI,
    POST,
    EmptyError,
    Target,
    target_of,
    unquote,
)
from serving.signature import DEFAULT_SIGNATURE
from serving.worker_threads import WorkerThreads

log = logging.getLogger(__name__)

# Outputs up to this size are written on the event loop, as small bodies are read there.
_LARGE_OUTPUT = 1 << 12
T = TypeVar("T")
_HTML = b"text/html; charset=ISO-8859-1"


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
        budget: Counts the bytes of requests.
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
        budget: ByteBudget | None = None,
    ) -> None:
        self._metrics = metrics or Metrics()
        self._budget = budget or ByteBudget()
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
        if scope["type"] != "http" or not API.fullmatch(path):
            await self._rest(scope, receive, send)
            return
        if scope["query_string"]:
            path += b"?" + scope["query_string"]
        if scope["method"] not in METHODS:
            await _page(HTTPStatus.NOT_IMPLEMENTED)(scope, receive, send)
            return
        if NO_URI.search(path):
            await _page(HTTPStatus.BAD_REQUEST)(scope, receive, send)
            return
        if scope["method"] == "OPTIONS":
            origin = dict(scope["headers"]).get(b"origin", b"")
            status = 200 if b"http://" in origin or b"https://" in origin else 400
            await self._send(send, status, b"", _HTML)
            return
        with self._budget.hold() as held:
            body: Body | ServingError | None
            try:
                body = await read_body(receive, scope["headers"], held)
            except ServingError as error:
                body = error.with_traceback(None)  # which holds what was read
            if body is None:
                return
            status, answer = await self._answer(scope["method"], path, scope["headers"], body, held)
            if isinstance(body, ServingError):
                await self._send_early(receive, send, status, answer)
            else:
                await self._send(send, status, answer)

    async def _send(
        self, send: Send, status: int, body: bytes, kind: bytes = b"application/json"
    ) -> None:
        await send(self._start(status, body, (b"content-type", kind)))
        await send({"type": "http.response.body", "body": body})

    async def _send_early(self, receive: Receive, send: Send, status: int, body: bytes) -> None:
        """Answer a request whose body is not read to its end, which ends the connection."""
        kind, close = (b"content-type", b"application/json"), (b"connection", b"close")
        await send(self._start(status, body, kind, close))
        await send({"type": "http.response.body", "body": body, "more_body": True})
        await discard_body(receive)
        await send({"type": "http.response.body", "body": b""})

    def _start(self, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> Message:
        length = (b"content-length", b"%d" % len(body))
        return {
            "type": "http.response.start",
            "status": status,
            "headers": [length, *headers, *self._headers],
        }

    def _read_metrics(self, scope: Scope) -> Response:
        headers = {"content-type": "text/plain"}
        if scope["query_string"]:
            shown = f"{scope['path']}?{scope['query_string'].decode('latin-1')}"
            text = f"Unexpected path: {shown}. Should be {scope['path']}"
            return Response(text, 400, headers)
        return Response(self._metrics.render(), headers=headers)

    async def _answer(
        self, method: str, path: bytes, headers: Headers, body: Body | ServingError, held: Held
    ) -> tuple[int, bytes]:
        started = time.perf_counter()
        match = (POST if method == "POST" else GET).fullmatch(path)
        model = unquote(match["model"]) if match else ""
        verb = match["verb"].decode().lower() if match and method == "POST" else ""
        code = Code.CANCELLED
        note(model)
        try:
            if isinstance(body, ServingError):
                raise body
            answer = await self._result(method, path, match, headers, body, held)
            code = Code.OK
            return 200, answer
        except ServingError as error:
            code = error.code
            status, text = encode_error(error)
            if isinstance(error, BodyTooLarge):
                status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            return status, b"" if isinstance(error, EmptyError) else text
        except Exception as error:
            code = Code.INTERNAL
            log.exception("%s %s failed", method, path.decode("utf-8", "replace"))
            return encode_error(Internal(f"{type(error).__name__}: {error}"))
        finally:
            self._metrics.request(model, verb, "REST", code.name, started)
            note_status(code.name)

    async def _result(
        self,
        method: str,
        path: bytes,
        match: re.Match[bytes] | None,
        headers: Headers,
        body: Body,
        held: Held,
    ) -> bytes:
        if match and method == "POST":
            target = target_of(match)
            # The match ignores case, the choice of what to answer does not.
            if match["verb"] == b"predict":
                return await self._predict(target, headers, body, held)
            if match["verb"] in (b"classify", b"regress"):
                answer = self._classify if match["verb"] == b"classify" else self._regress
                if len(body) <= LARGE and not is_packed(headers):
                    return await self._threads.run(_of_examples, answer, target, body)
                (examples, name), _ = await self._parse(parse_examples, body, headers, held)
                return await self._threads.run(answer, target, examples, name)
        elif match and method == "GET":
            return await self._threads.run(self._describe, target_of(match), match["metadata"])
        shown = path.decode("utf-8", "replace")
        raise InvalidArgument(f"Malformed request: {method} {shown}")

    def _describe(self, target: Target, metadata: bytes | None) -> bytes:
        if not target.model:
            raise InvalidArgument("Missing model name in request.")
        if metadata == b"/metadata":
            return self._metadata(target)
        return encode_status(status_response(self._repository.status(target.model, target.version)))

    async def _parse(
        self, parse: Callable[[Body], T], body: Body, headers: Headers, held: Held
    ) -> tuple[T, int]:
        return await parse_body(parse, body, headers, held, self._budget, self._threads)

    async def _predict(self, target: Target, headers: Headers, raw: Body, held: Held) -> bytes:
        body, size = await self._parse(parse_predict, raw, headers, held)
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
            if size > LARGE:
                async with self._budget.turn(size):
                    inputs, row = await self._threads.run(decode_inputs, body, signature)
            else:
                inputs, row = decode_inputs(body, signature)
            with self._metrics.runtime(target.model, "Predict"):
                outputs = await model.predict_soon(
                    self._threads, inputs, name, timeout_ms=self._timeout_ms
                )
        spec = _spec(target.model, version, name)
        answered = _bytes(outputs)
        note_exchange(
            "predict",
            size + _bytes(inputs) + answered,
            lambda: predict_messages(spec(), inputs, outputs),
        )
        if answered > _LARGE_OUTPUT:
            async with self._budget.turn(answered):
                return await self._threads.run(encode_outputs, outputs, row)
        return encode_outputs(outputs, row)

    def _classify(self, target: Target, examples: Input, name: str) -> bytes:
        with self._repository.acquire(target.model, target.version, target.label) as (
            model,
            version,
        ):
            note(target.model, version, name or DEFAULT_SIGNATURE)
            listed = decode_input(examples)
            with self._metrics.runtime(target.model, "Classify"):
                result = classify(model, name, listed, self._timeout_ms)
        spec = _spec(target.model, version, name)
        note_exchange(
            "classify", sum(map(len, listed)), lambda: classify_messages(spec(), examples, result)
        )
        return encode_classifications(result.rows())

    def _regress(self, target: Target, examples: Input, name: str) -> bytes:
        with self._repository.acquire(target.model, target.version, target.label) as (
            model,
            version,
        ):
            note(target.model, version, name or DEFAULT_SIGNATURE)
            listed = decode_input(examples)
            with self._metrics.runtime(target.model, "Regress"):
                values = regress(model, name, listed, self._timeout_ms)
        spec = _spec(target.model, version, name)
        note_exchange(
            "regress", sum(map(len, listed)), lambda: regress_messages(spec(), examples, values)
        )
        return encode_regressions(values)

    def _metadata(self, target: Target) -> bytes:
        with self._repository.acquire(target.model, target.version, target.label) as held:
            model, version = held
            note(target.model, version)
            spec = ModelSpec(name=target.model)
            spec.version.value = version
            return encode_metadata(spec, model.signature_defs)


def _spec(model: str, version: int, signature: str) -> Callable[[], ModelSpec]:
    """Makes the ModelSpec that an answer over gRPC would have had."""

    def made() -> ModelSpec:
        spec = ModelSpec(name=model, signature_name=signature or DEFAULT_SIGNATURE)
        spec.version.value = version
        return spec

    return made


def _of_examples(answer: Callable[[Target, Input, str], bytes], target: Target, raw: Body) -> bytes:
    return answer(target, *parse_examples(raw))


def _bytes(arrays: Mapping[str, np.ndarray]) -> int:
    return sum(array.nbytes for array in arrays.values())


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
    budget: ByteBudget | None = None,
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
        budget: Counts the bytes of requests.
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
    return Api(others, repository, threads, timeout_ms, cors, metrics, metrics_path, budget)
