"""The exchange of REST messages, within a time limit and a limit on the size of answers."""

import asyncio
import io
import os
import ssl
import threading
import weakref
import zlib
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future
from http import HTTPStatus
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

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

_IDLE_SECONDS = 5.0
# aiohttp warns about longer bodies given as bytes, since it would copy them in one turn of the
# event loop.
_STREAMED_BYTES = 1 << 20

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
_LOST_CONNECTION = ("disconnected", "Not enough data")


class AsyncRestConnection:
    """Sends REST messages from an event loop, each over a connection of its own.

    Args:
        url: URL of the server.
        options: Options of `connect`.
    """

    def __init__(self, url: str, options: ClientOptions) -> None:
        self._url = url
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": ENCODING}
        if options.token is not None:
            self._headers["Authorization"] = f"Bearer {options.token}"
        self._context = options.ssl_context() if url.startswith("https://") else None
        self._most = options.max_answer_bytes
        self._has_token = options.token is not None
        self._has_cert = self._context is not None and options.cert_file is not None
        self._session: aiohttp.ClientSession | None = None

    async def send(self, message: RestMessage, timeout: float) -> bytes:
        """Return the body of the answer."""
        if self._session is None:
            self._session = self._open()  # a session belongs to the loop that runs now
        data = message.body
        try:
            url = URL(f"{self._url}{message.path}", encoded=True)
            async with (
                asyncio.timeout(timeout),
                self._session.request(
                    message.method,
                    url,
                    data=io.BytesIO(data)
                    if data is not None and len(data) > _STREAMED_BYTES
                    else data,
                    allow_redirects=False,
                ) as response,
            ):
                encoding = response.headers.get("content-encoding", "")
                length = response.headers.get("content-length")
                body = AnswerBody(self._url, encoding, length, self._most)
                async for part in response.content.iter_any():
                    body.add(part)
                content = body.whole()
        except TimeoutError:
            raise too_slow(self._url, timeout) from None
        except UnpackError as error:
            said = f"a body that cannot be unpacked ({error})"
            raise unexpected_answer(self._url, said) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            of_exchange = isinstance(error, aiohttp.ClientError | OSError)
            if isinstance(error, aiohttp.InvalidURL) or not of_exchange:
                raise InvalidArgument(f"url: {error}; got {self._url!r}") from None
            raise self._unreachable(error) from None
        return self._content(response.status, response.headers, content)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            # The client itself limits the number of calls in flight.
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=_IDLE_SECONDS, ssl=self._context or True
            ),
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),  # a model server needs none
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )

    def _unreachable(self, error: Exception) -> ServingError:
        """Make the error for an exchange without an answer."""
        said: object = error
        if isinstance(error, aiohttp.ClientConnectorError):
            said = error.os_error
        elif isinstance(error, aiohttp.ClientResponseError):
            said = error.message
        reason = " ".join(str(said).split()) or type(error).__name__
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLError) or "[SSL" in str(cause):
                return refused_certificate(self._url, reason)
            cause = cause.__cause__ or cause.__context__
        broken = not isinstance(error, aiohttp.ClientConnectionError | OSError)
        if broken and not any(words in reason for words in _LOST_CONNECTION):
            return unexpected_answer(self._url, f"no HTTP ({reason})")
        if not self._has_cert and not isinstance(error, aiohttp.ClientConnectorError):
            return closed_connection(self._url, reason)
        port = urlsplit(self._url).port or 8501
        return no_server(self._url, reason, f"rest_api_port={port}")

    def _content(self, status: int, headers: Mapping[str, str], body: bytes) -> bytes:
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
            lost = lost_replica(self._url, body[:_SAID_BYTES].decode("latin-1"))
            if lost is not None:
                raise lost
        if not known and status not in _OF_GATEWAYS:
            kind = headers.get("content-type", "no content type")
            raise unexpected_answer(self._url, f"HTTP status {status} with {kind[:80]}")
        error = decode_error(status, body)
        if error.code in (Code.UNAUTHENTICATED, Code.PERMISSION_DENIED):
            raise refused_token(
                self._url, error.code, error.message if known else f"{status}", self._has_token
            )
        raise error


class _LoopThread:
    """An event loop in a thread of its own, with the connections that belong to it."""

    def __init__(self, connection: AsyncRestConnection) -> None:
        self.process, self.loop = os.getpid(), asyncio.new_event_loop()
        self._connection = connection
        self._thread = threading.Thread(target=self._serve, name="rest", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the connections and end the thread, unless this is a fork."""
        if self.process != os.getpid() or self.loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._end(), self.loop)
        if self._thread is not threading.current_thread():  # where garbage may be collected, too
            self._thread.join()

    def _serve(self) -> None:
        self.loop.run_forever()
        self.loop.close()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._connection.close()
        self.loop.stop()


class RestConnection:
    """Sends REST messages from any thread, through an event loop in a thread of its own.

    The thread begins with the first message.

    Args:
        url: URL of the server.
        options: Options of `connect`.
    """

    def __init__(self, url: str, options: ClientOptions) -> None:
        self._url, self._options = url, options
        self._connection = AsyncRestConnection(url, options)
        self._running: _LoopThread | None = None
        self._lock = threading.Lock()
        self._closed = False

    def send(self, message: RestMessage, timeout: float) -> bytes:
        """Return the body of the answer.

        Raises:
            RuntimeError: The connection was closed before.
        """
        answer = self._asked(message, timeout)
        try:
            return answer.result()
        except CancelledError:
            text = f"the client of {self._url} was closed during the call"
            raise ServingError(text, Code.CANCELLED) from None
        except BaseException:  # such as Ctrl-C
            answer.cancel()
            raise

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            self._closed = True
            running, self._running = self._running, None
        if running is not None:
            running.close()

    def _asked(self, message: RestMessage, timeout: float) -> Future[bytes]:
        """Send a message from the loop, and return its answer to come."""
        with self._lock:
            if self._closed:
                raise RuntimeError("Cannot send a request, as the client has been closed.")
            running = self._running
            if running is not None and running.process != os.getpid():
                # A fork has none of the threads; the parent goes on with the connections.
                self._connection, running = AsyncRestConnection(self._url, self._options), None
            if running is None:
                running = self._running = _LoopThread(self._connection)
                weakref.finalize(self, running.close)
            sending = self._connection.send(message, timeout)
            return asyncio.run_coroutine_threadsafe(sending, running.loop)
