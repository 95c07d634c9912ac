"""TF Serving's REST API as an ASGI application, with the pages beside it.

The path of `POST /v1/models/NAME:predict`: `Api` reads path and body, `PredictPost` decodes JSON to
arrays and encodes arrays as JSON, and `gru_serving.inference.service` does the rest.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import Any
from urllib.parse import unquote

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request as PageRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gru_serving.codecs.inference_messages import (
    Answering,
    classification_response,
    predict_request,
    predict_response,
    regression_response,
    serialized,
)
from gru_serving.codecs.json_example import (
    encode_classifications,
    encode_regressions,
    parse_examples,
)
from gru_serving.codecs.json_inputs import decode_inputs, signature_name
from gru_serving.codecs.json_predict import (
    encode_error,
    encode_metadata,
    encode_status,
)
from gru_serving.codecs.rapidjson import writer as json_writer
from gru_serving.codecs.rapidjson.parser import Document, parse
from gru_serving.codecs.signature import DEFAULT_SIGNATURE
from gru_serving.codecs.tensor_proto import decode_input
from gru_serving.engine.examples import Classification, classify, regress
from gru_serving.engine.predictor import Predictor
from gru_serving.errors import (
    Code,
    Internal,
    InvalidArgument,
    ServingError,
    Unavailable,
    refused_by_system,
)
from gru_serving.inference.service import (
    AnswerT,
    Inference,
    LoopLimits,
    Question,
    Request,
    Target,
    Work,
)
from gru_serving.protos.classification_pb2 import ClassificationRequest
from gru_serving.protos.input_pb2 import Input
from gru_serving.protos.regression_pb2 import RegressionRequest
from gru_serving.repository.catalogue import Catalogue
from gru_serving.server.byte_budget import ByteBudget
from gru_serving.server.listening import STOPPING, QuietPeriod
from gru_serving.server.rest.body import (
    Body,
    BodyTooLarge,
    PackedBody,
    discard_body,
    open_body,
    read_body,
)
from gru_serving.telemetry.metrics import Metrics, page
from gru_serving.telemetry.refusals import Reason, Refusals
from gru_serving.telemetry.request_record import RequestRecord

log = logging.getLogger(__name__)

# Full matches over path and query string, as in TF Serving: a query makes a request malformed.
_NAME = rb"/v1/models/(?P<model>[^/:]+)"
_VERSION = rb"(?:/versions/(?P<version>[0-9]+)|/labels/(?P<label>[^/:]+))?"
_POST = re.compile(rb"(?i)" + _NAME + _VERSION + rb":(?P<verb>classify|regress|predict)")
_GET_PATH = re.compile(
    rb"(?i)/v1/models(?:/(?P<model>[^/:]+))?" + _VERSION + rb"(?P<metadata>/metadata)?"
)
_API = re.compile(rb"(?i)/v1/.*", re.DOTALL)
_METHODS = ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH")
# Bytes that a URI may not contain, and per cent signs without two digits (RFC 3986).
_NO_URI = re.compile(rb"[^!$%&-;=?-Z_a-z~]|%(?![0-9A-Fa-f]{2})")
_INT64_DIGITS = 19
# Bytes of names that are not UTF-8 become half surrogate pairs.
_BYTES = "surrogateescape"
_HTML = b"text/html; charset=ISO-8859-1"
_JSON = b"application/json"
_CLOSE_HEADER = (b"connection", b"close")
_LINES = 500
"""Number of lines of the metrics page that are written at once, in about a millisecond."""


class _EmptyError(InvalidArgument):
    """An error that is answered without a body, as in TF Serving."""


class _Post(Request[AnswerT]):
    """An inference request over REST.

    Args:
        target: Version that the path names.
        body: Body as it came, or unpacked.
        timeout_ms: Milliseconds allowed for the run; 0 for no limit.
        strict_integers: Whether to refuse integers beyond the type of their input.
    """

    # JSON of this many bytes, and arrays of this many bytes as JSON, take less time than a thread
    # switch.
    limits = LoopLimits(read=1 << 14, write=1 << 12)
    timeout_ms = 0

    def __init__(
        self,
        target: Target,
        body: Body | PackedBody,
        timeout_ms: int,
        strict_integers: bool = False,
    ) -> None:
        self.size = len(body)
        self.timeout_ms = timeout_ms
        self._target = target
        self._strict_integers = strict_integers
        self._body = body


class PredictPost(_Post[dict[str, np.ndarray]]):
    """`POST /v1/models/NAME:predict`."""

    api, kind = "Predict", "predict"

    def parse(self) -> Question:
        """See the base class."""
        body = self._body
        document = parse(body.unpack() if isinstance(body, PackedBody) else body)
        return Question(self._target, signature_name(document), document)

    def decode(
        self, content: Document, predictor: Predictor, by: Answering
    ) -> Work[dict[str, np.ndarray]]:
        """See the base class."""
        name = by.signature or DEFAULT_SIGNATURE
        signature = predictor.signatures.get(name)
        if signature is None:
            raise InvalidArgument(f'Serving signature name: "{name}" not found in signature def')
        inputs, row = decode_inputs(content, signature, by.signature, self._strict_integers)
        predictor.check_inputs(signature, inputs.keys())

        def messages(outputs: dict[str, np.ndarray], _: bytes) -> tuple[bytes, bytes]:
            return serialized(predict_request(by, inputs), predict_response(by, outputs))

        write = json_writer.rows if row else json_writer.columns
        return Work(
            predictor.prepare(inputs, name),
            write,
            messages,
            lambda other: other.prepare_checked(inputs, name),
        )


class _ExamplesPost(_Post[AnswerT]):
    """A request about tf.Examples, which runs in a thread because examples are slow to read."""

    limits = LoopLimits(read=-1, write=_Post.limits.write)

    def parse(self) -> Question:
        """See the base class."""
        body = self._body
        examples, name = parse_examples(body.unpack() if isinstance(body, PackedBody) else body)
        return Question(self._target, name, examples)


class ClassifyPost(_ExamplesPost[Classification]):
    """`POST /v1/models/NAME:classify`."""

    api, kind = "Classify", "classify"

    def decode(self, content: Input, predictor: Predictor, by: Answering) -> Work[Classification]:
        """See the base class."""

        def messages(answer: Classification, _: bytes) -> tuple[bytes, bytes]:
            response = classification_response(by, answer.rows())
            return serialized(ClassificationRequest(model_spec=by.spec(), input=content), response)

        prepare = partial(classify, signature_name=by.signature, examples=decode_input(content))
        return Work(
            prepare(predictor),
            lambda answer: encode_classifications(answer.rows()),
            messages,
            prepare,
        )


class RegressPost(_ExamplesPost[np.ndarray]):
    """`POST /v1/models/NAME:regress`."""

    api, kind = "Regress", "regress"

    def decode(self, content: Input, predictor: Predictor, by: Answering) -> Work[np.ndarray]:
        """See the base class."""

        def messages(values: np.ndarray, _: bytes) -> tuple[bytes, bytes]:
            request = RegressionRequest(model_spec=by.spec(), input=content)
            return serialized(request, regression_response(by, values))

        prepare = partial(regress, signature_name=by.signature, examples=decode_input(content))
        return Work(prepare(predictor), encode_regressions, messages, prepare)


# The paths' pattern ignores case, while the choice of the answer does not.
_POSTS: dict[bytes, Callable[[Target, Body | PackedBody, int, bool], _Post[Any]]] = {
    b"predict": PredictPost,
    b"classify": ClassifyPost,
    b"regress": RegressPost,
}


class Api:
    """The REST application: TF Serving's API under /v1/, with health, models and metrics beside it.

    Args:
        inference: Service that answers requests.
        timeout_ms: Milliseconds allowed for a model run; 0 for no limit.
        cors: Headers of every answer under /v1/, for browsers.
        metrics: Metrics that count the requests.
        metrics_path: Path of the metrics page; empty for none.
        budget: Budget that counts the bytes of requests.
        refusals: Counter of the requests that are refused.
        further: Routes beside all these, as those of the playground.
        strict_integers: Whether to refuse integers beyond the type of their input, which TF
            Serving wraps around.
    """

    def __init__(
        self,
        inference: Inference,
        timeout_ms: int = 30000,
        cors: Sequence[tuple[bytes, bytes]] = (),
        metrics: Metrics | None = None,
        metrics_path: str = "",
        budget: ByteBudget | None = None,
        refusals: Refusals | None = None,
        further: Sequence[Route] = (),
        strict_integers: bool = False,
    ) -> None:
        self._inference = inference
        self._timeout_ms = max(0, timeout_ms)
        self._headers = cors
        self._metrics = metrics or Metrics()
        self._metrics_path = metrics_path.encode()
        self._budget = budget or ByteBudget()
        self._refusals = refusals or Refusals()
        self._strict_integers = strict_integers
        self._stopping = False
        self._quiet = QuietPeriod()
        self._pages = _pages(inference.repository, lambda: self._stopping, further)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path: bytes = scope["raw_path"]
        if self._metrics_path and path == self._metrics_path:
            answer = await metrics_page(self._metrics, scope)
            await answer(scope, receive, send)
            return
        if not _API.fullmatch(path):
            await self._pages(scope, receive, send)
            return
        if self._quiet.begun:
            await self._refuse(receive, send)
            return
        if scope["query_string"]:
            path += b"?" + scope["query_string"]
        if scope["method"] not in _METHODS:
            await _error_page(HTTPStatus.NOT_IMPLEMENTED)(scope, receive, send)
        elif _NO_URI.search(path):
            await _error_page(HTTPStatus.BAD_REQUEST)(scope, receive, send)
        elif scope["method"] == "OPTIONS":
            origin = dict(scope["headers"]).get(b"origin", b"")
            status = 200 if b"http://" in origin or b"https://" in origin else 400
            await self._send(send, status, b"", (b"content-type", _HTML))
        else:
            await self._call(scope, path, receive, send)

    async def stop(self) -> None:
        """Refuse new requests under /v1/; returns when no more arrive, or after two seconds.

        A connection that is closed at once may hold an unread request. Its sender sees a broken
        connection and cannot know that the request was never begun; a 503 says so, and a proxy may
        send the request to another replica.
        """
        await self._quiet.pass_by()

    def announce_stop(self) -> None:
        """Report on /readyz that the server is about to stop."""
        self._stopping = True

    async def _call(self, scope: Scope, path: bytes, receive: Receive, send: Send) -> None:
        """Answer a request under /v1/, and count it."""
        method, headers = scope["method"], scope["headers"]
        record = scope.get("record") or RequestRecord("REST", method)
        match = (_POST if method == "POST" else _GET_PATH).fullmatch(path)
        record.model = unquote(match["model"] or b"", errors=_BYTES) if match else ""
        threads = self._inference.threads
        with self._budget.hold() as held:
            body: Body | ServingError | None
            try:
                body = await read_body(receive, headers, held)
            except ServingError as error:
                body = error.with_traceback(None)  # which holds what was read
            except MemoryError as error:
                body = refused_by_system(error)
            except asyncio.CancelledError:
                if not self._stopping:
                    raise
                body = Unavailable(STOPPING)
            if body is None:
                return
            started = time.perf_counter()
            record.status = Code.CANCELLED.name
            try:
                if isinstance(body, ServingError):
                    raise body
                if match and method == "GET":
                    answer = await threads.run(self._describe, match, record)
                elif match and method == "POST" and match["verb"] in _POSTS:
                    target = _target_of(record.model, match)
                    encodings = (value for name, value in headers if name == b"content-encoding")
                    packed = b"gzip" in next(encodings, b"")
                    opened = await open_body(body, held, threads) if packed else body
                    post = _POSTS[match["verb"]](
                        target, opened, self._timeout_ms, self._strict_integers
                    )
                    answer = await self._inference.answer(post, record)
                else:
                    shown = path.decode("utf-8", "replace")
                    raise InvalidArgument(f"Malformed request: {method} {shown}")
                record.status, status = Code.OK.name, 200
            except asyncio.CancelledError:
                if not self._stopping:
                    raise
                code, status, answer = _error_answer(Unavailable(STOPPING))
                record.status = code.name
            except Exception as error:
                # No variable of this frame keeps the error, which refers to the frame by its
                # traceback, and so to the body: both would wait for the garbage collector.
                if not isinstance(error, ServingError) and refused_by_system(error) is None:
                    shown = path.decode("utf-8", "replace")
                    log.exception("%s %s failed%s", method, shown, record.mention)
                if isinstance(error, BodyTooLarge):
                    self._refusals.note(Reason.TOO_LARGE, error.message)
                code, status, answer = _error_answer(error)
                record.status = code.name
            finally:
                verb = match["verb"].decode().lower() if match and method == "POST" else ""
                self._metrics.request(record.model, verb, "REST", record.status, started)
            if not isinstance(body, ServingError):
                await self._send(send, status, answer, (b"content-type", _JSON))
                return
            # The body is not read to its end, which ends the connection.
            await self._send(
                send, status, answer, (b"content-type", _JSON), _CLOSE_HEADER, more_body=True
            )
            await discard_body(receive)
            await send({"type": "http.response.body", "body": b""})

    def _describe(self, match: re.Match[bytes], record: RequestRecord) -> bytes:
        """Return the status or the metadata of a model."""
        target = _target_of(record.model, match)
        if not target.model:
            raise InvalidArgument("Missing model name in request.")
        if match["metadata"] != b"/metadata":
            return encode_status(self._inference.status(target))
        found = self._inference.metadata(target, record)
        return encode_metadata(found.spec, found.signatures)

    async def _refuse(self, receive: Receive, send: Send) -> None:
        """Refuse a request because the server stops."""
        # The request is read to its end: a connection closed over unread bytes is reset, and the
        # answer may be lost.
        while (await receive()).get("more_body", False):
            pass
        self._quiet.note()
        self._refusals.note(Reason.STOPPING, STOPPING)
        _, status, body = _error_answer(Unavailable(STOPPING))
        await self._send(send, status, body, (b"content-type", _JSON), _CLOSE_HEADER)

    async def _send(
        self,
        send: Send,
        status: int,
        body: bytes,
        *headers: tuple[bytes, bytes],
        more_body: bool = False,
    ) -> None:
        """Send an answer with its length, these headers and the CORS headers."""
        length = (b"content-length", b"%d" % len(body))
        every = [length, *headers, *self._headers]
        await send({"type": "http.response.start", "status": status, "headers": every})
        await send({"type": "http.response.body", "body": body, "more_body": more_body})


def _error_answer(error: Exception) -> tuple[Code, int, bytes]:
    """Return code, HTTP status and body for any error."""
    if not isinstance(error, ServingError):
        error = refused_by_system(error) or Internal(f"{type(error).__name__}: {error}")
    status, text = encode_error(error)
    if isinstance(error, BodyTooLarge):
        return error.code, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text
    return error.code, status, b"" if isinstance(error, _EmptyError) else text


def _target_of(model: str, match: re.Match[bytes]) -> Target:
    """Return the version of a model named by a path that matched `_POST` or `_GET_PATH`.

    Raises:
        _EmptyError: The version is beyond int64.
    """
    version = None
    if match["version"]:
        digits = match["version"].lstrip(b"0")
        if len(digits) > _INT64_DIGITS or int(digits or b"0") >= 1 << 63:
            shown = match["version"].decode()
            raise _EmptyError(f"Failed to convert version: {shown} to numeric.")
        version = int(digits or b"0")
    label = unquote(match["label"], errors=_BYTES) if match["label"] else None
    return Target(model, version, label)


def _pages(
    repository: Catalogue, stopping: Callable[[], bool], further: Sequence[Route]
) -> Starlette:
    """Make the application of /healthz, /readyz, /models and further routes."""

    async def healthz(_: PageRequest) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(_: PageRequest) -> Response:
        if stopping():
            return JSONResponse({"status": "stopping"}, 503)
        ready = repository.ready()
        return JSONResponse({"status": "ready" if ready else "loading"}, 200 if ready else 503)

    async def models(_: PageRequest) -> Response:
        return JSONResponse({"models": repository.listing()})

    async def missing(_: PageRequest, __: Exception) -> Response:
        return _error_page(HTTPStatus.NOT_FOUND, "<p>The API is under /v1/models.</p>\n")

    return Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/models", models),
            *further,
        ],
        exception_handlers={404: missing},
    )


def _error_page(status: HTTPStatus, text: str = "") -> Response:
    """Make an error page like that of TF Serving's HTTP library beside the API."""
    title, body = f"{status.value} {status.phrase}", f"<h1>{status.phrase}</h1>\n{text}"
    page = f"<html><head>\n<title>{title}</title>\n</head><body>\n{body}</body></html>\n"
    return Response(page, status, media_type="text/html")


async def metrics_page(metrics: Metrics, scope: Scope) -> Response:
    """Return the metrics in Prometheus' text form; other requests are answered between pieces."""
    headers = {"content-type": "text/plain"}
    if scope["query_string"]:
        shown = f"{scope['path']}?{scope['query_string'].decode('latin-1')}"
        text = f"Unexpected path: {shown}. Should be {scope['path']}"
        return Response(text, 400, headers)
    whole = await asyncio.to_thread(metrics.whole)
    pieces, lines = [], whole.lines()
    while piece := page(islice(lines, _LINES)):
        pieces.append(piece)
        await asyncio.sleep(0)
    return Response(b"".join(pieces), headers=headers)
