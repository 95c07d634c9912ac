"""The server that is asked: plain HTTP and gRPC, with every answer kept as it came."""

from __future__ import annotations

import http.client
import json
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import message_factory, text_format
from google.protobuf.message import DecodeError, Message

from gru_serving.conformance.differences import as_json, parsed, shown
from gru_serving.protos.services import MODEL_SERVICE, PREDICTION_SERVICE

_METHODS = {
    method.name: (f"/{service.full_name}/{method.name}", method)
    for service in (PREDICTION_SERVICE, MODEL_SERVICE)
    for method in service.methods
}
_LARGE = 10_000
"""Bytes of an answer that are shown at most."""
_UNLIMITED = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_http_proxy", 0),
]


@dataclass(frozen=True)
class HttpAnswer:
    """An answer over REST.

    Attributes:
        status: HTTP status; 0 where no answer came.
        headers: Headers by their names in lower case.
        body: Body as it came.
        failure: Sentence that says why no answer came; empty where one did.
    """

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    failure: str = ""

    @property
    def said(self) -> str:
        """The answer on one line."""
        kind = self.headers.get("content-type", "no content type")
        text = self.body[:_LARGE].decode(errors="replace")
        return self.failure or f"{self.status} {kind} {shown(text)}"

    def json(self) -> Any:
        """Return the body as JSON, in which NaN and Infinity are numbers.

        Raises:
            ValueError: The body is not JSON.
        """
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            said = shown(self.body.decode(errors="replace"))
            raise ValueError(f"body: expected JSON; got {said}") from None

    @property
    def missing_method(self) -> bool:
        """True if a web framework answered, and nothing behind it knows the request."""
        if self.status not in (404, 405, 501):
            return False
        try:
            answer = json.loads(self.body)
        except (ValueError, RecursionError):
            return True
        return not (isinstance(answer, dict) and "error" in answer)


@dataclass(frozen=True)
class GrpcAnswer:
    """An answer over gRPC.

    Attributes:
        code: Name of the status code, such as `OK`.
        text: Details of the status.
        message: Message of an answer that is OK.
    """

    code: str
    text: str = ""
    message: Any = None

    @property
    def said(self) -> str:
        """The answer on one line."""
        if self.code == "DEADLINE_EXCEEDED":
            return self.code  # the text is the server's or the client's, whoever is first
        if self.message is None:
            return f"{self.code}: {shown(self.text)}"
        if (size := self.message.ByteSize()) > _LARGE:
            return f"OK, {size} bytes"
        return f"OK {shown(text_format.MessageToString(self.message, as_one_line=True))}"

    def json(self) -> Any:
        """Return the message as a structure of JSON; signatures are unpacked."""
        return as_json(self.message)

    @property
    def missing_method(self) -> bool:
        """True if the server has no such method."""
        return self.code == "UNIMPLEMENTED"


class Server:
    """A running server, asked over both of its transports.

    Args:
        grpc_target: Host and port of gRPC; None where it is not asked.
        rest_url: Address of REST, such as `http://localhost:8501`; None where it is not asked.
        models: Folder of the kit's models as the server sees it; None where it is not known.
        timeout: Seconds after which a request counts as not answered.

    Raises:
        ValueError: The address of REST is no `http://HOST:PORT`.
    """

    def __init__(
        self,
        grpc_target: str | None = None,
        rest_url: str | None = None,
        models: str | None = None,
        timeout: float = 10.0,
    ) -> None:
        self.models, self.timeout = models, timeout
        self._address = None
        if rest_url is not None:
            parts = urllib.parse.urlsplit(rest_url)
            if parts.scheme != "http" or not parts.hostname or parts.path.strip("/"):
                raise ValueError(f"--rest: expected http://HOST:PORT; got {rest_url}")
            self._address = parts.hostname, parts.port or 80
        self._channel: Any = None
        if grpc_target is not None:
            target = grpc_target.removeprefix("grpc://")
            self._channel = grpc.insecure_channel(target, options=_UNLIMITED)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        if self._channel is not None:
            self._channel.close()

    def speaks(self, transport: str) -> bool:
        """Tell whether the address of a transport was given."""
        return (self._address if transport == "rest" else self._channel) is not None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of REST.

        Raises:
            ValueError: REST is not asked.
        """
        if self._address is None:
            raise ValueError("--rest was not given")
        return self._address

    @property
    def channel(self) -> Any:
        """The channel of gRPC.

        Raises:
            ValueError: gRPC is not asked.
        """
        if self._channel is None:
            raise ValueError("--grpc was not given")
        return self._channel

    def connection(self, timeout: float | None = None) -> http.client.HTTPConnection:
        """Open a connection for REST; nothing is sent yet."""
        return http.client.HTTPConnection(*self.address, timeout=timeout or self.timeout)

    def rest(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        chunks: int = 0,
        timeout: float | None = None,
    ) -> HttpAnswer:
        """Send a request over REST, with the path exactly as written.

        Args:
            method: Verb of HTTP.
            path: Path and query.
            body: Body of the request; None for none.
            headers: Further headers.
            chunks: Number of chunks in which the body is sent; 0 for a body with its length.
            timeout: Seconds to wait; those of the server by default.
        """
        connection = self.connection(timeout)
        size = -(-len(body or b"") // chunks) if chunks else 0
        parts = [body[i : i + size] for i in range(0, len(body), size)] if chunks and body else body
        try:
            connection.request(method, path, parts, headers or {}, encode_chunked=bool(chunks))
            return read_answer(connection, timeout or self.timeout)
        except OSError as error:
            return HttpAnswer(failure=_failure(error, timeout or self.timeout))
        finally:
            connection.close()

    def grpc(self, method: str, request: Message | str, timeout: float | None = None) -> GrpcAnswer:
        """Call a method over gRPC.

        Args:
            method: Name of a method of PredictionService or ModelService.
            request: Message, or its text.
            timeout: Deadline in seconds; that of the server by default.

        Raises:
            ValueError: The text is no request of the method.
        """
        path, descriptor = _METHODS[method]
        kind = message_factory.GetMessageClass(descriptor.input_type)
        message = parsed(request, kind) if isinstance(request, str) else request
        call = self.channel.unary_unary(path)
        try:
            answer = call(message.SerializeToString(), timeout=timeout or self.timeout)
        except grpc.RpcError as error:
            return GrpcAnswer(error.code().name, error.details() or "")
        response = message_factory.GetMessageClass(descriptor.output_type)
        try:
            return GrpcAnswer("OK", message=response.FromString(answer))
        except DecodeError:
            return GrpcAnswer("OK", f"{len(answer)} bytes that are no {response.DESCRIPTOR.name}")

    def expected(self, method: str, text: str) -> Any:
        """Return the structure of a response that is written as text.

        Raises:
            ValueError: The text is no response of the method.
        """
        response = message_factory.GetMessageClass(_METHODS[method][1].output_type)
        return as_json(parsed(text, response))


def read_answer(connection: http.client.HTTPConnection, timeout: float) -> HttpAnswer:
    """Read the answer of a request that was sent.

    Args:
        connection: Connection on which the request was sent.
        timeout: Seconds that the connection waits, for the message.
    """
    try:
        response = connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        return HttpAnswer(failure=_failure(error, timeout))
    headers = {name.lower(): value for name, value in response.getheaders()}
    try:
        return HttpAnswer(response.status, headers, response.read())
    except http.client.IncompleteRead as error:
        got = len(error.partial)
        failure = f"the body ended after {got} of {got + (error.expected or 0)} bytes"
        return HttpAnswer(response.status, headers, error.partial, failure)
    except (OSError, http.client.HTTPException) as error:
        failure = f"the body did not come whole: {_failure(error, timeout)}"
        return HttpAnswer(response.status, headers, failure=failure)


def _failure(error: Exception, timeout: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout:g} s"
    return f"no answer: {error or type(error).__name__}"
