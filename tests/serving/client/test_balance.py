"""Which server a gRPC client asks if a name has several addresses."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest

from gru_serving.client import connect
from gru_serving.protos.get_model_status_pb2 import GetModelStatusResponse

CALLS = 20


@contextmanager
def counting():
    """A server that answers every call with an empty status, and the number of its calls."""
    calls = []

    def answer(request, context):
        calls.append(request)
        return GetModelStatusResponse().SerializeToString()

    class Any(grpc.GenericRpcHandler):
        def service(self, call):
            return grpc.unary_unary_rpc_method_handler(answer)

    server = grpc.server(ThreadPoolExecutor(2), handlers=[Any()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}", calls
    finally:
        server.stop(None).wait()


@pytest.mark.parametrize("balance", [True, False])
def test_balance(balance):
    with counting() as (first, a), counting() as (second, b):
        with connect(f"grpc://ipv4:{first},{second}", balance=balance) as client:
            for _ in range(CALLS):
                client.status("m")
        assert len(a) + len(b) == CALLS
        least = min(len(a), len(b))
        # The second connection may be ready only after the first few calls.
        assert least >= CALLS // 4 if balance else least == 0
