"""Middleware of the REST application: token check and request records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gru_serving.codecs.json_predict import decode_error, encode_error
from gru_serving.errors import Code, ServingError
from gru_serving.server.tokens import REFUSAL, Tokens
from gru_serving.telemetry.refusals import Reason, Refusals
from gru_serving.telemetry.request_record import CURRENT, RequestRecord

_OPEN = (b"/healthz", b"/readyz")
_API = b"/v1/models"


class TokenGuard:
    """Refuses requests without a token; health checks and CORS preflights pass.

    Args:
        app: Answers the others.
        tokens: Those that are good.
        refusals: Counter of the requests that are refused.
        cors: Headers of refusals, for browsers.
        open_paths: Further paths that need none.
    """

    def __init__(
        self,
        app: ASGIApp,
        tokens: Tokens,
        refusals: Refusals,
        cors: Sequence[tuple[bytes, bytes]] = (),
        open_paths: Collection[bytes] = (),
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._refusals = refusals
        self._cors = cors
        self._open = {*_OPEN, *open_paths}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        path: bytes = scope["raw_path"]
        # Browsers ask with OPTIONS before they send the header. Elsewhere, as at the metrics,
        # OPTIONS may be answered as GET is.
        preflight = scope["method"] == "OPTIONS" and path.lower().startswith(_API)
        is_open = path in self._open or preflight
        # Of two, a proxy may have checked the other one.
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if is_open or (len(given) == 1 and self._tokens.allow(given[0])):
            await self._app(scope, receive, send)
            return
        self._refusals.note(Reason.NO_TOKEN, REFUSAL)
        status, body = encode_error(ServingError(REFUSAL, Code.UNAUTHENTICATED))
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"www-authenticate", b"Bearer"),
            *self._cors,
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class Observed:
    """Keeps a record of every request.

    Args:
        app: Answers them.
        observers: Told when an answer is out.
    """

    def __init__(self, app: ASGIApp, observers: Sequence[Callable[[RequestRecord], None]]) -> None:
        self._app = app
        self._observers = observers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request and record its outcome."""
        query = scope["query_string"]
        target = scope["raw_path"] + (b"?" + query if query else b"")
        record = RequestRecord(
            "REST",
            scope["method"],
            route=target.decode("utf-8", "replace"),
            client="{}:{}".format(*scope["client"]) if scope.get("client") else "",
            status="",
        )

        async def counting_receive() -> Message:
            message = await receive()
            record.request_bytes += len(message.get("body", b""))
            return message

        async def counting_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.http_status = message["status"]
            record.response_bytes += len(message.get("body", b""))
            await send(message)

        CURRENT.set(record)
        try:
            await self._app(scope, counting_receive, counting_send)
        finally:
            record.status = record.status or _status(record.http_status)
            record.end(self._observers)


def _status(http_status: int | None) -> str:
    """The canonical code of an answer that no model had a part in."""
    if http_status is None:
        return Code.CANCELLED.name
    return Code.OK.name if http_status < 400 else decode_error(http_status, b"").code.name
