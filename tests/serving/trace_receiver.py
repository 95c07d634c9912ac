"""A collector of traces: OTLP over gRPC on a real socket, by OpenTelemetry's own protos."""

from concurrent import futures
from contextlib import contextmanager

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from tests.waiting import wait_until


class TraceReceiver(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps the spans that it gets, and the attributes of their resources."""

    def __init__(self):
        self.spans = []
        self.resources = []

    def Export(self, request, context):  # noqa: N802
        for one in request.resource_spans:
            self.resources.append(attributes(one.resource))
            for scope in one.scope_spans:
                self.spans += scope.spans
        return trace_service_pb2.ExportTraceServiceResponse()

    def of_trace(self, trace_id):
        return [span for span in self.spans if span.trace_id.hex() == trace_id]

    def named(self, trace_id, *names):
        """The spans of a trace with these names, once all of them are there."""

        def found():
            return {span.name for span in self.of_trace(trace_id)} >= set(names)

        wait_until(found, 60, lambda: f"{[one.name for one in self.of_trace(trace_id)]}")
        return [[span for span in self.of_trace(trace_id) if span.name == name] for name in names]


def attributes(of):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in of.attributes}


@contextmanager
def receiving():
    """A receiver and its address, until the block ends."""
    receiver = TraceReceiver()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(receiver, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield receiver, f"http://127.0.0.1:{port}"
    finally:
        server.stop(0)
