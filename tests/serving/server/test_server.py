"""The server as a process: how it serves, follows its configuration, and stops."""

import shutil
import signal
import socket
import threading

import grpc
import httpx
import numpy as np
import pytest

from gru_serving.client import connect
from gru_serving.errors import NotFound, Unavailable
from tests.ports import free_ports
from tests.serving.certificate import certificate
from tests.serving.server.spin import steps_of
from tests.serving.servers import answers, models_flag, running, start, wait_until, wait_until_busy


@pytest.mark.slow
def test_a_broken_model_alone_does_not_serve(models, tmp_path):
    (tmp_path / "broken" / "1").mkdir(parents=True)
    bases = {"affine": models / "affine", "broken": tmp_path / "broken"}
    flags = (models_flag(tmp_path, bases), "--isolate_models")
    with running(tmp_path / "log", *flags) as server:
        assert answers(server)
        with connect(server.grpc) as client:
            client.predict({"x": np.ones((1, 3)), "b": np.zeros((1, 1))}, "affine")
            with pytest.raises(NotFound):
                client.predict({"x": np.ones((1, 3)), "b": np.zeros((1, 1))}, "broken")
        listed = httpx.get(f"{server.rest}/models", trust_env=False).json()["models"]
        assert [one["versions"][0]["state"] for one in listed][1] == "LOADING"
        assert "continuing without a version to serve for: broken" in server.log.read_text()


def test_life(models, tmp_path):
    """Ports closed until a model is there, hot swap, flags without effect, drain, status 0."""
    base = tmp_path / "base"
    base.mkdir()
    flags = (
        f"--model_base_path={base}",
        "--model_name=affine",
        "--rest_api_enable_cors_support",
        "--enable_serialization_as_tensor_content=true",
        "--mixed_precision=bfloat16",
        f"--grpc_socket_path={tmp_path}/grpc.sock",
    )
    with running(tmp_path / "log", *flags, ready=False, cold=True) as server:
        wait_until(lambda: "No versions of servable affine" in server.log.read_text(), server)
        for port in (server.port, server.rest_port):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), 1).close()
        shutil.copytree(models / "affine" / "1", tmp_path / "aside")
        (tmp_path / "aside").rename(base / "1")
        wait_until(lambda: answers(server), server)

        said = server.log.read_text()
        assert "--mixed_precision=bfloat16: accepted, but has no effect in this server" in said
        assert f"127.0.0.1:{server.port}" in said
        assert f"localhost:{server.rest_port}" in said

        cors = httpx.get(f"{server.rest}/v1/models/nix", trust_env=False)
        assert cors.status_code == 404
        assert cors.headers["access-control-allow-origin"] == "*"
        assert cors.headers["access-control-allow-methods"] == "POST, GET"
        assert cors.headers["access-control-allow-headers"] == "Content-Type"

        one = {"x": np.ones((1, 3)), "b": np.zeros((1, 1))}
        with connect(f"unix://{tmp_path}/grpc.sock") as client:
            np.testing.assert_array_equal(client.predict(one, "affine")["y"], [[9, 12]])
        assert content_is_raw(server)

        shutil.copytree(models / "affine" / "3", tmp_path / "aside")
        (tmp_path / "aside").rename(base / "2")
        with connect(server.rest) as client:
            wait_until(lambda: client.status("affine")[-1].state == "END")
            np.testing.assert_array_equal(client.predict(one, "affine")["y"], [[90, 120]])
            assert [s.state for s in client.status("affine")] == ["AVAILABLE", "END"]

        slow = {}
        with connect(server.grpc, timeout=60) as client:
            client.metadata("affine")
            steps = np.int64(steps_of(client, 2, "affine"))
            asking = threading.Thread(
                target=lambda: slow.update(client.predict(steps, "affine", signature="spin"))
            )
            asking.start()
            wait_until_busy(server)
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: not answers(server))
            asking.join()
        assert slow["x"].shape == ()
        assert server.process.wait(90) == 0
        assert server.log.read_text().rstrip().endswith("Stopped.")


def content_is_raw(server):
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    request = predict_pb2.PredictRequest()
    request.model_spec.name = "affine"
    request.inputs["x"].CopyFrom(tf.make_tensor_proto(np.ones((1, 3), np.float32)))
    request.inputs["b"].CopyFrom(tf.make_tensor_proto(np.ones((1, 1), np.float32)))
    with grpc.insecure_channel(server.grpc) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        y = stub.Predict(request, timeout=20).outputs["y"]
    return y.tensor_content == np.float32([[10, 13]]).tobytes() and not y.float_val


def status_of(client, model):
    try:
        return client.status(model)[0].state
    except NotFound:
        return None


@pytest.mark.slow
def test_config_file_is_polled_and_reloaded(models, tmp_path):
    from gru_serving.protos.model_management_pb2 import ReloadConfigRequest
    from gru_serving.protos.services import MODEL_SERVICE, Stub

    entry = 'config {{ name: "{0}" base_path: "{1}/{0}" model_platform: "tensorflow" }}'
    both = [entry.format(name, models) for name in ("affine", "half_plus_two")]
    config = tmp_path / "models.config"
    config.write_text(f"model_config_list {{ {both[0]} }}")
    flags = (f"--model_config_file={config}", "--model_config_file_poll_wait_seconds=1")
    with running(tmp_path / "log", *flags) as server, connect(server.rest) as client:
        assert status_of(client, "half_plus_two") is None
        config.write_text(f"model_config_list {{ {' '.join(both)} }}")
        wait_until(lambda: status_of(client, "half_plus_two") == "AVAILABLE", server)
        config.write_text("nonsense")
        wait_until(lambda: "failed to ReloadConfig: INVALID_ARGUMENT" in server.log.read_text())
        assert client.predict([[2.0]], "half_plus_two")["y"] == 3
        config.write_text("")  # as a reader sees it between truncating and writing
        wait_until(lambda: "Cannot transition to requested config" in server.log.read_text())
        config.write_text(f"model_config_list {{ {both[1].replace('flow', 'flow_x')} }}")
        wait_until(lambda: "new platform requested is tensorflow_x" in server.log.read_text())
        nested = 1000
        config.write_text(  # deeper than the parser allows, for which TF Serving has no error
            "custom_model_config { [type.googleapis.com/tensorflow.serving.ModelServerConfig] {"
            * nested
            + "}}" * nested
        )
        wait_until(lambda: "RecursionError" in server.log.read_text())
        assert status_of(client, "affine") == status_of(client, "half_plus_two") == "AVAILABLE"
        config.write_text(
            f"model_config_list {{ {' '.join(both)} {entry.format('echo', models)} }}"
        )
        wait_until(lambda: status_of(client, "echo") == "AVAILABLE", server)

        config.unlink()
        request = ReloadConfigRequest()
        request.config.model_config_list.config.add(
            name="renamed", base_path=f"{models}/half_plus_two", model_platform="tensorflow"
        )
        with grpc.insecure_channel(server.grpc) as channel:
            stub = Stub(channel, MODEL_SERVICE)
            assert stub.HandleReloadConfigRequest(request, timeout=60).status.error_code == 0
        assert client.predict([[2.0]], "renamed")["y"] == 3
        wait_until(lambda: status_of(client, "affine") == "END")


@pytest.mark.slow
def test_stop_while_waiting_for_a_model(tmp_path):
    port, _ = free_ports(2)
    log = tmp_path / "log"
    with log.open("wb") as out:
        base = tmp_path / "base"
        base.mkdir()
        flags = (f"--port={port}", f"--rest_api_port={port}", f"--model_base_path={base}")
        process = start(*flags, stdout=out, stderr=out)
    wait_until(lambda: "No versions of servable" in log.read_text())
    assert "--rest_api_port cannot be same as --port." in log.read_text()
    process.send_signal(signal.SIGINT)
    assert process.wait(90) == 0


def test_tls(models, tmp_path):
    key, cert = certificate(tmp_path)
    config = tmp_path / "ssl.config"
    quoted = [path.read_text().replace("\n", "\\n") for path in (key, cert)]
    config.write_text(f'server_key: "{quoted[0]}" server_cert: "{quoted[1]}"')
    flags = (f"--model_base_path={models}/half_plus_two", f"--ssl_config_file={config}")
    with running(tmp_path / "log", *flags) as server:
        url = f"grpcs://localhost:{server.port}"
        with connect(url, ca_file=str(cert)) as client:
            assert client.predict([[2.0]])["y"] == 3
        with connect(server.grpc, retries=0, timeout=5) as client, pytest.raises(Unavailable):
            client.status()
