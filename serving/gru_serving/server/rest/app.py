"""TF Serving's REST API over the use cases, as an ASGI application."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus

from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gru_serving.codecs.json_predict import encode_error, encode_metadata, encode_status
from gru_serving.errors import (
    NO_MEMORY,
    Code,
    Internal,
    InvalidArgument,
    ResourceExhausted,
    ServingError,
)
from gru_serving.inference.service import Inference, LoopLimits
from gru_serving.server.byte_budget import ByteBudget, Held
from gru_serving.server.rest.body import (
    Body,
    BodyTooLarge,
    Headers,
    discard_body,
    open_body,
    read_body,
)
from gru_serving.server.rest.pages import error_page, metrics_page, pages
from gru_serving.server.rest.paths import (
    API,
    GET,
    METHODS,
    NO_URI,
    POST,
    EmptyError,
    target_of,
    unquote,
)
from gru_serving.server.rest.requests import ClassifyPost, Post, PredictPost, RegressPost
from gru_serving.telemetry.metrics import Metrics
from gru_serving.telemetry.request_record import note, note_status

log = logging.getLogger(__name__)

LIMITS = LoopLimits(read=1 << 14, write=1 << 12)
"""JSON of this many bytes, and arrays of this many as JSON, take less than a thread switch."""

_HTML = b"text/html; charset=ISO-8859-1"
# The paths' pattern ignores case, the choice of what to answer does not.
_POSTS: dict[bytes, type[Post]] = {
    b"predict": PredictPost,
    b"classify": ClassifyPost,
    b"regress": RegressPost,
}


class Api:
    """The part under /v1/, as an ASGI application in front of another.

    Args:
        rest: Answers all other paths.
        inference: What answers.
        timeout_ms: Time allowed for a model run; 0 for no limit.
        cors: Headers of every answer under /v1/, for browsers.
        metrics: Where requests are counted.
        metrics_path: Where the counts can be read; empty for nowhere.
        budget: Counts the bytes of requests.
    """

    def __init__(
        self,
        rest: ASGIApp,
        inference: Inference,
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
        self._inference = inference
        self._timeout_ms = max(0, timeout_ms)
        self._headers = cors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path: bytes = scope.get("raw_path", b"")
        if self._metrics_path and path == self._metrics_path:
            page = await metrics_page(self._metrics, scope)
            await page(scope, receive, send)
            return
        if scope["type"] != "http" or not API.fullmatch(path):
            await self._rest(scope, receive, send)
            return
        if scope["query_string"]:
            path += b"?" + scope["query_string"]
        if scope["method"] not in METHODS:
            await error_page(HTTPStatus.NOT_IMPLEMENTED)(scope, receive, send)
            return
        if NO_URI.search(path):
            await error_page(HTTPStatus.BAD_REQUEST)(scope, receive, send)
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
        except MemoryError:
            code = Code.RESOURCE_EXHAUSTED
            return encode_error(ResourceExhausted(NO_MEMORY))
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
        threads = self._inference.threads
        if match and method == "POST":
            target = target_of(match)
            post = _POSTS.get(match["verb"])
            if post is not None:
                opened = await open_body(body, headers, held, threads)
                return await self._inference.answer(post(target, opened, self._timeout_ms))
        elif match and method == "GET":
            return await threads.run(self._describe, match)
        shown = path.decode("utf-8", "replace")
        raise InvalidArgument(f"Malformed request: {method} {shown}")

    def _describe(self, match: re.Match[bytes]) -> bytes:
        target = target_of(match)
        if not target.model:
            raise InvalidArgument("Missing model name in request.")
        if match["metadata"] != b"/metadata":
            return encode_status(self._inference.status(target))
        found = self._inference.metadata(target)
        return encode_metadata(found.spec, found.signatures)


def create_app(
    inference: Inference,
    timeout_ms: int = 30000,
    cors: Sequence[tuple[bytes, bytes]] = (),
    draining: Callable[[], bool] = lambda: False,
    metrics: Metrics | None = None,
    metrics_path: str = "",
    budget: ByteBudget | None = None,
    further: Sequence[Route] = (),
) -> Api:
    """The REST application: TF Serving's API; /healthz, /readyz and /models beside it.

    Args:
        inference: What answers.
        timeout_ms: Time allowed for a model run; 0 for no limit.
        cors: Headers of every answer under /v1/, for browsers.
        draining: Whether the server is about to stop.
        metrics: Where requests are counted.
        metrics_path: Where the counts can be read; empty for nowhere.
        budget: Counts the bytes of requests.
        further: Routes beside all these.
    """
    others = pages(inference.repository, draining, further)
    return Api(others, inference, timeout_ms, cors, metrics, metrics_path, budget)
