"""What is no single request and answer of the gRPC API; those are the kit's cases."""

import asyncio
import tracemalloc

import grpc
import grpc.aio
import numpy as np
import pytest

from gru_serving.engine.worker_threads import WorkerThreads
from gru_serving.inference.service import Inference
from gru_serving.protos.services import PREDICTION_SERVICE, generic_handler
from gru_serving.repository.repository import Repository
from gru_serving.server.grpc.listener import DrainGate, TokenGuard
from gru_serving.server.grpc.services import PredictionService
from gru_serving.server.tokens import Tokens
from tests.serving.collector import collector_off
from tests.serving.messages import (
    multi_inference,
    predict,
    refused,
)

REFUSALS = {
    "the service": "NOT_FOUND.*\n.*Servable not found",
    "the tokens": "UNAUTHENTICATED",
    "the drain": "UNAVAILABLE.*\n.*the server is stopping",
}


@pytest.mark.slow_cases
@pytest.mark.parametrize("by", ["the service", "the tokens", "the drain"])
def test_refused_requests_are_not_kept(by, tmp_path):
    """Not even until the garbage collector runs: they may have many megabytes."""
    size = 4 << 20
    (tmp_path / "tokens").write_text("a-token-that-nobody-has\n")

    async def kept():
        gate = DrainGate()
        server = grpc.aio.server(
            handlers=[gate],
            interceptors=[TokenGuard(Tokens(str(tmp_path / "tokens")))] * (by == "the tokens"),
            options=[("grpc.max_receive_message_length", -1)],
        )
        if by == "the drain":
            await gate.close()
        port = server.add_insecure_port("localhost:0")
        with WorkerThreads(1, "test") as threads:
            service = PredictionService(Inference(Repository([]), threads))
            server.add_generic_rpc_handlers((generic_handler(PREDICTION_SERVICE, service),))
            await server.start()
            async with grpc.aio.insecure_channel(f"localhost:{port}") as channel:
                call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
                message = predict("nobody", x=np.zeros(size, np.uint8)).SerializeToString()
                tracemalloc.start()
                for _ in range(6):
                    with pytest.raises(grpc.RpcError, match=REFUSALS[by]):
                        await call(message)
                used, _ = tracemalloc.get_traced_memory()
                tracemalloc.stop()
            await server.stop(None)
        return used

    with collector_off():
        assert asyncio.run(kept()) < 3 * size


def test_long_messages_are_cut(stub):
    code, text = refused(stub.Predict, predict("n" * 5000))
    assert code == "NOT_FOUND"
    assert len(text) == 1024 + len("...TRUNCATED")
    assert text.endswith("...TRUNCATED")
    # Counted in bytes, but cut between characters.
    _, text = refused(stub.Predict, predict("n" + "é" * 700))
    kept = text.removesuffix("...TRUNCATED")
    assert kept != text
    assert len(kept.encode()) in (1023, 1024)


def test_multi_inference_of_signatures_with_inputs_of_their_own(stub):
    """A signature such as all TF2 exports have."""
    message = multi_inference(
        ("classify", "classify"), ("regress", "regress"), model="text", values=[b"good"]
    )
    first, second = stub.MultiInference(message, timeout=20).results
    classes = first.classification_result.classifications[0].classes
    assert [entry.label for entry in classes] == ["negative", "positive"]
    assert second.regression_result.regressions[0].value == pytest.approx(0.7310586)
    assert classes[1].score == pytest.approx(0.7310586)
