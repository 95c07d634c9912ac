"""The last phase of a REST server: it refuses requests that it would leave unread."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from gru_serving.codecs.json_predict import encode_error
from gru_serving.errors import Unavailable
from gru_serving.server.quiet_period import STOPPING, QuietPeriod
from gru_serving.telemetry.refusals import Reason, Refusals

_API = b"/v1/"


class DrainGate:
    """A gate before the application; once closed, it refuses requests with 503 and closes.

    A connection that is closed at once may hold a request that nobody has read. Its sender sees a
    broken connection, and cannot know that the request was never begun; a 503 says so, and a proxy
    may send the request to another replica.

    Args:
        app: Answers until then, and the health checks after.
        refusals: Counter of the requests that are refused.
    """

    def __init__(self, app: ASGIApp, refusals: Refusals | None = None) -> None:
        self._app = app
        self._refusals = refusals or Refusals()
        self._quiet = QuietPeriod()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        path: bytes = scope["raw_path"]
        if not self._quiet.begun or not path.lower().startswith(_API):
            await self._app(scope, receive, send)
            return
        # To its end: a connection closed over unread bytes is reset, and the answer may be lost.
        while (await receive()).get("more_body", False):
            pass
        self._quiet.note()
        self._refusals.note(Reason.STOPPING, STOPPING)
        status, body = encode_error(Unavailable(STOPPING))
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def close(self) -> None:
        """Refuse new requests; returns when no more arrive, or after two seconds."""
        await self._quiet.pass_by()
