"""A server with batching, TFLite, the profiler and a session config, over its sockets."""

import http.client
import json
import shutil
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import grpc
import httpx
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import model_management_pb2, model_service_pb2_grpc

from gru_serving.client import connect
from gru_serving.conformance.models import Affine
from gru_serving.errors import ResourceExhausted, ServingError
from gru_serving.protos.profiler_service_pb2 import MonitorRequest, ProfileRequest, TerminateRequest
from gru_serving.protos.services import PROFILER_SERVICE, Stub
from tests.serving.scrape import parsed
from tests.serving.servers import running, wait_until

MODELS = """
model_config_list {{
  config {{ name: "affine" base_path: "{root}/affine" model_platform: "tensorflow" }}
  config {{ name: "echo" base_path: "{root}/echo" model_platform: "tensorflow" }}
  config {{ name: "text" base_path: "{root}/text" model_platform: "tensorflow" }}
  config {{ name: "lite" base_path: "{lite}" model_platform: "tensorflow" }}
}}
"""
BATCHING = """
max_batch_size { value: 64 }  batch_timeout_micros { value: 20000 }
num_batch_threads { value: 2 }  allowed_batch_sizes: 8  allowed_batch_sizes: 64
"""


@pytest.fixture(scope="module")
def optioned(models, tmp_path_factory):
    directory = tmp_path_factory.mktemp("optioned")
    version = shutil.copytree(models / "affine" / "1", directory / "lite" / "1")
    module = Affine(1000.0)
    tf.saved_model.save(module, str(directory / "saved"), signatures=module.serve)
    converter = tf.lite.TFLiteConverter.from_saved_model(str(directory / "saved"))
    (version / "model.tflite").write_bytes(converter.convert())
    files = {
        "models": MODELS.format(root=models, lite=directory / "lite"),
        "batching": BATCHING,
        "monitoring": "prometheus_config { enable: true }",
        "session": "intra_op_parallelism_threads: 1",
    }
    for name, text in files.items():
        (directory / name).write_text(text)
    flags = (
        f"--model_config_file={directory}/models",
        "--enable_batching",
        f"--batching_parameters_file={directory}/batching",
        f"--monitoring_config_file={directory}/monitoring",
        f"--tensorflow_session_config_file={directory}/session",
        "--enable_profiler",
        "--prefer_tflite_model",
        "--num_tflite_pools=2",
        "--num_load_threads=2",
        "--num_unload_threads=2",
        "--grpc_max_threads=32",
        "--rest_api_num_threads=32",
        "--strict_integers",
    )
    with running(directory / "log", *flags) as server:
        yield server


def metrics(server):
    page = f"{server.rest}/monitoring/prometheus/metrics"
    return parsed(httpx.get(page, trust_env=False, verify=False).content)


@pytest.mark.parametrize(("dtype", "value"), [("uint8", 256), ("uint8", -1), ("int16", 40000)])
def test_strict_integers(optioned, server, dtype, value):
    """As in TF Serving they wrap around, unless the flag refuses them."""
    body = {"signature_name": dtype, "instances": [value]}
    wrapped, refused = (
        httpx.post(f"{one.rest}/v1/models/echo:predict", json=body, trust_env=False)
        for one in (server, optioned)
    )
    assert wrapped.json() == {"predictions": [int(np.array(value).astype(dtype))]}
    assert refused.status_code == 400
    assert f"is not of expected type: {dtype}" in refused.json()["error"]


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["rest", "grpc"])
def test_concurrent_requests_are_merged(optioned, transport):
    name = ":tensorflow:serving:batching_session:"
    before = metrics(optioned)
    kernel = np.array([[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]])

    def ask(i):
        x = np.full((1 + i % 2, 3), float(i))
        y = client.predict({"x": x, "b": np.zeros((len(x), 1))}, "affine")["y"]
        np.testing.assert_allclose(y, x @ kernel, rtol=1e-5)

    with connect(getattr(optioned, transport)) as client, ThreadPoolExecutor(16) as threads:
        list(threads.map(ask, range(64)))
    after = metrics(optioned)

    def growth(metric, labels=()):
        return after[name + metric][labels] - before.get(name + metric, {}).get(labels, 0)

    assert growth("input_batch_size_count") == 2 * 64  # two inputs each
    assert growth("queuing_latency_count", ("",)) == 64
    assert growth("wrapped_run_count") < 48
    sizes = {int(size) for (size,) in after[f"{name}padding_size_count"]}
    assert sizes <= {8, 64}


def test_errors_of_the_batcher(optioned):
    rows = {"x": [[1.0] * 3] * 65, "b": [[1.0]] * 65}
    refused = httpx.post(f"{optioned.rest}/v1/models/affine:predict", json={"inputs": rows})
    assert refused.status_code == 400
    assert refused.json() == {"error": "Task size 65 is larger than maximum input batch size 64"}
    for url in (optioned.rest, optioned.grpc):
        with connect(url) as client:
            # Our own client takes the hint, and asks again in parts.
            inputs = {name: np.array(values) for name, values in rows.items()}
            assert len(client.predict(inputs, "affine")["y"]) == 65
            with pytest.raises(ServingError, match="Batched output tensor has 0 dimensions"):
                client.predict(np.ones((2, 3)), "affine", signature="total")


def test_tflite_model(optioned):
    with connect(optioned.grpc) as client:
        y = client.predict({"x": np.ones((2, 3)), "b": np.zeros((2, 1))}, "lite")["y"]
        np.testing.assert_array_equal(y, [[9000, 12000]] * 2)
        assert list(client.metadata("lite").signatures) == ["serving_default"]


def test_reload_reports_metrics(optioned, models):
    request = model_management_pb2.ReloadConfigRequest()
    entry = request.config.model_config_list.config.add
    for name, base in (("affine", "affine"), ("text", "text"), ("again", "affine")):
        entry(name=name, base_path=f"{models}/{base}", model_platform="tensorflow")
    loads = "/tensorflow/cc/saved_model/load_attempt_count"
    request.metric_names.extend([loads, "/tensorflow/serving/nix", loads])
    with grpc.insecure_channel(optioned.grpc) as channel:
        stub = model_service_pb2_grpc.ModelServiceStub(channel)
        response = stub.HandleReloadConfigRequest(request, timeout=60)
    assert response.status.error_code == 0
    assert len(response.metric) == 2
    increases = {metric.name: metric.int64_value_increase for metric in response.metric}
    assert increases == {loads: 1, "/tensorflow/serving/nix": 0}


def test_profiler(optioned, tmp_path):
    """TensorFlow's own client asks for a trace; the server writes it where the client said."""
    logdir = tmp_path / "logs"
    tf.profiler.experimental.client.trace(f"grpc://{optioned.grpc}", str(logdir), 300)
    (trace,) = logdir.glob("plugins/profile/*/*.xplane.pb")
    assert b"/host:CPU" in trace.read_bytes()


def test_profiler_over_grpc(optioned, tmp_path):
    with grpc.insecure_channel(optioned.grpc) as channel:
        stub = Stub(channel, PROFILER_SERVICE)
        request = ProfileRequest(
            duration_ms=60_000, repository_root=str(tmp_path), session_id="s", host_name="h:1"
        )
        recording = stub.Profile.future(request, timeout=120)
        while not recording.done():
            stub.Terminate(TerminateRequest(session_id="s"), timeout=60)
        assert not recording.result().empty_trace
        assert (tmp_path / "s" / "h_1.xplane.pb").stat().st_size > 0
        for wrong, text in (
            (ProfileRequest(duration_ms=1), "needs repository_root and session_id"),
            (ProfileRequest(repository_root="/x", session_id="../s"), "must be a plain name"),
            (ProfileRequest(repository_root="/proc/x", session_id="s"), "cannot write the profile"),
        ):
            with pytest.raises(grpc.RpcError) as caught:
                stub.Profile(wrong, timeout=20)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert text in caught.value.details()
        with pytest.raises(grpc.RpcError) as caught:
            stub.Monitor(MonitorRequest(duration_ms=1), timeout=20)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.fixture(scope="module")
def narrow(models, tmp_path_factory):
    """The opposite: as little of everything as one can ask for."""
    flags = (
        f"--model_base_path={models}/affine",
        "--model_name=affine",
        "--bind_address=127.0.0.2",
        "--grpc_max_threads=1",
        "--rest_api_num_threads=1",
        "--rest_api_timeout_in_ms=0",
        "--grpc_channel_arguments=grpc.max_receive_message_length=10000",
    )
    log = tmp_path_factory.mktemp("narrow") / "log"
    with running(log, *flags, ready=False) as server:
        wait_until(lambda: accepts("127.0.0.2", server.rest_port), server)
        yield server


def accepts(host, port):
    try:
        socket.create_connection((host, port), 1).close()
    except OSError:
        return False
    return True


def test_no_profiler_unless_asked_for(narrow):
    with grpc.insecure_channel(f"127.0.0.2:{narrow.port}") as channel:
        with pytest.raises(grpc.RpcError) as caught:
            Stub(channel, PROFILER_SERVICE).Profile(ProfileRequest(), timeout=20)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_bind_address(narrow):
    for port in (narrow.port, narrow.rest_port):
        assert accepts("127.0.0.2", port)
        assert not accepts("127.0.0.1", port)


def test_channel_arguments(narrow):
    with connect(f"grpc://127.0.0.2:{narrow.port}") as client:
        small, large = ({"x": np.ones((n, 3)), "b": np.ones((n, 1))} for n in (10, 5000))
        assert client.predict(small, "affine")["y"].shape == (10, 2)
        with pytest.raises(ResourceExhausted, match="larger than max"):
            client.predict(large, "affine")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_one_thread_runs_one_model_at_a_time(narrow, scheme):
    """The second request is answered second, however small it is."""
    port = narrow.rest_port if scheme == "http" else narrow.port
    small = {"x": np.ones((1, 3)), "b": np.zeros((1, 1))}
    ended = {}
    with connect(f"{scheme}://127.0.0.2:{port}", timeout=60) as client:
        client.predict(small, "affine")
        steps = 20_000
        while True:
            started = time.monotonic()
            client.predict(np.int64(steps), "affine", signature="spin")
            if time.monotonic() - started > 1:
                break
            steps *= 2
        with ThreadPoolExecutor(2) as threads:
            slow = threads.submit(client.predict, np.int64(4 * steps), "affine", signature="spin")
            slow.add_done_callback(lambda _: ended.update(slow=time.monotonic()))
            time.sleep(1)
            quick = threads.submit(client.predict, small, "affine")
            quick.add_done_callback(lambda _: ended.update(quick=time.monotonic()))
    # The two answers leave at almost the same time, and either thread may wake first.
    assert ended["quick"] > ended["slow"] - 0.5


@pytest.mark.slow
def test_idle_connections_stay_open_for_so_long(models, tmp_path):
    """uvicorn itself ends them after five seconds. And what a client claims as its address is not
    believed.
    """
    flags = (
        "--model_name=affine", f"--model_base_path={models}/affine",
        "--rest_keep_alive_seconds=12", f"--access_log={tmp_path / 'access'}",
    )  # fmt: skip
    with (
        running(tmp_path / "log", *flags) as server,
        closing(
            http.client.HTTPConnection("127.0.0.1", server.rest_port, timeout=120)
        ) as connection,
    ):
        for pause in (0, 6):
            time.sleep(pause)
            connection.request("GET", "/v1/models/affine", headers={"X-Forwarded-For": "6.6.6.6"})
            assert connection.getresponse().read()
        source = connection.sock.getsockname()
        started = time.monotonic()
        assert connection.sock.recv(1) == b""  # closed
        assert 6 < time.monotonic() - started < 60
    lines = [json.loads(line) for line in (tmp_path / "access").read_text().splitlines()]
    asked = [line for line in lines if line["route"] == "/v1/models/affine"]
    assert [line["client"] for line in asked] == ["{}:{}".format(*source)] * 2
