"""uvicorn's HTTP/1 protocol, with limits on slow and endless requests."""

from __future__ import annotations

import asyncio
import re
from enum import Enum
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# The host and port of a target that is a whole URL.
_AUTHORITY = re.compile(rb"[a-zA-Z][a-zA-Z0-9+.-]*://([^/?#]*)")
# Bytes up to which two writes are copied into one.
_JOINED = 1 << 16


class _Awaited(Enum):
    """The part of a request that a connection has to send next."""

    HEAD = 1
    BODY = 2
    NOTHING = 3  # the answer is due


class AnswerTransport:
    """A transport that sends the head of an answer together with what follows it.

    uvicorn writes the two one after the other, and uvloop sends each at once: a second system call,
    and a second packet to wake the client for.

    It also takes what is written after its end, as asyncio's own transports do. uvloop's raises
    RuntimeError, and between a client's reset and `connection_lost` uvicorn does not know of the
    end yet: it would log every such client as a failure of the application.

    Args:
        transport: Of the connection.
        loop: Sends what nothing follows.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send together with the next write, if there is one before the loop's next turn."""
        held = self._held
        if not held and len(data) <= _JOINED:
            self._held = data
            self._loop.call_soon(self._flush)
            return
        if len(held) + len(data) <= _JOINED:
            self._held = b""
            data = held + data
        else:
            self._flush()
        self._send(data)

    def close(self) -> None:
        """Send what is held, and end the connection."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        held, self._held = self._held, b""
        if held:
            self._send(held)

    def _send(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)


class PatientProtocol(HttpToolsProtocol):
    """Closes connections that occupy a descriptor without sending a request.

    uvicorn itself waits forever, even before tokens are checked: a few hundred unfinished requests
    would occupy the whole server.

    Attributes:
        seconds: For a head to come whole, and between two parts of a body.
        head_bytes: The largest head.
    """

    seconds = 50.0
    head_bytes = 1 << 20

    _awaited = _Awaited.HEAD
    _received = 0
    _refused = False
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        joining = AnswerTransport(transport, self.loop)
        super().connection_made(joining)  # type: ignore[arg-type]
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._disarm()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """The first bytes of a head are there."""
        self._awaited, self._received = _Awaited.HEAD, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._awaited = _Awaited.BODY
        self._disarm()
        if self._refused or not self._has_host():
            if not self._refused:
                self._refused = True
                self.send_400_response("A request of HTTP/1.1 needs one Host header.")
            return
        super().on_headers_complete()

    def _has_host(self) -> bool:
        """Whether the request names one host; a target with a host counts for the header."""
        hosts = [at for at, (name, _) in enumerate(self.headers) if name == b"host"]
        target = _AUTHORITY.match(self.url)
        if target is not None and len(hosts) == 1:
            self.headers[hosts[0]] = (b"host", target[1])
        return len(hosts) == 1 or (not hosts and self.parser.get_http_version() == "1.0")

    def on_body(self, body: bytes) -> None:
        """A part of the body is there."""
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._awaited = _Awaited.NOTHING
        self._disarm()
        if not self._refused:
            super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes and update which part is missing."""
        super().data_received(data)
        if self._awaited is _Awaited.NOTHING and not self._answered():
            return
        if self._awaited is _Awaited.BODY:
            self._disarm()
        else:
            self._received += len(data)
            if self._received > self.head_bytes:
                self.send_400_response("The header of the request is too large.")
                return
        if self._timer is None:
            self._arm()

    def _answered(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _arm(self) -> None:
        self._timer = self.loop.call_later(self.seconds, self._give_up)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        self.transport.close()
