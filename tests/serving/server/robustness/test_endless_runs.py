"""Runs that outlast their clients and the drain."""

import re
import signal
import time

import grpc
import httpx
import pytest
import tensorflow as tf
from tensorflow_serving.apis import (
    predict_pb2,
)

from tests.serving.servers import running, wait_until, wait_until_busy


class Counter(tf.Module):
    """Counts up to the largest number of a batch, which can take any time."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name="steps")])
    def serve(self, steps):
        end = tf.reduce_max(steps)
        return {
            "sum": steps + tf.while_loop(lambda i: i < end, lambda i: i + 1, [tf.zeros_like(end)])
        }


@pytest.fixture(scope="module")
def counter(tmp_path_factory):
    """Flags of a server whose model counts and that drains for one second, and how to ask it."""
    base = tmp_path_factory.mktemp("counter")
    module = Counter()
    tf.saved_model.save(module, str(base / "1"), signatures=module.serve)
    monitoring = base / "monitoring.config"
    monitoring.write_text("prometheus_config { enable: true }")
    return (
        f"--model_base_path={base}",
        "--model_name=m",
        "--drain_seconds=1",
        f"--monitoring_config_file={monitoring}",
    )


def endless(channel, server):
    """A call that is under way, and whose answer would take days."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "m"
    request.inputs["steps"].CopyFrom(tf.make_tensor_proto([10**15], tf.int64))
    call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
    future = call.future(request.SerializeToString(), timeout=100)
    wait_until_busy(server)
    return future


BATCHED = pytest.mark.parametrize("batching", [(), ("--enable_batching",)], ids=["", "batched"])


@pytest.mark.slow
@BATCHED
def test_requests_longer_than_the_drain_are_ended(counter, tmp_path, batching):
    """SIGTERM does not wait forever: the run is ended, the client gets an error, status 0."""
    with running(tmp_path / "log", *counter, *batching) as server:
        with grpc.insecure_channel(server.grpc) as channel:
            asked = endless(channel, server)
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(60) == 0
            assert asked.exception().code() in (
                grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE,
            )  # fmt: skip
        assert "Cancelling the requests that are still in progress" in server.log.read_text()
        assert "Traceback" not in server.log.read_text()


@pytest.mark.slow
@BATCHED
def test_a_run_whose_client_left_keeps_no_server_from_stopping(counter, tmp_path, batching):
    with running(tmp_path / "log", *counter, *batching) as server:
        with grpc.insecure_channel(server.grpc) as channel:
            asked = endless(channel, server)
            asked.cancel()
            time.sleep(0.5)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        assert "Traceback" not in server.log.read_text()


@pytest.mark.slow
def test_what_a_client_gives_up_is_no_fault_of_the_server(counter, tmp_path):
    """Alerts count INTERNAL as the model's fault, so TF Serving's metric must not say that."""
    with running(tmp_path / "log", *counter, "--enable_batching") as server:
        with grpc.insecure_channel(server.grpc) as channel:
            endless(channel, server).cancel()
        page = f"{server.rest}/monitoring/prometheus/metrics"

        def counted():
            text = httpx.get(page, trust_env=False, verify=False).text
            return re.findall(
                r'^:tensorflow:serving:request_count\{.*status="(\w+)"\} 1$', text, re.M
            )

        wait_until(counted, server)
        assert counted() == ["CANCELLED"]
