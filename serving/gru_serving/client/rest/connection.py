"""How REST messages go out, and what comes back: within the time, and no more than allowed."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import urlsplit

import httpx

from gru_serving.client.errors import (
    closed_connection,
    no_server,
    refused_certificate,
    refused_token,
    too_slow,
    unexpected_answer,
)
from gru_serving.client.options import ClientOptions
from gru_serving.client.rest.answer_body import ENCODING, AnswerBody, UnpackError
from gru_serving.client.rest.deadline_transport import DeadlineTransport
from gru_serving.client.rest.message import RestMessage
from gru_serving.codecs.json_predict import decode_error, read_json
from gru_serving.errors import Code, InvalidArgument

_OF_GATEWAYS = (401, 403, 429, 502, 503, 504)
# httpx errors for a server that disconnects before or during its answer.
_GONE = ("disconnected", "peer closed connection")


class _Http:
    """What the two kinds of connection share."""

    def __init__(self, url: str, options: ClientOptions) -> None:
        self._url = url
        self._most = options.max_answer_bytes
        self._has_token = options.token is not None
        headers = {"Content-Type": "application/json", "Accept-Encoding": ENCODING}
        if options.token is not None:
            headers["Authorization"] = f"Bearer {options.token}"
        self._has_cert = options.cert_file is not None
        self._context = options.ssl_context() if url.startswith("https://") else None
        self._settings: dict[str, Any] = {
            "headers": headers,
            "trust_env": False,
            # Cookies are not kept: a model server needs none.
            "cookies": CookieJar(DefaultCookiePolicy(allowed_domains=())),
        }

    def _request(self, message: RestMessage, timeout: float) -> dict[str, Any]:
        return {
            "method": message.method,
            "url": f"{self._url}{message.path}",
            "content": message.body,
            "timeout": timeout,
        }

    @contextmanager
    def _errors(self, timeout: float) -> Iterator[None]:
        try:
            yield
        except (TimeoutError, httpx.TimeoutException):
            raise too_slow(self._url, timeout) from None
        except (httpx.TransportError, OSError) as error:
            # Its asynchronous half lets errors of TLS through as they are.
            raise self._unreachable(error) from None
        except UnpackError as error:
            detail = f"a body that cannot be unpacked ({error})"
            raise unexpected_answer(self._url, detail) from None
        except httpx.InvalidURL as error:
            raise InvalidArgument(f"url: {error}; got {self._url!r}") from None

    def _unreachable(self, error: Exception) -> Exception:
        reason = str(error) or type(error).__name__
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLError) or "[SSL" in str(cause):
                return refused_certificate(self._url, reason)
            cause = cause.__cause__ or cause.__context__
        gone = any(words in reason for words in _GONE)
        if isinstance(error, httpx.RemoteProtocolError) and not gone:
            return unexpected_answer(self._url, f"no HTTP ({reason})")
        closed = (httpx.ReadError, httpx.RemoteProtocolError)
        if not self._has_cert and isinstance(error, closed):
            return closed_connection(self._url, reason)
        port = urlsplit(self._url).port or 8501
        return no_server(self._url, reason, f"rest_api_port={port}")

    def _body(self, response: httpx.Response) -> AnswerBody:
        headers = response.headers
        return AnswerBody(
            self._url,
            headers.get("content-encoding", ""),
            headers.get("content-length"),
            self._most,
        )

    def _content(self, response: httpx.Response, body: bytes) -> bytes:
        status = response.status_code
        if status == 200:
            return body
        try:
            known = "error" in read_json(body)
        except (ValueError, TypeError):
            known = False
        if not known and status not in _OF_GATEWAYS:
            kind = response.headers.get("content-type", "no content type")
            raise unexpected_answer(self._url, f"HTTP status {status} with {kind[:80]}")
        error = decode_error(status, body)
        if error.code in (Code.UNAUTHENTICATED, Code.PERMISSION_DENIED):
            raise refused_token(
                self._url, error.code, error.message if known else f"{status}", self._has_token
            )
        raise error


class RestConnection(_Http):
    """Sends REST messages."""

    def __init__(self, url: str, options: ClientOptions) -> None:
        super().__init__(url, options)
        self._process = os.getpid()
        self._http = self._open()

    def send(self, message: RestMessage, timeout: float) -> bytes:
        """The body of the answer."""
        request = self._request(message, timeout)
        with self._errors(timeout), self._own().stream(**request) as response:
            body = self._body(response)
            for part in response.iter_raw():
                body.add(part)
            content = body.whole()
        return self._content(response, content)

    def close(self) -> None:
        """Close the connections."""
        self._own().close()

    def _open(self) -> httpx.Client:
        return httpx.Client(transport=DeadlineTransport(self._context), **self._settings)

    def _own(self) -> httpx.Client:
        """The connections of this process; on a parent's, each would read the other's answers."""
        if self._process != os.getpid():
            self._process, self._http = os.getpid(), self._open()
        return self._http


class AsyncRestConnection(_Http):
    """Sends REST messages from an event loop, each over a connection of its own meanwhile.

    httpx has a pool, but for every request it goes through the pairs of its connections: with a
    hundred of them that takes longer than the request.
    """

    def __init__(self, url: str, options: ClientOptions) -> None:
        super().__init__(url, options)
        self._all: list[httpx.AsyncClient] = []
        self._idle: list[httpx.AsyncClient] = []

    async def send(self, message: RestMessage, timeout: float) -> bytes:
        """The body of the answer."""
        http = self._idle.pop() if self._idle else self._open()
        with self._errors(timeout):
            try:
                # httpx allows the time for each read; a server that sends in small pieces would
                # get more.
                async with asyncio.timeout(timeout):
                    return await self._ask(http, self._request(message, timeout))
            finally:
                self._idle.append(http)

    async def _ask(self, http: httpx.AsyncClient, request: dict[str, Any]) -> bytes:
        async with http.stream(**request) as response:
            body = self._body(response)
            async for part in response.aiter_raw():
                body.add(part)
            content = body.whole()
        return self._content(response, content)

    def _open(self) -> httpx.AsyncClient:
        http = httpx.AsyncClient(verify=self._context or False, **self._settings)
        self._all.append(http)
        return http

    async def close(self) -> None:
        """Close the connections."""
        for http in self._all:
            await http.aclose()
