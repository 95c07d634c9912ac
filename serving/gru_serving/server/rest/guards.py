"""ASGI layers in front of the REST application: request records, token check, host check.

A page of another site can have its own name resolve to 127.0.0.1 (DNS rebinding). The browser then
takes this server for that site's, lets the page read every answer, and sends the site's name as
Host. Even without rebinding, a page may send a POST of plain text here, although it cannot read the
answer; browsers then name the page's site as Origin. So both Host and Origin are checked.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING

from gru_serving.codecs.json_predict import decode_error, encode_error
from gru_serving.codecs.rapidjson.writer import error as error_body
from gru_serving.config.flags import Flags
from gru_serving.errors import Code, InvalidArgument, ServingError
from gru_serving.server.tokens import REFUSAL, Tokens
from gru_serving.telemetry.metrics import Gauge
from gru_serving.telemetry.refusals import Reason, Refusals
from gru_serving.telemetry.request_record import RequestRecord
from gru_serving.telemetry.tracing import REQUEST_ID, TRACEPARENT, Identities

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_OPEN_PATHS = (b"/healthz", b"/readyz")
_MODELS = b"/v1/models"
_STATUS = {Reason.FOREIGN_HOST: 421, Reason.FOREIGN_PAGE: 403}
_REQUEST_ID, _TRACEPARENT = REQUEST_ID.encode(), TRACEPARENT.encode()
_ANY_HOST = "*"
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?")
# `name`, `1.2.3.4` or `[::1]`, each optionally with a port.
_AUTHORITY = re.compile(rb"(\[[0-9a-fA-F:.]+\]|[^\[\]:@/\s]+)(:[0-9]*)?")
_ORIGIN = re.compile(rb"https?://(.*)")
_MOST_KNOWN, _SHOWN = 256, 80


def cors_headers(flags: Flags) -> tuple[tuple[bytes, bytes], ...]:
    """Return the CORS headers of every answer; none unless the flag is set.

    They are TF Serving's. Pages may also send tokens, which TF Serving does not have: browsers send
    `Authorization` only if it is listed.
    """
    if not flags.rest_api_enable_cors_support:
        return ()
    allowed = b"Content-Type, Authorization" if flags.auth_token_file else b"Content-Type"
    return (
        (b"access-control-allow-origin", b"*"),
        (b"access-control-allow-methods", b"POST, GET"),
        (b"access-control-allow-headers", allowed),
    )


class Observed:
    """Keeps a record of every request.

    Args:
        app: Application that answers them.
        observers: Functions that get the record when an answer is out.
        identities: Ids and traces that requests get; None for neither.
        in_progress: Gauge of the requests in progress; None where nobody reads it.
        sizes: Whether to count the bytes of requests.
    """

    def __init__(
        self,
        app: ASGIApp,
        observers: Sequence[Callable[[RequestRecord], None]],
        identities: Identities | None = None,
        in_progress: Gauge | None = None,
        sizes: bool = False,
    ) -> None:
        self._app = app
        self._observers = observers
        self._identities = identities
        wanted = () if identities is None else identities.names
        self._names = {name.encode(): name for name in wanted}
        self._in_progress = in_progress
        self._sizes = sizes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request and record its outcome."""
        query = scope["query_string"]
        target = scope["raw_path"] + (b"?" + query if query else b"")
        record = RequestRecord("REST", scope["method"], target, scope.get("client"), status="")
        more: list[tuple[bytes, bytes]] = []
        if self._identities is not None:
            given: dict[str, str] = {}
            for name, value in scope["headers"]:
                if name in self._names:  # of several with one name, the first counts
                    given.setdefault(self._names[name], value.decode("latin-1"))
            self._identities.note(record, given)
            more.append((_REQUEST_ID, record.request_id.encode()))
            if record.traceparent:
                more.append((_TRACEPARENT, record.traceparent.encode()))

        async def counting_receive() -> Message:
            message = await receive()
            record.request_bytes += len(message.get("body", b""))
            return message

        def noting_send(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                record.http_status = message["status"]
                if more:
                    message["headers"] = [*message["headers"], *more]
            record.response_bytes += len(message.get("body", b""))
            return send(message)  # a coroutine of its own would take a microsecond more

        scope["record"] = record
        if self._in_progress is not None:
            self._in_progress.add("REST")
        try:
            await self._app(scope, counting_receive if self._sizes else receive, noting_send)
        finally:
            if self._in_progress is not None:
                self._in_progress.add("REST", by=-1)
            record.status = record.status or _status(record.http_status)
            record.end(self._observers)


def _status(http_status: int | None) -> str:
    """Return the canonical code of an answer in which no model was involved."""
    if http_status is None:
        return Code.CANCELLED.name
    return Code.OK.name if http_status < 400 else decode_error(http_status, b"").code.name


class TokenGuard:
    """Refuses requests without a token; health checks and CORS preflights pass.

    Args:
        app: Application that answers the others.
        tokens: Tokens that are accepted.
        refusals: Counter of the requests that are refused.
        cors: Headers of refusals, for browsers.
        open_paths: Paths beside the health checks that need no token.
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
        self._open = {*_OPEN_PATHS, *open_paths}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        path: bytes = scope["raw_path"]
        # Browsers ask with OPTIONS before they send the header. Elsewhere, as for the metrics,
        # OPTIONS may be answered like GET.
        preflight = scope["method"] == "OPTIONS" and path.lower().startswith(_MODELS)
        is_open = path in self._open or preflight
        # If the header occurs twice, a proxy may have checked the other one.
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if is_open or (len(given) == 1 and self._tokens.allow(given[0])):
            await self._app(scope, receive, send)
            return
        self._refusals.note(Reason.NO_TOKEN, REFUSAL)
        status, body = encode_error(ServingError(REFUSAL, Code.UNAUTHENTICATED))
        await _refuse(send, status, body, (b"www-authenticate", b"Bearer"), *self._cors)


class Hosts:
    """The host names that the flags allow.

    A server on loopback accepts only loopback names. Elsewhere it accepts all names, because the
    operator of the network assigns them. `--allowed_hosts` adds names, or asks for the check.

    Args:
        flags: `--bind_address`, `--allowed_hosts` and whether there is CORS.

    Raises:
        InvalidArgument: `--allowed_hosts` is no list of names.
    """

    def __init__(self, flags: Flags) -> None:
        self._allowed = allowed_hosts(flags.allowed_hosts)
        self._local = is_loopback(flags.bind_address)
        self._origins = flags.rest_api_enable_cors_support

    def wrap(self, app: ASGIApp, refusals: Refusals | None = None) -> ASGIApp:
        """Wrap the REST application in a guard if one is wanted."""
        if _ANY_HOST in self._allowed or not (self._local or self._allowed):
            return app
        return HostGuard(
            app,
            self._allowed,
            addresses=not self._local,
            origins=self._origins,
            refusals=refusals or Refusals(),
        )


def allowed_hosts(text: str) -> frozenset[str]:
    """Parse the names in the value of `--allowed_hosts`.

    Raises:
        InvalidArgument: A name is no host name.
    """
    names = frozenset(name for part in text.split(",") if (name := part.strip().lower()))
    for name in sorted(names - {_ANY_HOST}):
        if not _NAME.fullmatch(name) and not _is_address(name):
            raise InvalidArgument(
                "--allowed_hosts: expected host names separated by commas, without scheme and "
                f"port, or * for all; got {name!r}"
            )
    return names


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine itself: localhost, 127.0.0.0/8 or ::1."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class HostGuard:
    """Refuses requests with an unexpected Host or Origin header.

    Requests of HTTP/1.0 without a Host pass, since browsers always send one. OPTIONS passes from
    any origin, as it runs nothing and reveals nothing.

    Args:
        app: Application that answers the others.
        allowed: Names besides loopback's.
        addresses: Whether any IP address passes as Host: pages have names, and a probe calls a
            container by its address.
        origins: Whether pages of all origins may ask.
        refusals: Counter of the requests that are refused.
    """

    def __init__(
        self,
        app: ASGIApp,
        allowed: frozenset[str],
        addresses: bool,
        origins: bool,
        refusals: Refusals,
    ) -> None:
        self._app = app
        self._allowed = allowed
        self._addresses = addresses
        self._origins = origins
        self._refusals = refusals
        self._known: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        for name, value in scope["headers"]:
            if name == b"host":
                # Clients have few names for a server, so a look-up suffices for most requests.
                if value not in self._known and not self._expects(value):
                    await self._refuse(
                        send,
                        Reason.FOREIGN_HOST,
                        f"Host {_shown(value)} is not a name of this server, which answers to "
                        f"{self._names()}; --allowed_hosts=NAME adds a name",
                    )
                    return
            elif name == b"origin" and not self._origins and scope["method"] != "OPTIONS":
                origin = _ORIGIN.fullmatch(value)
                if origin is None or not self._expects(origin[1]):
                    await self._refuse(
                        send,
                        Reason.FOREIGN_PAGE,
                        f"pages of {_shown(value)} may not send requests to this server; "
                        "--rest_api_enable_cors_support allows pages of all sites, "
                        "--allowed_hosts=NAME those of one",
                    )
                    return
        await self._app(scope, receive, send)

    async def _refuse(self, send: Send, reason: Reason, text: str) -> None:
        self._refusals.note(reason, text)
        await _refuse(send, _STATUS[reason], error_body(text))

    def _expects(self, authority: bytes) -> bool:
        match = _AUTHORITY.fullmatch(authority)
        if match is None:
            return False
        host = match[1].decode("latin-1").lower().strip("[]")
        good = is_loopback(host) or host in self._allowed or (self._addresses and _is_address(host))
        if good and len(self._known) < _MOST_KNOWN:
            self._known.add(authority)
        return good

    def _names(self) -> str:
        names = ["localhost", "127.0.0.1", "[::1]", *sorted(self._allowed)]
        return ", ".join([*names, "any IP address"] if self._addresses else names)


async def _refuse(send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    """Answer a request in place of the application."""
    known = (b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))
    start = {"type": "http.response.start", "status": status, "headers": [*known, *headers]}
    await send(start)
    await send({"type": "http.response.body", "body": body})


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _shown(value: bytes) -> str:
    return ascii(value[:_SHOWN].decode("latin-1"))
