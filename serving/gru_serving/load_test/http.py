"""A bare HTTP/1.1 connection for load tests: bytes out, the status of the answer back."""

from __future__ import annotations

import asyncio
import ssl
from urllib.parse import urlsplit

import httptools

from gru_serving.client.options import ClientOptions


class HttpConnection:
    """One keep-alive connection, opened when first used and again after it broke.

    A full HTTP client costs more time per request than a server of small models; a load
    generator would mostly measure itself.

    Args:
        url: `http://host:port` or `https://host:port`.
        timeout: Seconds allowed for one request.
        options: How to connect.
    """

    def __init__(self, url: str, timeout: float, options: ClientOptions) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._ssl: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._ssl = options.ssl_context()
        self._timeout = timeout
        self._protocol: _Protocol | None = None

    async def ask(self, request: bytes) -> str:
        """Send a whole request; returns "OK", "HTTP <status>", "timeout" or "connection lost"."""
        try:
            status = await asyncio.wait_for(self._ask(request), self._timeout)
        except TimeoutError:
            self._drop()
            return "timeout"
        except (OSError, httptools.HttpParserError):
            self._drop()
            return "connection lost"
        return "OK" if status == 200 else f"HTTP {status}"

    async def _ask(self, request: bytes) -> int:
        protocol = self._protocol
        if protocol is None or protocol.lost:
            loop = asyncio.get_running_loop()
            _, protocol = await loop.create_connection(
                _Protocol, self._host, self._port, ssl=self._ssl
            )
            self._protocol = protocol
        return await protocol.ask(request)

    def _drop(self) -> None:
        if self._protocol is not None:
            self._protocol.close()
            self._protocol = None


class _Protocol(asyncio.Protocol):
    """Reads answers; the on_... methods are called by the parser."""

    def __init__(self) -> None:
        self.lost = False
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[int] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(error)

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        self._fail(ConnectionResetError(str(error)))

    def on_message_complete(self) -> None:
        """The answer is whole."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(self._parser.get_status_code())
        if not self._parser.should_keep_alive():
            self.close()
        self._parser = httptools.HttpResponseParser(self)

    async def ask(self, request: bytes) -> int:
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        self.lost = True
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
