"""Traces and ids of requests over REST and gRPC, sent to a receiver of OTLP on a real socket."""

import asyncio
import concurrent.futures
import gzip
import http.server
import json
import threading
import uuid

import grpc
import httpx
import numpy as np
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio, TraceIdRatioBased
from tensorflow_serving.apis.prediction_service_pb2_grpc import PredictionServiceStub

from gru_serving.server.grpc.services import PredictionService
from gru_serving.server.rest.app import Api
from gru_serving.server.rest.guards import Observed
from gru_serving.telemetry.request_record import RequestRecord
from gru_serving.telemetry.tracing import Identities, Tracing
from keras_gru.convert.onnx_graph import OnnxGraph
from tests.serving.messages import predict
from tests.serving.server.ended_server import failure
from tests.serving.servers import models_flag, running
from tests.serving.trace_receiver import attributes, receiving

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
BATCHING = """
max_batch_size {{ value: {size} }} batch_timeout_micros {{ value: 300000 }}
num_batch_threads {{ value: 2 }}
"""
MERGED = 8


class Traced:
    """A server that traces, what it traces to, and how it is asked over each transport."""

    def __init__(self, server, receiver, access):
        self.server = server
        self.receiver = receiver
        self.access = access

    def ask(self, transport, model, **headers):
        """Send a request that succeeds; its answer's headers or trailing metadata."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if transport == "rest":
            url = f"{self.server.rest}/v1/models/{model}:predict"
            body = {name: array.tolist() for name, array in INPUTS[model].items()}
            answer = httpx.post(
                url, json={"inputs": body}, headers=headers, trust_env=False, timeout=60
            )
            assert answer.status_code == 200, answer.text
            return answer.headers
        with grpc.insecure_channel(self.server.grpc) as channel:
            _, call = PredictionServiceStub(channel).Predict.with_call(
                predict(model, **INPUTS[model]), metadata=list(headers.items()), timeout=60
            )
            return dict(call.trailing_metadata())


INPUTS = {
    "affine": {"x": np.ones((1, 3), np.float32), "b": np.zeros((1, 1), np.float32)},
    "twice": {"x": np.ones((1, 2), np.float32)},
}


@pytest.fixture(scope="module", params=["alone", "batched"])
def traced(request, models, tmp_path_factory):
    """A server of a model that TensorFlow runs and of one that ONNX Runtime runs."""
    folder = tmp_path_factory.mktemp("traced")
    batching = folder / "batching.config"
    graph = OnnxGraph()
    x = graph.input("x", "float32", (None, 2))
    graph.output("y", graph.add("Add", x, x), "float32", (None, 2))
    (folder / "twice" / "1").mkdir(parents=True)
    graph.write(folder / "twice" / "1" / "model.onnx", "twice")
    batching.write_text(BATCHING.format(size=MERGED))
    bases = {"affine": models / "affine", "twice": folder / "twice"}
    flags = [models_flag(folder, bases), "--tracing", f"--access_log={folder / 'access'}"]
    if request.param == "batched":
        flags += ["--enable_batching", f"--batching_parameters_file={batching}"]
    with receiving() as (receiver, url), pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        patch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=tests")
        with running(folder / "log", *flags, "--max_num_load_retries=0") as server:
            traced = Traced(server, receiver, folder / "access")
            traced.batched = request.param == "batched"
            yield traced


@pytest.mark.parametrize("model", ["affine", "twice"])
@pytest.mark.parametrize("transport", ["rest", "grpc"])
def test_the_way_of_a_request_is_in_the_trace_of_its_client(traced, transport, model):
    trace = uuid.uuid4().hex
    asked = f"asked-{transport}-{model}"
    answered = traced.ask(
        transport, model, traceparent=f"00-{trace}-{PARENT}-01", x_request_id=asked
    )
    waits = ["queue", "batch"] if traced.batched else []
    root_name = {
        "rest": f"POST /v1/models/{model}:predict",
        "grpc": "tensorflow.serving.PredictionService/Predict",
    }[transport]
    names = ["decode", *waits, "run", "encode"]
    (root,), *parts = traced.receiver.named(trace, root_name, *names)
    assert all(len(part) == 1 for part in parts)
    parts = dict(zip(names, (part for (part,) in parts), strict=True))
    assert root.parent_span_id.hex() == PARENT
    assert root.kind == trace_pb2.Span.SPAN_KIND_SERVER
    below = {name: parts["batch" if name == "run" and traced.batched else name] for name in names}
    for name, part in parts.items():
        parent = parts["batch"] if name == "run" and traced.batched else root
        assert part.parent_span_id == parent.span_id, name
        assert root.start_time_unix_nano - 1e6 <= part.start_time_unix_nano
        assert part.end_time_unix_nano <= root.end_time_unix_nano + 1e6
    order = [below[name].start_time_unix_nano for name in names]
    assert order == sorted(order)
    told = attributes(root)
    assert told["gru_serve.model"] == model
    assert told["gru_serve.signature"] == "serving_default"
    assert told["gru_serve.status"] == "OK"
    assert told["gru_serve.request_id"] == asked
    # The answer and the access log say the same.
    assert answered["x-request-id"] == asked
    version, told_trace, told_span, sampled = answered["traceparent"].split("-")
    assert (version, told_trace, told_span) == ("00", trace, root.span_id.hex())
    assert int(sampled, 16) & 1
    (line,) = [
        one for one in map(json.loads, traced.access.read_text().splitlines())
        if one["request_id"] == asked
    ]  # fmt: skip
    assert line["trace_id"] == trace
    service = traced.receiver.resources[-1]
    assert service["service.name"] == "gru-serve"
    assert service["deployment.environment"] == "tests"


@pytest.mark.parametrize("model", ["affine", "twice"])
def test_requests_of_one_batch_are_linked_with_its_run(traced, model):
    if not traced.batched:
        pytest.skip("of servers that merge requests")
    with concurrent.futures.ThreadPoolExecutor(MERGED) as threads:
        transports = ["rest", "grpc"] * (MERGED // 2)
        answers = list(threads.map(lambda one: traced.ask(one, model), transports))
    traces = [answer["traceparent"].split("-")[1] for answer in answers]
    assert len(set(traces)) == MERGED
    batches = [traced.receiver.named(trace, "queue", "batch")[1][0] for trace in traces]
    runs = {
        span.span_id: span
        for trace in traces
        for span in traced.receiver.of_trace(trace)
        if span.name == "run"
    }
    for batch in batches:
        (link,) = batch.links
        assert batch.span_id in {back.span_id for back in runs[link.span_id].links}
        assert runs[link.span_id].trace_id == link.trace_id
    shared = [run for run in runs.values() if len(run.links) > 1]
    assert shared
    for run in shared:
        assert attributes(run)["gru_serve.batch.requests"] == len(run.links)
        assert run.parent_span_id in {link.span_id for link in run.links}


@pytest.mark.parametrize("transport", ["rest", "grpc"])
def test_errors_have_ids_and_traces(traced, transport):
    if transport == "rest":
        url = f"{traced.server.rest}/v1/models/nix:predict"
        answer = httpx.post(url, content=b"{", trust_env=False)
        answered, status = answer.headers, "INVALID_ARGUMENT"
    else:
        with (
            grpc.insecure_channel(traced.server.grpc) as channel,
            pytest.raises(grpc.RpcError) as caught,
        ):
            PredictionServiceStub(channel).Predict(predict("nix", **INPUTS["affine"]), timeout=60)
        answered, status = dict(caught.value.trailing_metadata()), "NOT_FOUND"
    trace = answered["traceparent"].split("-")[1]
    root = "POST" if transport == "rest" else "tensorflow.serving.PredictionService/Predict"
    (span,), (decode,) = traced.receiver.named(trace, root, "decode")
    assert attributes(span)["gru_serve.status"] == status
    assert attributes(span)["gru_serve.request_id"] == answered["x-request-id"]
    assert span.status.code == trace_pb2.Status.STATUS_CODE_UNSET  # it is the client's fault
    assert decode.status.code == trace_pb2.Status.STATUS_CODE_ERROR


def test_probes_have_ids_and_no_traces(traced):
    sent = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    answer = httpx.get(f"{traced.server.rest}/readyz", headers=sent, trust_env=False)
    assert answer.headers["traceparent"] == sent["traceparent"]
    traced.ask("rest", "affine")
    assert traced.receiver.of_trace(TRACE) == []


@pytest.mark.parametrize("given", ["", "two words", "x" * 129, "\xe9"])
def test_an_id_that_is_none_is_replaced(traced, given):
    url = f"{traced.server.rest}/v1/models/affine"
    sent = {"x-request-id": given.encode("latin-1")}
    answer = httpx.get(url, headers=sent, trust_env=False)
    assert answer.headers["x-request-id"] != given
    assert len(answer.headers["x-request-id"]) == 32


class HttpReceiver(http.server.BaseHTTPRequestHandler):
    """A collector that takes OTLP over HTTP, and keeps the spans in its server's list."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        request = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
        for one in request.resource_spans:
            self.server.spans += [span for scope in one.scope_spans for span in scope.spans]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments):
        pass


def test_the_variables_choose_protocol_and_sampler(models, tmp_path):
    """Over HTTP; of the requests here only one belongs to a trace that its client samples."""
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), HttpReceiver) as receiver,
        pytest.MonkeyPatch.context() as patch,
    ):
        receiver.spans = []
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{receiver.server_port}"
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        patch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        patch.setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
        patch.setenv("OTEL_SERVICE_NAME", "mine")
        flags = ("--model_name=affine", f"--model_base_path={models / 'affine'}", "--tracing")
        with running(tmp_path / "log", *flags) as server:
            traced = Traced(server, None, None)
            alone = traced.ask("rest", "affine")
            assert "traceparent" not in alone
            assert len(alone["x-request-id"]) == 32
            unsampled = f"00-{uuid.uuid4().hex}-{PARENT}-00"
            assert traced.ask("grpc", "affine", traceparent=unsampled)["traceparent"] == unsampled
            traced.ask("grpc", "affine", traceparent=f"00-{TRACE}-{PARENT}-01")
        receiver.shutdown()
    assert {span.trace_id.hex() for span in receiver.spans} == {TRACE}
    assert {"decode", "queue", "run", "encode"} < {span.name for span in receiver.spans}


class Renamed(TraceIdRatioBased):
    """A sampler of somebody's own, with rules that its description does not tell."""

    def get_description(self):
        return "of one's own"


def test_an_exporter_that_is_none_ends_the_start(models):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_TRACES_EXPORTER", "nix")
        base = models / "affine"
        out = failure("--model_name=m", f"--model_base_path={base}", "--tracing")
    assert "INVALID_ARGUMENT: --tracing, by the OTEL_* variables: Requested component 'nix'" in out


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("kind", [ParentBasedTraceIdRatio, TraceIdRatioBased, Renamed])
def test_roots_are_sampled_as_the_sampler_says(kind, rate):
    drawn = []

    class Recorded(RandomIdGenerator):
        def generate_trace_id(self):
            drawn.append(super().generate_trace_id())
            return drawn[-1]

    sampler = kind(rate)
    tracing = Tracing(TracerProvider(sampler=sampler, id_generator=Recorded()))
    found = [tracing.new_root() for _ in range(300)]
    expected = [sampler.should_sample(None, one, "").decision.is_sampled() for one in drawn]
    assert found == [one if good else 0 for one, good in zip(drawn, expected, strict=True)]
    assert {bool(one) for one in found} == ({bool(rate)} if rate in (0, 1) else {True, False})


class Broken:
    """An inference with a fault of its own."""

    threads = turns = repository = None

    async def answer(self, request, record):
        raise ZeroDivisionError("a fault")


def test_lines_about_faults_name_the_request(caplog):
    sent = {"x-request-id": "asked-1"}
    app = Observed(Api(Broken()), [lambda _: None], Identities())
    transport = httpx.ASGITransport(app)

    async def ask():
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post("/v1/models/m:predict", content=b"{}", headers=sent)

    assert asyncio.run(ask()).status_code == 500
    record = RequestRecord("GRPC", "/s/M", request_id="asked-2")
    asyncio.run(PredictionService(Broken()).Predict(b"", Context(), record))
    rest, call = (line.getMessage() for line in caplog.records)
    assert rest == "POST /v1/models/m:predict failed (request asked-1)"
    assert call == "a gRPC call failed (request asked-2)"


class Context:
    """The context of a call that is answered in this process."""

    def set_code(self, code):
        self.code = code

    def set_details(self, details):
        self.details = details


def test_nothing_is_answered_where_nobody_wants_ids(server):
    """The session's server has metrics only."""
    sent = {"x-request-id": "asked-1", "traceparent": f"00-{TRACE}-{PARENT}-01"}
    url = f"{server.rest}/v1/models/affine"
    answer = httpx.get(url, headers=sent, trust_env=False)
    assert not answer.headers.keys() & sent.keys()
