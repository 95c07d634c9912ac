"""Who may ask, over which transports: TLS, tokens, pages of other origins, refused flags."""

import asyncio

import grpc
import httpx
import numpy as np
import pytest
import tensorflow as tf

from gru_serving.config.flags import parse_flags
from gru_serving.errors import InvalidArgument, ServingError
from gru_serving.protos.model_management_pb2 import ReloadConfigRequest
from gru_serving.protos.services import MODEL_SERVICE, Stub
from gru_serving.server.listening import tls_context
from gru_serving.server.process import Server
from tests.ports import free_ports
from tests.serving.messages import predict
from tests.serving.raw_http import HALF_URL
from tests.serving.server.additions.equipped import (
    OTHER,
    TOKEN,
    bearer,
)
from tests.serving.servers import wait_until


def test_rest_speaks_tls_only(equipped):
    with httpx.Client(trust_env=False) as plain, pytest.raises(httpx.TransportError):
        plain.get(equipped.url.replace("https", "http") + "/readyz")
    with httpx.Client(trust_env=False) as distrustful, pytest.raises(httpx.ConnectError):
        distrustful.get(f"{equipped.url}/readyz")


def test_grpc_has_its_own_choice_of_tls(stub):
    response = stub.Predict(predict(x=np.float32([2])), timeout=20, metadata=bearer())
    assert tf.make_ndarray(response.outputs["y"]) == 3


@pytest.mark.parametrize("token", [None, "wrong-token-0123456789", TOKEN[:-1]])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", f"{HALF_URL}:predict"),
        ("GET", HALF_URL),
        ("GET", "/v1/models/nix"),
        ("GET", "/models"),
        ("GET", "/monitoring/prometheus/metrics"),
        ("OPTIONS", "/monitoring/prometheus/metrics"),
        ("OPTIONS", "/models"),
        ("GET", "/nix"),
    ],
)
def test_rest_refuses_without_token(equipped, token, method, path):
    with equipped.client(token) as client:
        response = client.request(method, path, content=b"{}" if method == "POST" else None)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.json() == {
        "error": "a bearer token is required: send 'Authorization: Bearer TOKEN', once"
    }


def test_of_two_tokens_none_is_good(equipped, stub, channel):
    """A proxy may have checked the other one."""
    with equipped.client(None) as client:
        two = [("authorization", f"Bearer {TOKEN}"), ("authorization", "Bearer x")]
        for headers in (two, two[::-1]):
            assert client.get("/models", headers=headers).status_code == 401
            with pytest.raises(grpc.RpcError) as caught:
                stub.Predict(predict(x=np.float32([2])), timeout=20, metadata=headers)
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_methods_that_are_none_need_a_token_too(channel):
    nix = channel.unary_unary("/tensorflow.serving.PredictionService/Nix")
    for metadata, code in (((), "UNAUTHENTICATED"), (bearer(), "UNIMPLEMENTED")):
        with pytest.raises(grpc.RpcError) as caught:
            nix(b"", timeout=20, metadata=metadata)
        assert caught.value.code().name == code


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_needs_no_token(equipped, path):
    with equipped.client(None) as client:
        assert client.get(path).status_code == 200


def test_preflights_of_the_api_need_no_token(equipped):
    with equipped.client(None) as client:
        origin = {"Origin": "https://example.com"}
        response = client.options(f"{HALF_URL}:predict", headers=origin)
    assert (response.status_code, response.content) == (200, b"")


def test_a_page_of_another_origin_may_send_a_token(equipped):
    """By the Fetch standard, `Authorization` must be listed, and preflights do not bring it."""
    origin = {"Origin": "https://page.example"}
    asked = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    with equipped.client(None) as client:
        preflight = client.options(f"{HALF_URL}:predict", headers={**origin, **asked})
        refused = client.post(f"{HALF_URL}:predict", json={"instances": [2.0]}, headers=origin)
    assert preflight.status_code == 200
    assert "POST" in preflight.headers["access-control-allow-methods"].split(", ")
    listed = preflight.headers["access-control-allow-headers"].lower().split(", ")
    assert set(asked["Access-Control-Request-Headers"].split(",")) <= set(listed)
    with equipped.client() as client:
        answer = client.post(f"{HALF_URL}:predict", json={"instances": [2.0]}, headers=origin)
    assert (refused.status_code, answer.status_code) == (401, 200)
    for one in (preflight, refused, answer):
        assert one.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize("token", [TOKEN, OTHER])
def test_rest_with_a_token(equipped, token):
    with equipped.client(token) as client:
        response = client.post(f"{HALF_URL}:predict", json={"instances": [2.0]})
    assert (response.status_code, response.json()) == (200, {"predictions": [3.0]})


@pytest.mark.parametrize("metadata", [(), bearer("wrong-token-0123456789")])
def test_grpc_refuses_without_token(channel, stub, metadata):
    from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

    with pytest.raises(grpc.RpcError) as caught:
        stub.Predict(predict(x=np.float32([2])), timeout=20, metadata=metadata)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert "a bearer token is required" in caught.value.details()
    reflection = reflection_pb2_grpc.ServerReflectionStub(channel)
    ask = reflection_pb2.ServerReflectionRequest(list_services="")
    with pytest.raises(grpc.RpcError) as caught:
        list(reflection.ServerReflectionInfo(iter([ask]), timeout=20, metadata=metadata))
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    with pytest.raises(grpc.RpcError) as caught:
        Stub(channel, MODEL_SERVICE).HandleReloadConfigRequest(
            ReloadConfigRequest(), timeout=20, metadata=metadata
        )
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_grpc_health_needs_no_token(channel):
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    stub = health_pb2_grpc.HealthStub(channel)
    assert stub.Check(health_pb2.HealthCheckRequest(), timeout=20).status == 1


def test_reflection_with_a_token(channel):
    from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    ask = reflection_pb2.ServerReflectionRequest(list_services="")
    (listed,) = stub.ServerReflectionInfo(iter([ask]), timeout=20, metadata=bearer())
    assert listed.list_services_response.service


def test_list_of_models(equipped):
    with equipped.client() as client:
        answer = client.get("/models").json()
        assert client.get("/v1/models").status_code == 400
    found = {one["name"]: one for one in answer["models"]}
    assert list(found) == ["affine", "half/plus:two", "text"]
    serves = {"version": 1, "state": "AVAILABLE", "labels": ["stable"], "error": ""}
    runs = {"runtime": "tensorflow", "left_to_tensorflow": []}
    assert found["half/plus:two"]["versions"] == [{**serves, **runs}]
    assert found["text"]["base_path"].endswith("/text")


def test_tokens_change_without_a_restart(equipped):
    text = equipped.tokens.read_text()
    try:
        equipped.tokens.write_text("the-newest-token-of-all\n")
        with equipped.client("the-newest-token-of-all") as client:
            wait_until(lambda: client.get(HALF_URL).status_code == 200, seconds=60)
        with equipped.client() as client:
            assert client.get(HALF_URL).status_code == 401
    finally:
        equipped.tokens.write_text(text)
    with equipped.client() as client:
        wait_until(lambda: client.get(HALF_URL).status_code == 200, seconds=60)


@pytest.mark.parametrize(
    ("flags", "text", "message"),
    [
        (["--rest_ssl_config_file={}"], 'server_key: "x" server_cert: "y"',
         r"--rest_ssl_config_file: \S+: server_key and server_cert are not a matching PEM pair"),
        (["--ssl_config_file={}"], 'server_key: "x" server_cert: "y"',
         r"--ssl_config_file: \S+: server_key and server_cert are not a matching PEM pair"),
        (["--auth_token_file={}"], "short", r"--auth_token_file: token 1 of \S+ must be"),
        (["--auth_token_file={}.nix"], "", "--auth_token_file: there is no file"),
        (["--access_log={}/x"], "", r"--access_log: cannot write to \S+: Not a directory"),
        (["--prediction_log_directory={}"], "", "--prediction_log_directory: cannot write to"),
        (["--prediction_log_directory={}.d", "--prediction_log_sampling_rate=7"], "",
         "--prediction_log_sampling_rate must be between 0 and 1; got 7"),
        (["--prediction_log_directory={}.d", "--prediction_log_file_mib=0"], "",
         "--prediction_log_file_mib and --prediction_log_files must be at least 1"),
        (["--prediction_log_directory={}.d", "--prediction_log_files=0"], "",
         "--prediction_log_file_mib and --prediction_log_files must be at least 1"),
    ],
)  # fmt: skip
def test_refused_flags(tmp_path, flags, text, message):
    """Before any model has been loaded."""
    path = tmp_path / "file"
    path.write_text(text)
    port, rest_port = free_ports(2)
    argv = [
        f"--port={port}", f"--rest_api_port={rest_port}", f"--model_base_path={tmp_path}",
        *(flag.format(path) for flag in flags),
    ]  # fmt: skip
    with pytest.raises(ServingError, match=message):
        asyncio.run(Server(parse_flags(argv)).run())


def test_client_certificates_need_a_ca(equipped, tmp_path):
    path = tmp_path / "ssl"
    text = equipped.tokens.with_name("ssl").read_text()
    path.write_text(text + " client_verify: true")
    with pytest.raises(InvalidArgument, match="client_verify needs a custom_ca"):
        tls_context(str(path), "rest_ssl_config_file")
    path.write_text(text + ' client_verify: true custom_ca: "nonsense"')
    with pytest.raises(InvalidArgument, match="custom_ca contains no PEM certificate"):
        tls_context(str(path), "rest_ssl_config_file")
