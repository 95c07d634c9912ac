"""The REST listener: uvicorn with limits on slow and endless requests, from port to drain."""

import asyncio
import contextlib
import logging
import re
import socket
from collections.abc import Iterator
from enum import Enum
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gru_serving.config.flags import Flags
from gru_serving.inference.service import Inference
from gru_serving.server.additions import Additions
from gru_serving.server.byte_budget import ByteBudget
from gru_serving.server.listening import bind, host_port, port_error, tls_context
from gru_serving.server.playground.routes import playground_routes
from gru_serving.server.rest.app import Api
from gru_serving.server.rest.guards import cors_headers
from gru_serving.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

_BACKLOG = 2048
# The host and port of a target that is a complete URL.
_AUTHORITY = re.compile(rb"[a-zA-Z][a-zA-Z0-9+.-]*://([^/?#]*)")
# Bytes up to which two writes are joined into one.
_MAX_JOINED_BYTES = 1 << 16


class RestListener:
    """The REST listener, which holds its port from the start but listens only when told to.

    Args:
        flags: Port, TLS, timeout, CORS.

    Raises:
        ServingError: The port is taken, or the TLS file is wrong.
    """

    def __init__(self, flags: Flags) -> None:
        self._flags = flags
        path, flag = flags.rest_ssl_config_file, "rest_ssl_config_file"
        self._tls = tls_context(path, flag) if path else None
        self._socket = bind(
            flags.bind_address, flags.rest_api_port, "rest_api_port", flags.workers > 1
        )
        self._api: Api | None = None
        self._server: uvicorn.Server | None = None
        self._serving: asyncio.Future[None] | None = None

    async def start(
        self,
        inference: Inference,
        metrics: Metrics,
        metrics_path: str,
        budget: ByteBudget,
        additions: Additions,
    ) -> None:
        """Open the port.

        Raises:
            Unavailable: Another process listens on the port.
        """
        flags = self._flags
        try:
            # Connections inherit this option, so that remaining ones do not block the next server.
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.listen(_BACKLOG)
        except OSError as error:
            host, port = flags.bind_address, flags.rest_api_port
            raise port_error(host, port, "rest_api_port", error) from None
        self._api = Api(
            inference,
            flags.rest_api_timeout_in_ms,
            cors_headers(flags),
            metrics,
            metrics_path,
            budget,
            additions.refusals,
            playground_routes(flags, metrics_path, inference.repository),
            flags.strict_integers,
        )
        config = uvicorn.Config(
            additions.wrap(self._api),
            http=PatientProtocol,
            log_config=None,
            ws="none",
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            # Anybody can send X-Forwarded-For, so the address in the logs is that of the
            # connection.
            proxy_headers=False,
            timeout_keep_alive=flags.rest_keep_alive_seconds,
            backlog=_BACKLOG,
        )
        config.load()
        config.ssl = self._tls
        self._server = _RestServer(config)
        self._serving = asyncio.ensure_future(self._server.serve(sockets=[self._socket]))
        host = "localhost" if flags.bind_address == "127.0.0.1" else flags.bind_address
        log.info("Exporting HTTP/REST API at:%s ...", host_port(host, flags.rest_api_port))

    async def stop(self, seconds: float) -> None:
        """Accept no new requests and give those in progress time to finish."""
        if self._api is not None:
            self._api.announce_stop()
        if self._api is not None and self._server is not None and self._serving is not None:
            await self._api.stop()
            self._server.config.timeout_graceful_shutdown = int(seconds)
            self._server.should_exit = True
            await self._serving

    def close(self) -> None:
        """Release the port."""
        self._socket.close()


class _RestServer(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone: they concern the whole process, not one of its listeners."""
        yield


class _Awaited(Enum):
    """The part of a request that a connection must send next."""

    HEAD = 1
    BODY = 2
    NOTHING = 3  # the answer is due


class AnswerTransport:
    """A transport that sends the head of an answer together with what follows it.

    uvicorn writes head and body separately, and uvloop sends each at once, which costs a second
    system call and a second packet that wakes the client.

    It also accepts writes after its end, as asyncio's own transports do. uvloop's raises
    RuntimeError, and between a client's reset and `connection_lost` uvicorn does not know of the
    end yet, so it would log every such client as a failure of the application.

    Args:
        transport: Transport of the connection.
        loop: Event loop that sends what nothing follows.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send together with the next write, if it comes before the next iteration of the loop."""
        if not self._held and len(data) <= _MAX_JOINED_BYTES:
            self._held = data
            self._loop.call_soon(self._flush)
            return
        if len(self._held) + len(data) > _MAX_JOINED_BYTES:
            self._flush()
        self._held += data
        self._flush()

    def close(self) -> None:
        """Send what is held, and close the connection."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        held, self._held = self._held, b""
        if held and not self._transport.is_closing():
            self._transport.write(held)


class PatientProtocol(HttpToolsProtocol):
    """A protocol that closes connections which hold a descriptor without sending a request.

    uvicorn itself waits forever, even before tokens are checked, so a few hundred unfinished
    requests would occupy the whole server.

    Attributes:
        seconds: Time for a head to come whole, and between two parts of a body.
        head_bytes: Size of the largest head.
    """

    seconds = 50.0
    head_bytes = 1 << 20

    _awaited = _Awaited.HEAD
    _received = 0
    _refused = False
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for a request."""
        joining = AnswerTransport(transport, self.loop)
        super().connection_made(joining)  # type: ignore[arg-type]
        self._wait(True)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting for the client."""
        self._wait(False)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Note that the first bytes of a head have arrived."""
        self._awaited, self._received = _Awaited.HEAD, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note that the head is complete."""
        self._awaited = _Awaited.BODY
        self._wait(False)
        if self._refused:
            return
        hosts = 0
        for at, (name, _) in enumerate(self.headers):
            if name == b"host":
                hosts += 1
                if target := _AUTHORITY.match(self.url):
                    self.headers[at] = (b"host", target[1])  # a target with a host counts
        if hosts == 1 or (not hosts and self.parser.get_http_version() == "1.0"):
            super().on_headers_complete()
            return
        self._refused = True
        self.send_400_response("A request of HTTP/1.1 needs one Host header.")

    def on_body(self, body: bytes) -> None:
        """Note that a part of the body has arrived."""
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that the request is complete."""
        self._awaited = _Awaited.NOTHING
        self._wait(False)
        if not self._refused:
            super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, and update which part is missing."""
        super().data_received(data)
        if self._awaited is _Awaited.NOTHING and not (
            self.cycle is None or self.cycle.response_complete
        ):
            return
        if self._awaited is not _Awaited.BODY:
            self._received += len(data)
            if self._received > self.head_bytes:
                self.send_400_response("The header of the request is too large.")
                return
        if self._timer is None or self._awaited is _Awaited.BODY:
            self._wait(True)

    def _wait(self, waiting: bool) -> None:
        """Give the client time from now on, or stop waiting for it."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(self.seconds, self._give_up) if waiting else None

    def _give_up(self) -> None:
        self._timer = None
        self.transport.close()
