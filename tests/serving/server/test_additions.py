"""What the server has beyond TF Serving, over real sockets: one server with all of it."""

import asyncio
import json
import re
import signal
import ssl
import time

import grpc
import httpx
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import (
    predict_pb2,
    prediction_log_pb2,
    prediction_service_pb2_grpc,
)

from serving.config.command_line import parse_flags
from serving.errors import InvalidArgument, ServingError
from serving.protos.model_management_pb2 import ReloadConfigRequest
from serving.protos.services import MODEL_SERVICE, Stub
from serving.server.process import Server
from serving.server.tls import rest_context
from tests.ports import free_ports
from tests.serving.certificate import certificate
from tests.serving.conftest import running, wait_until, wait_until_busy
from tests.serving.load import X
from tests.serving.messages import BOTH, examples, multi_inference, predict
from tests.serving.raw_http import HALF_URL

TOKEN, OTHER = "a-token-of-these-tests", "another-token-of-these-tests"
CONFIG = """
model_config_list {{
  config {{
    name: "half/plus:two" base_path: "{root}/half_plus_two" model_platform: "tensorflow"
    version_labels {{ key: "stable" value: 1 }}
  }}
  config {{
    name: "text" base_path: "{root}/text" model_platform: "tensorflow"
    logging_config {{
      sampling_config {{ sampling_rate: 1 }}
      log_collector_config {{ filename_prefix: "sub/words" }}
    }}
  }}
  config {{
    name: "affine" base_path: "{root}/affine" model_platform: "tensorflow"
    logging_config {{ sampling_config {{ sampling_rate: 0 }} }}
  }}
}}
"""


class Equipped:
    """A server with all additions, and the folder for its files."""

    def __init__(self, server, directory, verify):
        self.server = server
        self.access = directory / "access.log"
        self.logs = directory / "predictions"
        self.tokens = directory / "tokens"
        self.verify = verify
        self.url = f"https://localhost:{server.rest_port}"

    def client(self, token=TOKEN):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(
            base_url=self.url, verify=self.verify, headers=headers, trust_env=False, timeout=20
        )

    def lines(self, **wanted):
        found = [json.loads(line) for line in self.access.read_text().splitlines()]
        return [one for one in found if wanted.items() <= one.items()]

    def logged(self, pattern):
        files = [str(path) for path in sorted(self.logs.glob(pattern))]
        return [
            prediction_log_pb2.PredictionLog.FromString(one)
            for one in tf.data.TFRecordDataset(files).as_numpy_iterator()
        ]


@pytest.fixture(scope="module")
def equipped(models, tmp_path_factory):
    directory = tmp_path_factory.mktemp("additions")
    pair = certificate(directory)
    quoted = [path.read_text().replace("\n", "\\n") for path in pair]
    config, monitoring, tls, tokens = (
        directory / name for name in ("models", "monitoring", "ssl", "tokens")
    )
    config.write_text(CONFIG.format(root=models))
    monitoring.write_text("prometheus_config { enable: true }")
    tls.write_text(f'server_key: "{quoted[0]}" server_cert: "{quoted[1]}"')
    tokens.write_text(f"# who may ask\n{TOKEN}\n{OTHER}\n")
    flags = (
        f"--model_config_file={config}",
        "--allow_version_labels_for_unavailable_models",
        f"--monitoring_config_file={monitoring}",
        f"--rest_ssl_config_file={tls}",
        f"--auth_token_file={tokens}",
        "--rest_api_enable_cors_support",
        f"--access_log={directory / 'access.log'}",
        f"--prediction_log_directory={directory / 'predictions'}",
        "--prediction_log_sampling_rate=1",
        "--enable_grpc_healthcheck_service",
    )
    verify = ssl.create_default_context(cafile=str(pair[1]))
    with running(directory / "log", *flags, ready=False) as server:
        equipped = Equipped(server, directory, verify)
        wait_until(lambda: ready(equipped), server)
        yield equipped
        assert "Traceback" not in server.log.read_text()


def ready(equipped):
    try:
        with equipped.client(None) as client:
            return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def channel(equipped):
    with grpc.insecure_channel(equipped.server.grpc) as channel:
        yield channel


def bearer(token=TOKEN):
    return (("authorization", f"Bearer {token}"),)


@pytest.fixture(scope="module")
def stub(channel):
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


def soon(found):
    """What is written in the background takes a moment."""
    wait_until(found, seconds=60)


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
        "error": "a bearer token is required: send 'Authorization: Bearer TOKEN'"
    }


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
    assert found["half/plus:two"]["versions"] == [
        {"version": 1, "state": "AVAILABLE", "labels": ["stable"], "error": ""}
    ]
    assert found["text"]["base_path"].endswith("/text")


def test_access_log_of_rest(equipped):
    with equipped.client() as client:
        body = json.dumps({"instances": [2.0]})
        answer = client.post(f"{HALF_URL}/versions/1:predict", content=body)
        client.get("/v1/models/nix-rest/metadata")
        client.post(f"{HALF_URL}:predict", content=b"[]")
    soon(lambda: equipped.lines(route="/v1/models/nix-rest/metadata"))
    (line,) = equipped.lines(route=f"{HALF_URL}/versions/1:predict")
    assert 0 < line.pop("seconds") < 10
    stamp = line.pop("time")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", stamp)
    assert re.fullmatch(r"127\.0\.0\.1:\d+", line.pop("client"))
    assert line == {
        "transport": "REST", "method": "POST", "route": f"{HALF_URL}/versions/1:predict",
        "model": "half/plus:two", "version": 1, "signature": "serving_default", "status": "OK",
        "http_status": 200, "request_bytes": len(body), "response_bytes": len(answer.content),
    }  # fmt: skip
    (line,) = equipped.lines(route="/v1/models/nix-rest/metadata")
    assert (line["status"], line["http_status"], line["model"]) == ("NOT_FOUND", 404, "nix-rest")
    soon(lambda: equipped.lines(status="INVALID_ARGUMENT", route=f"{HALF_URL}:predict"))


def test_access_log_of_grpc(equipped, stub):
    message = predict(x=np.float32([2]), version=1)
    answer = stub.Predict(message, timeout=20, metadata=bearer())
    with pytest.raises(grpc.RpcError):
        stub.Predict(predict("nix-grpc", x=np.float32([2])), timeout=20, metadata=bearer())
    with pytest.raises(grpc.RpcError):
        stub.Classify(examples("half/plus:two", "nix", 1.0), timeout=20, metadata=bearer("x" * 20))
    soon(lambda: equipped.lines(model="nix-grpc"))
    line = equipped.lines(transport="GRPC", status="OK", model="half/plus:two")[-1]
    assert line["method"] == "/tensorflow.serving.PredictionService/Predict"
    assert (line["version"], line["signature"]) == (1, "serving_default")
    assert line["request_bytes"] == message.ByteSize()
    assert line["response_bytes"] == answer.ByteSize()
    assert re.fullmatch(r"(127\.0\.0\.1|\[::1\]):\d+", line["client"])
    (line,) = equipped.lines(model="nix-grpc")
    assert line["status"] == "NOT_FOUND"
    soon(lambda: equipped.lines(
        status="UNAUTHENTICATED", method="/tensorflow.serving.PredictionService/Classify"
    ))  # fmt: skip


def test_access_log_says_who_was_refused(equipped):
    with equipped.client(None) as client:
        client.get("/v1/models/refused")
    soon(lambda: equipped.lines(route="/v1/models/refused"))
    (line,) = equipped.lines(route="/v1/models/refused")
    assert (line["status"], line["http_status"]) == ("UNAUTHENTICATED", 401)


def test_prediction_log(equipped, stub):
    """Every kind, from both transports; read with tf.data and upstream's messages."""
    with equipped.client() as client:
        client.post("/v1/models/text:predict", json={"instances": ["good", "bad"]})
        body = {"signature_name": "classify", "examples": [{"text": "good"}]}
        client.post("/v1/models/text:classify", json=body)
        body = {"signature_name": "regress", "examples": [{"text": "good"}]}
        client.post("/v1/models/text:regress", json=body)
        client.post("/v1/models/text:predict", json={"instances": [1]})
        client.get("/v1/models/text/metadata")
        body = {"x": [[1, 0, 0]], "b": [[0]]}
        client.post("/v1/models/affine:predict", json={"inputs": body})
    soon(lambda: len(equipped.logged("sub/words-*.tfrecord")) == 3)
    found = {one.WhichOneof("log_type"): one for one in equipped.logged("sub/words-*.tfrecord")}
    assert found.keys() == {"predict_log", "classify_log", "regress_log"}
    one = found["predict_log"]
    np.testing.assert_array_equal(
        tf.make_ndarray(one.predict_log.request.inputs["text"]), [b"good", b"bad"]
    )
    labels = tf.make_ndarray(one.predict_log.response.outputs["label"])
    assert labels.tolist() == [b"positive", b"negative"]
    spec = one.log_metadata.model_spec
    assert (spec.name, spec.version.value, spec.signature_name) == ("text", 1, "serving_default")
    assert abs(one.log_metadata.timestamp_secs - time.time()) < 100
    assert one.log_metadata.sampling_config.sampling_rate == 1
    classified = found["classify_log"].classify_log
    feature = classified.request.input.example_list.examples[0].features.feature["text"]
    assert feature.bytes_list.value == [b"good"]
    assert classified.response.result.classifications[0].classes[1].label == "positive"
    regressed = found["regress_log"].regress_log
    assert regressed.response.result.regressions[0].value == pytest.approx(0.7310586)
    assert regressed.request.model_spec.signature_name == "regress"
    assert not list(equipped.logs.glob("affine*"))


def test_prediction_log_of_several_tasks(equipped, stub):
    message = multi_inference(*BOTH)
    response = stub.MultiInference(message, timeout=20, metadata=bearer())

    def logged():
        found = equipped.logged("half%2Fplus%3Atwo-*.tfrecord")
        return [one for one in found if one.WhichOneof("log_type") == "multi_inference_log"]

    soon(logged)
    multi = logged()[0].multi_inference_log
    assert multi.request == message
    assert multi.response == response


def test_prediction_log_by_the_flags_rate(equipped, stub):
    message = predict(x=np.float32([41.0]))
    response = stub.Predict(message, timeout=20, metadata=bearer())

    def logged():
        found = equipped.logged("half%2Fplus%3Atwo-*.tfrecord")
        return [one.predict_log for one in found if one.predict_log.request == message]

    soon(logged)
    assert logged()[0].response == response


def test_a_prediction_log_is_a_warmup_file(equipped, stub, models):
    from pathlib import Path

    from serving.engine.predictor import Predictor
    from serving.engine.warmup import FILE, replay

    stub.Predict(predict(x=np.float32([2.0])), timeout=20, metadata=bearer())
    soon(lambda: equipped.logged("half*.tfrecord"))
    (log,) = equipped.logs.glob("half*.tfrecord")
    directory = equipped.logs.parent / "warm"
    if not directory.exists():
        import shutil

        shutil.copytree(models / "half_plus_two" / "1", directory)
        (directory / FILE).parent.mkdir()
        shutil.copy(log, directory / FILE)
    predictor = Predictor(Path(directory))
    try:
        assert replay(predictor, directory) > 0
    finally:
        predictor.close()


def test_metrics_with_version_and_signature(equipped, stub):
    parser = pytest.importorskip("prometheus_client.parser")

    def counts():
        with equipped.client() as client:
            page = client.get("/monitoring/prometheus/metrics").text
        return {
            (sample.name.removesuffix("_total"), *sorted(sample.labels.items())): sample.value
            for family in parser.text_string_to_metric_families(page)
            for sample in family.samples
        }

    def labels(entrypoint, **more):
        fixed = {"model_name": "half/plus:two", "version": "1", "signature": "serving_default"}
        return sorted({**fixed, "entrypoint": entrypoint, **more}.items())

    before = counts()
    stub.Predict(predict(x=np.float32([2])), timeout=20, metadata=bearer())
    with equipped.client() as client:
        client.post(f"{HALF_URL}:predict", json={"instances": [2.0]})
        client.post(f"{HALF_URL}:predict", json={"instances": ["text"]})
        wrong = {"instances": [2.0], "signature_name": "x" * 300}
        assert client.post(f"{HALF_URL}:predict", json=wrong).status_code == 400
    after = counts()
    bad = {"status": "INVALID_ARGUMENT"}
    for transport, more in (
        ("GRPC", {"status": "OK"}),
        ("REST", {"status": "OK"}),
        ("REST", bad),
        ("REST", {**bad, "signature": "(others)"}),
    ):
        key = ("gru_serve:request_count", *labels(transport, **more))
        assert after[key] - before.get(key, 0) == 1
    for transport in ("GRPC", "REST"):
        key = ("gru_serve:request_latency_count", *labels(transport))
        assert after[key] - before.get(key, 0) == 1
    assert abs(after[("gru_serve:process_start_time_seconds",)] - time.time()) < 1000
    logged = (":tensorflow:serving:request_log_count", ("model_name", "text"), ("status", "OK"))
    assert after.get(logged, 0) >= 0


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


def test_reload_takes_logging_configs(models, equipped, channel):
    request = ReloadConfigRequest()
    entry = request.config.model_config_list.config.add(
        name="half/plus:two", base_path=f"{models}/half_plus_two", model_platform="tensorflow"
    )
    entry.logging_config.sampling_config.sampling_rate = 3
    stub = Stub(channel, MODEL_SERVICE)
    with pytest.raises(grpc.RpcError) as caught:
        stub.HandleReloadConfigRequest(request, timeout=20, metadata=bearer())
    assert "sampling_rate must be between 0 and 1; got 3.0" in caught.value.details()


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
        rest_context(str(path))
    path.write_text(text + ' client_verify: true custom_ca: "nonsense"')
    with pytest.raises(InvalidArgument, match="custom_ca contains no PEM certificate"):
        rest_context(str(path))


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
            text = httpx.get(page, trust_env=False).text
            return re.findall(
                r'^:tensorflow:serving:request_count\{.*status="(\w+)"\} 1$', text, re.M
            )

        wait_until(counted, server)
        assert counted() == ["CANCELLED"]


def test_affine_answers(equipped):
    """A model whose log is off answers all the same."""
    with equipped.client() as client:
        body = {name: value.tolist() for name, value in X.items()}
        answer = client.post("/v1/models/affine:predict", json={"inputs": body}).json()
    assert answer["outputs"]["y"] == [[10.0, 20.0]]
