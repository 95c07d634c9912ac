"""The exchange of REST messages, within a time limit and a limit on the size of answers."""

from __future__ import annotations

import os
import ssl
import time
import zlib
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import urlsplit

import httpcore
import httpx

from gru_serving.client.errors import (
    closed_connection,
    lost_replica,
    no_server,
    refused_certificate,
    refused_token,
    too_large_answer,
    too_slow,
    unexpected_answer,
)
from gru_serving.client.options import ClientOptions
from gru_serving.client.rest.client import RestMessage
from gru_serving.codecs.json_predict import decode_error, read_json
from gru_serving.errors import Code, InvalidArgument, ServingError

# A peer may also accept a piece byte by byte, and each write would get all of the remaining time.
_SENT_PIECE = 1 << 18
_CONNECTIONS, _IDLE_CONNECTIONS, IDLE_SECONDS = 100, 20, 5.0  # as httpx has them


class DeadlineTransport(httpx.HTTPTransport):
    """A transport for `httpx.Client` that applies a request's timeout to the whole call.

    httpx applies its timeout to each read and write, so a server that sends a byte a second, or
    endless `100 Continue` lines, could take forever. Here a request has a deadline, and every read
    and write gets the time left until then.

    Args:
        context: TLS settings, for https.
    """

    def __init__(self, context: ssl.SSLContext | None) -> None:
        super().__init__(verify=context or False, trust_env=False)
        # httpx has no public way to replace the network backend of its pool.
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=_CONNECTIONS,
            max_keepalive_connections=_IDLE_CONNECTIONS,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=_Network(),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the body of the answer is read by the caller."""
        seconds = request.extensions["timeout"]["read"]
        deadline = time.monotonic() + seconds
        # httpcore passes these on to the network unchanged, except for the first.
        times = {"pool": seconds, **dict.fromkeys(("connect", "read", "write"), deadline)}
        request.extensions = {**request.extensions, "timeout": times}
        return super().handle_request(request)


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
        for start in range(0, len(buffer), _SENT_PIECE):
            piece = buffer[start : start + _SENT_PIECE]
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


ENCODING = "gzip"
"""The encoding that `AnswerBody` unpacks, sent as Accept-Encoding."""

_PIECE = 1 << 20
_GZIP = 16 + zlib.MAX_WBITS


class UnpackError(Exception):
    """A body is not what its Content-Encoding says."""


class AnswerBody:
    """The body of an answer, assembled piece by piece as it arrives.

    Args:
        url: URL of the server, for messages.
        encoding: The answer's Content-Encoding.
        announced: Content-Length of the answer; None where it has none.
        most: The largest body, unpacked, in bytes.

    Raises:
        ResourceExhausted: The announced length exceeds `most`.
        UnpackError: The answer has an encoding that was not asked for.
    """

    def __init__(self, url: str, encoding: str, announced: str | None, most: int) -> None:
        self._url, self._most = url, most
        self._content = bytearray()
        self._packed = encoding.lower() == ENCODING
        if not self._packed and encoding.lower() not in ("", "identity"):
            raise UnpackError(f"Content-Encoding {encoding[:80]!r}")
        self._unpacker = zlib.decompressobj(_GZIP)
        if announced is not None and announced.isdecimal() and int(announced[:20]) > most:
            raise too_large_answer(self._url, self._most)

    def add(self, piece: bytes) -> None:
        """Take the next piece.

        Raises:
            ResourceExhausted: The body is larger than allowed.
            UnpackError: The body cannot be unpacked.
        """
        if not self._packed:
            self._append(piece)
            return
        try:
            while piece and not self._unpacker.eof:
                self._append(self._unpacker.decompress(piece, _PIECE))
                piece = self._unpacker.unconsumed_tail
        except zlib.error as error:
            raise UnpackError(str(error)) from None

    def whole(self) -> bytes:
        """Return the whole body after the last piece.

        Raises:
            UnpackError: The packed body is cut short.
        """
        if self._packed:
            try:
                while rest := self._unpacker.decompress(b"", _PIECE):
                    self._append(rest)
            except zlib.error as error:
                raise UnpackError(str(error)) from None
            if self._content and not self._unpacker.eof:
                raise UnpackError("it is cut short")
        return bytes(self._content)

    def _append(self, piece: bytes) -> None:
        if len(self._content) + len(piece) > self._most:
            raise too_large_answer(self._url, self._most)
        self._content += piece


_OF_GATEWAYS = (401, 403, 429, 502, 503, 504)
_SAID_BYTES = 1024
"""Bytes of an answer without JSON that may say what happened."""
# Texts of errors for a server that disconnects before or during its answer.
_LOST_CONNECTION = ("disconnected", "peer closed connection", "Not enough data")


class Http:
    """Common base of the blocking and the asynchronous REST connection.

    Args:
        url: URL of the server.
        options: Options of `connect`.

    Attributes:
        url: URL as given.
        headers: Headers of every request.
        context: TLS settings; None for a URL without TLS.
    """

    def __init__(self, url: str, options: ClientOptions) -> None:
        self.url = url
        self.headers = {"Content-Type": "application/json", "Accept-Encoding": ENCODING}
        if options.token is not None:
            self.headers["Authorization"] = f"Bearer {options.token}"
        self.context = options.ssl_context() if url.startswith("https://") else None
        self._most = options.max_answer_bytes
        self._has_token = options.token is not None
        self._has_cert = self.context is not None and options.cert_file is not None

    def unreachable(
        self, error: Exception, said: object, *, broken: bool, closed: bool
    ) -> ServingError:
        """Make the error for an exchange without an answer.

        Args:
            error: Error of the HTTP library.
            said: What the library, or the system, says about it.
            broken: Whether the answer broke the rules of HTTP.
            closed: Whether the connection was open when it ended.
        """
        reason = " ".join(str(said).split()) or type(error).__name__
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLError) or "[SSL" in str(cause):
                return refused_certificate(self.url, reason)
            cause = cause.__cause__ or cause.__context__
        if broken and not any(words in reason for words in _LOST_CONNECTION):
            return unexpected_answer(self.url, f"no HTTP ({reason})")
        if not self._has_cert and (broken or closed):
            return closed_connection(self.url, reason)
        port = urlsplit(self.url).port or 8501
        return no_server(self.url, reason, f"rest_api_port={port}")

    def not_unpacked(self, error: UnpackError) -> ServingError:
        """Make the error for a body that does not match its Content-Encoding."""
        return unexpected_answer(self.url, f"a body that cannot be unpacked ({error})")

    def body(self, headers: Mapping[str, str]) -> AnswerBody:
        """Make an empty `AnswerBody` for an answer with these headers."""
        encoding, length = headers.get("content-encoding", ""), headers.get("content-length")
        return AnswerBody(self.url, encoding, length, self._most)

    def content(self, status: int, headers: Mapping[str, str], body: bytes) -> bytes:
        """Return the body of a successful answer; raise the error of any other.

        Raises:
            ServingError: The answer is an error, or none of TF Serving's API.
        """
        if status == 200:
            return body
        try:
            known = "error" in read_json(body)
        except (ValueError, TypeError):
            known = False
        if status == HTTPStatus.INTERNAL_SERVER_ERROR and not known:
            lost = lost_replica(self.url, body[:_SAID_BYTES].decode("latin-1"))
            if lost is not None:
                raise lost
        if not known and status not in _OF_GATEWAYS:
            kind = headers.get("content-type", "no content type")
            raise unexpected_answer(self.url, f"HTTP status {status} with {kind[:80]}")
        error = decode_error(status, body)
        if error.code in (Code.UNAUTHENTICATED, Code.PERMISSION_DENIED):
            raise refused_token(
                self.url, error.code, error.message if known else f"{status}", self._has_token
            )
        raise error


class RestConnection(Http):
    """Sends REST messages."""

    def __init__(self, url: str, options: ClientOptions) -> None:
        super().__init__(url, options)
        self._process = os.getpid()
        self._http = self._open()

    def send(self, message: RestMessage, timeout: float) -> bytes:
        """Return the body of the answer."""
        url = f"{self.url}{message.path}"
        try:
            with self._own().stream(
                message.method, url, content=message.body, timeout=timeout
            ) as response:
                body = self.body(response.headers)
                for part in response.iter_raw():
                    body.add(part)
                content = body.whole()
        except httpx.TimeoutException:
            raise too_slow(self.url, timeout) from None
        except httpx.TransportError as error:
            broken = isinstance(error, httpx.RemoteProtocolError)
            closed = isinstance(error, httpx.ReadError)
            raise self.unreachable(error, error, broken=broken, closed=closed) from None
        except UnpackError as error:
            raise self.not_unpacked(error) from None
        except httpx.InvalidURL as error:
            raise InvalidArgument(f"url: {error}; got {self.url!r}") from None
        return self.content(response.status_code, response.headers, content)

    def close(self) -> None:
        """Close the connections."""
        self._own().close()

    def _open(self) -> httpx.Client:
        return httpx.Client(
            transport=DeadlineTransport(self.context),
            headers=self.headers,
            trust_env=False,
            # Cookies are not kept: model servers do not use them.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )

    def _own(self) -> httpx.Client:
        """Return the connections of this process.

        After a fork, parent and child would read each other's answers on shared ones.
        """
        if self._process != os.getpid():
            self._process, self._http = os.getpid(), self._open()
        return self._http
