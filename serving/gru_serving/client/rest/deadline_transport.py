"""HTTP over connections that keep a deadline for the whole call.

httpx allows its timeout for every single read and write: a server that sends a byte a second, or
endless `100 Continue` lines, may take forever. Here a request has a deadline, and every read and
write gets the time that is left until then.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore
import httpx

# A peer may also take a piece byte by byte, each with all of the remaining time.
_PIECE = 1 << 18
_CONNECTIONS, _IDLE_CONNECTIONS, _IDLE_SECONDS = 100, 20, 5.0  # as httpx has them


class DeadlineTransport(httpx.BaseTransport):
    """A transport for `httpx.Client` that takes a request's timeout for that of the whole call.

    Args:
        context: For https.
    """

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=_CONNECTIONS,
            max_keepalive_connections=_IDLE_CONNECTIONS,
            keepalive_expiry=_IDLE_SECONDS,
            network_backend=_Network(),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the body of the answer is still to be read."""
        seconds = request.extensions["timeout"]["read"]
        deadline = time.monotonic() + seconds
        url = request.url
        # httpcore passes these on to the network unchanged, except the first.
        timeouts = {
            "pool": seconds,
            **dict.fromkeys(("connect", "read", "write"), deadline),
        }
        with _as_httpx():
            answer = self._pool.handle_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(
                        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions={"timeout": timeouts},
                )
            )
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer.stream))

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    """The rest of an answer."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        with _as_httpx():
            yield from self._stream

    def close(self) -> None:
        self._stream.close()


class _Network(httpcore.NetworkBackend):
    """Connections with absolute deadlines, as values of `time.monotonic()`."""

    def __init__(self) -> None:
        self._network = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        left = _left(timeout, httpcore.ConnectTimeout)
        return _Stream(
            self._network.connect_tcp(host, port, left, local_address, socket_options or ())
        )


class _Stream(httpcore.NetworkStream):
    """One connection; see `_Network`."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE):
            piece = buffer[start : start + _PIECE]
            self._stream.write(piece, _left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = _left(timeout, httpcore.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(deadline: float | None, late: type[Exception]) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise late("the call did not finish in time")
    return left


@contextmanager
def _as_httpx() -> Iterator[None]:
    """Within, errors are those of httpx, which has httpcore's under the same names."""
    try:
        yield
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise getattr(httpx, type(error).__name__)(str(error)) from error
    except httpcore.UnsupportedProtocol as error:
        raise httpx.UnsupportedProtocol(str(error)) from error
