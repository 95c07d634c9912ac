"""Ids and traces of requests: taken from the client, or made; traces go out by OpenTelemetry.

A sampled request is a span of kind SERVER with a child for each part of its way: `decode`, `queue`
(it waits for a thread or for its batch), `run` and `encode`. With batching, each request of a batch
has a span `batch`, and the run that they share is one span `run`, below the first of these; links
lead from each `batch` to that `run`, and back.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from typing import TYPE_CHECKING, Any

from gru_serving.errors import Code, InvalidArgument
from gru_serving.telemetry.request_record import RequestRecord

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

REQUEST_ID = "x-request-id"
TRACEPARENT = "traceparent"
# An id stands in logs and headers as the client sent it.
_ID = re.compile(r"[!-~]{1,128}")
# W3C Trace Context, level 1: version, trace, parent and flags; later versions may append fields.
_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]*)?"
)
_DRAWN = 64
# As the specification of OpenTelemetry has samplers describe themselves.
_RATIO = re.compile(r"(?:ParentBased\{root:)?TraceIdRatioBased\{([^{}]+)\}")
_FAULTS = {
    *(Code.UNKNOWN.name, Code.DEADLINE_EXCEEDED.name, Code.UNIMPLEMENTED.name),
    *(Code.INTERNAL.name, Code.UNAVAILABLE.name, Code.DATA_LOSS.name),
}


class Identities:
    """Gives each request an id and its place in a trace.

    Ids of requests that bring none are drawn for many in a row: one by one, their code is no longer
    in the processor's caches, and takes several times as long.

    Args:
        tracing: Traces of the requests; None to hand on what clients send.

    Attributes:
        names: Headers that are read, in lower case.
    """

    def __init__(self, tracing: Tracing | None = None) -> None:
        self._tracing = tracing
        self._drawn: list[tuple[str, int]] = []
        self.names = {REQUEST_ID, TRACEPARENT, *(() if tracing is None else tracing.fields)}

    def note(self, record: RequestRecord, given: Mapping[str, str]) -> None:
        """Fill in id and trace of a record, which the answer has as headers or metadata.

        Args:
            record: Record of a request that begins.
            given: The headers or metadata that `names` lists, as far as the request has them.
        """
        if not self._drawn:
            self._drawn = [(_new_request_id(), self._new_root()) for _ in range(_DRAWN)]
        record.request_id, root = self._drawn.pop()
        if root and not given:
            self._begin(record, given, root)
        elif given:
            name = given.get(REQUEST_ID, "")
            if _ID.fullmatch(name):
                record.request_id = name
            self._begin(record, given, root)
            parent = given.get(TRACEPARENT, "")
            if record.trace is None and _TRACEPARENT.fullmatch(parent):
                record.traceparent = parent

    def _new_root(self) -> int:
        return 0 if self._tracing is None else self._tracing.new_root()

    def _begin(self, record: RequestRecord, given: Mapping[str, str], root: int) -> None:
        # Health checks and metrics, beside the API, are too many to trace; calls have no route.
        if self._tracing is not None and (
            record.target[:4].lower() == b"/v1/" or record.transport == "GRPC"
        ):
            self._tracing.begin(record, given, root)


def _new_request_id() -> str:
    return f"{random.getrandbits(128):032x}"


class RequestTrace:
    """The spans of one sampled request; its methods may be called from several threads.

    Args:
        tracer: Tracer that makes the spans.
        span: Span of the whole request.
    """

    __slots__ = ("_below", "_epoch", "_tracer", "span")

    def __init__(self, tracer: Tracer, span: Span) -> None:
        from opentelemetry.trace import set_span_in_context

        self._tracer = tracer
        self._epoch = time.time_ns() - int(time.perf_counter() * 1e9)
        self._below = set_span_in_context(span, _no_context())
        self.span = span

    def add(self, name: str, started: float, ended: float | None = None) -> None:
        """Add a part of the way that is over.

        Args:
            name: Name of the part.
            started: `time.perf_counter()` at its begin.
            ended: The same at its end; None for now.
        """
        ended = time.perf_counter() if ended is None else ended
        span = self._tracer.start_span(name, self._below, start_time=self._at(started))
        span.end(self._at(ended))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """A part of the way that is under way; an error in it is the span's too."""
        span = self.begin(name)
        with _ending([span]):
            yield

    def begin(self, name: str) -> Span:
        """Return a span of a part of the way, for the caller to end."""
        return self._tracer.start_span(name, self._below)

    def begin_shared(self, spans: Sequence[Span], attributes: Mapping[str, int]) -> Span:
        """Return the span of the run that several requests share, linked with theirs.

        Args:
            spans: Spans of all sampled requests in the batch, this one's first.
            attributes: Figures of the batch.
        """
        from opentelemetry.trace import Link, set_span_in_context

        shared = self._tracer.start_span(
            "run",
            set_span_in_context(spans[0], _no_context()),
            attributes=attributes,
            links=[Link(span.get_span_context()) for span in spans],
        )
        for span in spans:
            span.add_link(shared.get_span_context())
        return shared

    def _at(self, seconds: float) -> int:
        return self._epoch + int(seconds * 1e9)


@contextmanager
def _ending(spans: Sequence[Span]) -> Iterator[None]:
    """End spans, with the error that ends the block, if one does."""
    try:
        yield
    except BaseException as error:
        for span in spans:
            _fail(span, f"{type(error).__name__}: {error}")
        raise
    finally:
        for span in spans:
            span.end()


class BatchTraces:
    """The spans of the sampled requests in one batch.

    Args:
        traces: Traces of these requests; often none.
    """

    __slots__ = ("_spans", "_traces")

    def __init__(self, traces: Sequence[RequestTrace]) -> None:
        self._traces = traces
        self._spans: list[Span] = []

    def batch(self) -> AbstractContextManager[None]:
        """Time the merging, the run and the splitting of a batch, as a span."""
        self._spans = [trace.begin("batch") for trace in self._traces]
        return _ending(self._spans) if self._spans else nullcontext()

    def run(self, requests: int, rows: int) -> AbstractContextManager[None]:
        """Time a run of the model, as a span.

        Args:
            requests: Number of requests in the batch, those that are not sampled too.
            rows: Number of rows of the run, with those that fill it up.
        """
        if not self._spans:
            return nullcontext()
        figures = {"gru_serve.batch.requests": requests, "gru_serve.batch.rows": rows}
        return _ending([self._traces[0].begin_shared(self._spans, figures)])


class Tracing:
    """Begins and ends the spans of requests.

    Args:
        provider: Provider of the tracer; None for that which the `OTEL_*` variables describe.

    Attributes:
        fields: Headers that say to which trace a request belongs.

    Raises:
        InvalidArgument: The variables ask for what is not installed, or for the impossible.
    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        from opentelemetry import propagate
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
        from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
        from opentelemetry.trace import NoOpTracer, SpanKind, get_current_span

        class OneTrace(RandomIdGenerator):
            """The ids of spans of one trace, which its sampling was decided for."""

            def __init__(self, trace_id: int) -> None:
                self._trace_id = trace_id

            def generate_trace_id(self) -> int:
                return self._trace_id

        self._one_trace = OneTrace
        self._provider = _configured() if provider is None else provider
        self._tracer: Any = self._provider.get_tracer("gru_serving")
        self._is_off = isinstance(self._tracer, NoOpTracer)  # OTEL_SDK_DISABLED
        self._new_id = self._provider.id_generator.generate_trace_id
        self._decide: Any = self._provider.sampler.should_sample
        ratio = _RATIO.match(self._provider.sampler.get_description())
        self._bound = None if ratio is None else TraceIdRatioBased(float(ratio[1])).bound
        self._bits = TraceIdRatioBased.TRACE_ID_LIMIT
        self._extract, self._current = propagate.extract, get_current_span
        self._kind = SpanKind.SERVER
        self._context = _no_context()
        self.fields = frozenset(propagate.get_global_textmap().fields)

    def begin(self, record: RequestRecord, given: Mapping[str, str], root: int) -> None:
        """Begin the span of a request that is to be sampled, and note it in the record.

        Args:
            record: Record of the request.
            given: Headers of the request, those of `fields` among them.
            root: Trace id of a request that belongs to no trace yet; 0 where it is not sampled.
        """
        context, trace_id = self._context, root
        if not self.fields.isdisjoint(given):
            context = self._extract(given, context)
            trace_id = self._current(context).get_span_context().trace_id or self._new_id()
            if not self._samples(context, trace_id):
                return
        if self._is_off or not trace_id:
            return
        tracer: Any = copy(self._tracer)
        tracer.id_generator = self._one_trace(trace_id)
        name = record.method.removeprefix("/")
        span = tracer.start_span(name, context, self._kind, start_time=record.began_ns)
        place = span.get_span_context()
        flags = int(place.trace_flags)
        record.traceparent = f"00-{place.trace_id:032x}-{place.span_id:016x}-{flags:02x}"
        record.trace = RequestTrace(tracer, span)

    def new_root(self) -> int:
        """Return the trace id of a request that belongs to no trace yet; 0 if it is not sampled.

        A sampler by ratio compares the id with a bound, which is done here: asked for each request,
        it would take ten times as long.
        """
        if self._is_off:
            return 0
        trace_id = self._new_id()
        if self._bound is None:
            sampled = self._samples(self._context, trace_id)
        else:
            sampled = trace_id & self._bits < self._bound
        return trace_id if sampled else 0

    def _samples(self, context: Context, trace_id: int) -> bool:
        decided = self._decide(context, trace_id, "request", self._kind)
        return bool(decided.decision.is_recording())

    def end(self, record: RequestRecord) -> None:
        """End the span of a request, with what its record says."""
        if record.trace is None:
            return
        span = record.trace.span
        attributes: dict[str, Any] = {
            "gru_serve.request_id": record.request_id,
            "gru_serve.model": record.model,
            "gru_serve.version": record.version,
            "gru_serve.signature": record.signature,
            "gru_serve.status": record.status,
            "client.address": record.client.rpartition(":")[0].strip("[]"),
        }
        if record.transport == "REST":
            path = record.route.partition("?")[0]
            attributes["http.request.method"] = record.method
            attributes["http.response.status_code"] = record.http_status
            attributes["url.path"] = path
            if record.version is not None:  # clients choose paths; those that exist are few
                span.update_name(f"{record.method} {path}")
        else:
            attributes["rpc.system"] = "grpc"
            attributes["rpc.grpc.status_code"] = Code[record.status].value
        span.set_attributes({k: v for k, v in attributes.items() if v not in ("", None)})
        if record.status in _FAULTS:
            _fail(span, record.status)
        span.end()

    def close(self) -> None:
        """Send what waits."""
        self._provider.shutdown()


def _configured() -> TracerProvider:
    """Return the provider that the `OTEL_*` variables describe, by the configurator of the SDK.

    Where they say nothing, traces go to a collector on this machine by OTLP over gRPC, and the
    service is `gru-serve`.
    """
    import opentelemetry.exporter.otlp.proto.grpc  # noqa: F401 (its absence names the extra)
    from opentelemetry import trace
    from opentelemetry.sdk._configuration import _OTelSDKConfigurator  # as distributions of it do

    os.environ.setdefault("OTEL_TRACES_EXPORTER", "otlp")
    if "service.name=" not in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        os.environ.setdefault("OTEL_SERVICE_NAME", "gru-serve")
    configurator: Any = _OTelSDKConfigurator
    try:
        configurator().configure()
    except (RuntimeError, ValueError) as error:
        raise InvalidArgument(f"--tracing, by the OTEL_* variables: {error}") from None
    provider: Any = trace.get_tracer_provider()
    return provider  # type: ignore[no-any-return]


def _no_context() -> Context:
    """Return an empty context, instead of that of the thread."""
    from opentelemetry.context import Context

    return Context()


def _fail(span: Span, text: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_status(Status(StatusCode.ERROR, text))
