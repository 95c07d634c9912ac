"""Runs that outlast their clients and the drain."""

import re
import signal
import socket
import time

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import (
    predict_pb2,
)

from tests.serving.scrape import page_of
from tests.serving.servers import metrics_flag, running, wait_until, wait_until_busy


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
    return (
        f"--model_base_path={base}",
        "--model_name=m",
        "--drain_seconds=1",
        metrics_flag(base),
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
def test_requests_that_wait_longer_than_the_drain_are_told_so(counter, tmp_path):
    """One waits for the rest of its body, and one for others to fill its batch."""
    (tmp_path / "batching").write_text("batch_timeout_micros { value: 60000000 }")
    batching = ("--enable_batching", f"--batching_parameters_file={tmp_path / 'batching'}")
    head = b"POST /v1/models/m:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n\r\n"
    with running(tmp_path / "log", *counter, *batching) as server:
        asked = [socket.create_connection(("localhost", server.rest_port), 60) for _ in range(2)]
        for connection, body in zip(asked, (b'{"inputs": ', b'{"inputs": [1]}'), strict=True):
            connection.sendall(head + body)
        wait_until(lambda: ":input_batch_size_count{} 1\n" in page_of(server), server)
        server.process.send_signal(signal.SIGTERM)
        answers = [connection.makefile("rb").read() for connection in asked]
        assert server.process.wait(60) == 0
        for answer, connection in zip(answers, asked, strict=True):
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert answer.endswith(b'{\n    "error": "the server is stopping"\n}')
            connection.close()
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

        def counted():
            pattern = r'^:tensorflow:serving:request_count\{.*status="(\w+)"\} 1$'
            return re.findall(pattern, page_of(server), re.M)

        wait_until(counted, server)
        assert counted() == ["CANCELLED"]
