"""The REST client: NumPy and httpx, no TensorFlow."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from serving.async_client import AsyncClient
from serving.batch_parts import Arrays
from serving.client import Client
from serving.client_errors import (
    closed_connection,
    no_server,
    refused_certificate,
    refused_token,
    too_slow,
    unexpected_answer,
)
from serving.client_options import ClientOptions
from serving.conversation import Call, Metadata, Target, VersionState
from serving.errors import Code, InvalidArgument, Unimplemented
from serving.rest_codec import decode_error, decode_outputs, encode_examples, encode_request
from serving.signature import Signature

ResultT = TypeVar("ResultT")

_OF_GATEWAYS = (401, 403, 429, 502, 503, 504)
# What httpx says where a server went away before its answer, or in the middle of it.
_GONE = ("disconnected", "peer closed connection")


class RestClient(Client):
    """A client of the REST API.

    Args:
        url: `http://host:port` or `https://host:port`.
        options: As of `connect`.
    """

    def __init__(self, url: str, options: ClientOptions | None = None) -> None:
        settings = options or ClientOptions()
        url = url.rstrip("/")
        super().__init__(RestWire(url), RestConnection(url, settings), url, settings)


class AsyncRestClient(AsyncClient):
    """As `RestClient`, for an event loop."""

    def __init__(self, url: str, options: ClientOptions | None = None) -> None:
        settings = options or ClientOptions()
        url = url.rstrip("/")
        super().__init__(RestWire(url), AsyncRestConnection(url, settings), url, settings)


@dataclass(frozen=True)
class RestMessage:
    """A request: method, path and JSON body."""

    method: str
    path: str
    body: bytes | None = None


class RestWire:
    """Requests as JSON.

    Args:
        url: Of the server, for messages.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def predict(
        self,
        target: Target,
        signature_name: str,
        signature: Signature,
        inputs: Arrays,
        output_filter: Sequence[str],
    ) -> Call[Arrays]:
        """A Predict request, in column format."""
        if not inputs.keys() >= signature.inputs.keys():
            raise InvalidArgument(
                f"inputs: REST cannot use default values; expected all of "
                f"{sorted(signature.inputs)}, got {sorted(inputs)}"
            )
        body = encode_request(inputs, signature, signature_name)

        def read(answer: bytes) -> Arrays:
            outputs = decode_outputs(answer, signature)
            missing = set(output_filter) - outputs.keys()
            if missing:
                raise unexpected_answer(self._url, f"no output {min(missing)!r} in the answer")
            # The API itself has no output filter.
            return {name: outputs[name] for name in output_filter} if output_filter else outputs

        return RestMessage("POST", f"{_path(target)}:predict", body), read

    def classify(
        self, target: Target, signature_name: str, examples: Sequence[Any]
    ) -> Call[list[list[tuple[str, float]]]]:
        """A Classify request."""

        def read(answer: bytes) -> list[list[tuple[str, float]]]:
            return self._results(
                answer, lambda row: [(str(label), float(score)) for label, score in row]
            )

        return self._examples("classify", target, signature_name, examples), read

    def regress(
        self, target: Target, signature_name: str, examples: Sequence[Any]
    ) -> Call[list[float]]:
        """A Regress request."""

        def read(answer: bytes) -> list[float]:
            return self._results(answer, float)

        return self._examples("regress", target, signature_name, examples), read

    def metadata(self, target: Target) -> Call[Metadata]:
        """A metadata request."""

        def read(answer: bytes) -> Metadata:
            value = self._json(answer)
            try:
                signatures = value["metadata"]["signature_def"]["signature_def"]
                version = int(value["model_spec"]["version"])
                parsed = {name: Signature.from_json(entry) for name, entry in signatures.items()}
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise unexpected_answer(
                    self._url, f"metadata of an unknown form, {error!r}"
                ) from None
            return Metadata(target.model, version, parsed)

        return RestMessage("GET", f"{_path(target)}/metadata"), read

    def status(self, target: Target) -> Call[list[VersionState]]:
        """A status request."""

        def read(answer: bytes) -> list[VersionState]:
            value = self._json(answer)
            try:
                return [
                    VersionState(
                        int(entry["version"]),
                        entry["state"],
                        entry["status"]["error_code"],
                        entry["status"]["error_message"],
                    )
                    for entry in value["model_version_status"]
                ]
            except (KeyError, TypeError, ValueError) as error:
                raise unexpected_answer(
                    self._url, f"a status of an unknown form, {error!r}"
                ) from None

        return RestMessage("GET", _path(target)), read

    def reload(self, config: Any) -> Call[None]:
        """REST has no such request."""
        del config
        raise Unimplemented(f"{self._url}: REST cannot reload a configuration; give a gRPC address")

    def _examples(
        self, verb: str, target: Target, signature_name: str, examples: Sequence[Any]
    ) -> RestMessage:
        body = encode_examples(examples, signature_name)
        return RestMessage("POST", f"{_path(target)}:{verb}", body)

    def _results(self, answer: bytes, read: Callable[[Any], ResultT]) -> list[ResultT]:
        value = self._json(answer)
        try:
            if isinstance(value["results"], list):
                return [read(entry) for entry in value["results"]]
        except (KeyError, TypeError, ValueError):
            pass
        raise unexpected_answer(self._url, f"no results in {answer[:200]!r}")

    def _json(self, answer: bytes) -> Any:
        try:
            return json.loads(answer)
        except ValueError:
            raise unexpected_answer(self._url, f"no JSON, {answer[:100]!r}") from None


class _Http:
    """What the two kinds of connection share."""

    def __init__(self, url: str, options: ClientOptions) -> None:
        # httpx takes longer to import than all the rest here, and who only imports need not wait.
        import httpx

        self._httpx: Any = httpx
        self._url = url
        self._has_token = options.token is not None
        headers = {"Content-Type": "application/json"}
        if options.token is not None:
            headers["Authorization"] = f"Bearer {options.token}"
        secure = url.startswith("https://")
        self._has_cert = options.cert_file is not None
        self._settings: dict[str, Any] = {
            "headers": headers,
            "trust_env": False,
            "verify": options.ssl_context() if secure else False,
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
        httpx = self._httpx
        try:
            yield
        except (TimeoutError, httpx.TimeoutException):
            raise too_slow(self._url, timeout) from None
        except (httpx.TransportError, OSError) as error:
            # Its asynchronous half lets errors of TLS through as they are.
            raise self._unreachable(error) from None
        except httpx.DecodingError as error:
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
        if isinstance(error, self._httpx.RemoteProtocolError) and not gone:
            return unexpected_answer(self._url, f"no HTTP ({reason})")
        closed = (self._httpx.ReadError, self._httpx.RemoteProtocolError)
        if not self._has_cert and isinstance(error, closed):
            return closed_connection(self._url, reason)
        port = urlsplit(self._url).port or 8501
        return no_server(self._url, reason, f"rest_api_port={port}")

    def _content(self, response: Any, body: bytes) -> bytes:
        status = response.status_code
        if status == 200:
            return body
        try:
            known = "error" in json.loads(body)
        except (ValueError, TypeError):
            known = False
        if not known and status not in _OF_GATEWAYS:
            kind = response.headers.get("content-type", "no content type")
            raise unexpected_answer(self._url, f"HTTP status {status} with {kind}")
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
        self._http = self._httpx.Client(**self._settings)

    def send(self, message: RestMessage, timeout: float) -> bytes:
        """The body of the answer."""
        deadline = time.monotonic() + timeout
        request = self._request(message, timeout)
        with self._errors(timeout), self._own().stream(**request) as response:
            parts = []
            # httpx allows the time for each read; a server that sends bit by bit would have more.
            for part in response.iter_bytes():
                parts.append(part)
                if time.monotonic() > deadline:
                    raise self._httpx.ReadTimeout("the answer is not whole in time")
        return self._content(response, b"".join(parts))

    def close(self) -> None:
        """Close the connections."""
        self._own().close()

    def _own(self) -> Any:
        """The connections of this process; on a parent's, each would read the other's answers."""
        if self._process != os.getpid():
            self._process, self._http = os.getpid(), self._httpx.Client(**self._settings)
        return self._http


class AsyncRestConnection(_Http):
    """Sends REST messages from an event loop."""

    def __init__(self, url: str, options: ClientOptions) -> None:
        super().__init__(url, options)
        self._http = self._httpx.AsyncClient(**self._settings)

    async def send(self, message: RestMessage, timeout: float) -> bytes:
        """The body of the answer."""
        with self._errors(timeout):
            asking = self._http.request(**self._request(message, timeout))
            # httpx allows the time for each read; a server that sends bit by bit would have more.
            response = await asyncio.wait_for(asking, timeout)
        return self._content(response, bytes(response.content))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def _path(target: Target) -> str:
    path = f"/v1/models/{quote(target.model, safe='')}"
    if target.version is not None:
        return f"{path}/versions/{target.version}"
    return f"{path}/labels/{quote(target.label, safe='')}" if target.label else path
