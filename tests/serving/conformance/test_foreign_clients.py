"""Clients that know nothing of this project: curl, and TF Serving's stubs in a bare process."""

import json
import subprocess
import sys

import pytest

from tests.serving.servers import REPOSITORY, curl_only

URL = "v1/models/half%2Fplus%3Atwo"


def curl(server, path, *arguments, stdin=None):
    """(HTTP status, body) of a call, as a shell would make it."""
    command = ["curl", "-sS", "--noproxy", "*", "-w", "\n%{http_code}", *arguments]
    done = subprocess.run(
        [*command, f"{server.rest}/{path}"],
        input=stdin, capture_output=True, check=True, timeout=30,
    )  # fmt: skip
    body, _, status = done.stdout.rpartition(b"\n")
    return int(status), body.decode()


@curl_only
@pytest.mark.parametrize("version", ["--http1.1", "--http1.0"])
def test_lines_of_the_documentation(server, version):
    """The calls of TF Serving's REST page; the form content type that -d sends does not matter."""
    status, body = curl(server, URL, version)
    assert status == 200
    assert json.loads(body)["model_version_status"][0]["state"] == "AVAILABLE"
    status, body = curl(server, f"{URL}/metadata", version)
    assert "serving_default" in json.loads(body)["metadata"]["signature_def"]["signature_def"]
    data = ("-d", '{"instances": [1.0, 2.0, 5.0]}', "-X", "POST")
    status, body = curl(server, f"{URL}:predict", version, *data)
    assert (status, json.loads(body)) == (200, {"predictions": [2.5, 3.0, 4.5]})
    examples = (
        '{"signature_name": "tensorflow/serving/regress", "examples": [{"x": 1.0}, {"x": 2.0}]}'
    )
    status, body = curl(server, f"{URL}:regress", version, "-d", examples, "-X", "POST")
    assert (status, json.loads(body)) == (200, {"results": [2.5, 3.0]})


@curl_only
def test_errors_of_the_documentation(server):
    status, body = curl(server, f"{URL}:predict", "-d", '{"instances": [1.0, 2.0, 5.0')
    assert status == 400
    assert json.loads(body)["error"].startswith("JSON Parse error: ")
    status, body = curl(server, "v1/models/foo:predict", "-d", '{"instances": [1.0]}')
    assert (status, json.loads(body)) == (
        404, {"error": "Servable not found for request: Latest(foo)"},
    )  # fmt: skip


@curl_only
@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("-H", "Transfer-Encoding: chunked"),
        ("-H", "Expect: 100-continue"),
        ("-H", "Content-Type: application/json", "--http1.0"),
    ],
)
def test_large_body_from_a_file(server, tmp_path, arguments):
    rows = list(range(200_000))
    path = tmp_path / "body.json"
    path.write_text(json.dumps({"instances": rows}))
    status, body = curl(server, f"{URL}:predict", *arguments, "--data-binary", f"@{path}")
    assert status == 200
    assert json.loads(body)["predictions"] == [row / 2 + 2 for row in rows]


@curl_only
def test_compressed_body(server, tmp_path):
    import gzip

    path = tmp_path / "body.gz"
    path.write_bytes(gzip.compress(b'{"instances": [1.0]}'))
    header = ("-H", "Content-Encoding: gzip")
    status, body = curl(server, f"{URL}:predict", *header, "--data-binary", f"@{path}")
    assert (status, json.loads(body)) == (200, {"predictions": [2.5]})


@curl_only
def test_two_calls_over_one_connection(server):
    done = subprocess.run(
        ["curl", "-sSv", "--noproxy", "*", f"{server.rest}/{URL}", f"{server.rest}/{URL}"],
        capture_output=True, check=True, text=True, timeout=30,
    )  # fmt: skip
    assert "Re-using existing" in done.stderr
    assert done.stdout.count("AVAILABLE") == 2


STUBS = """
import sys
import grpc
from tensorflow_serving.apis import (
    get_model_metadata_pb2, get_model_status_pb2, model_service_pb2_grpc, predict_pb2,
    prediction_service_pb2_grpc,
)

channel = grpc.insecure_channel(sys.argv[1])
prediction = prediction_service_pb2_grpc.PredictionServiceStub(channel)
request = predict_pb2.PredictRequest()
request.model_spec.name = "half/plus:two"
x = request.inputs["x"]
x.dtype = 1
x.tensor_shape.dim.add(size=2)
x.float_val.extend([2.0, 6.0])
answer = prediction.Predict(request, timeout=20)
print(list(answer.outputs["y"].float_val), answer.model_spec.version.value)

request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
request.model_spec.name = "half/plus:two"
found = get_model_metadata_pb2.SignatureDefMap()
prediction.GetModelMetadata(request, timeout=20).metadata["signature_def"].Unpack(found)
print("serving_default" in found.signature_def)

request = get_model_status_pb2.GetModelStatusRequest()
request.model_spec.name = "half/plus:two"
models = model_service_pb2_grpc.ModelServiceStub(channel)
(state,) = models.GetModelStatus(request, timeout=20).model_version_status
print(state.version, state.state)
assert not any(name == "gru_serving" or name.startswith("gru_serving.") for name in sys.modules)
"""


@pytest.mark.slow
def test_stubs_of_tf_serving_in_a_process_of_their_own(server, tmp_path):
    done = subprocess.run(
        [sys.executable, "-P", "-c", STUBS, server.grpc],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[3.0, 5.0] 1", "True", "1 30"]
    assert tmp_path != REPOSITORY


PROBE = """
import sys
import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
with grpc.insecure_channel(sys.argv[1]) as channel:
    stub = health_pb2_grpc.HealthStub(channel)
    for service in ("", "PredictionService", "ModelService"):
        answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=60)
        print(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))
    watched = stub.Watch(health_pb2.HealthCheckRequest(), timeout=60)
    print(next(watched).status)
    watched.cancel()
    try:
        stub.Check(health_pb2.HealthCheckRequest(service="nix"), timeout=60)
    except grpc.RpcError as error:
        print(error.code().name)
"""


def test_health_probe(server, tmp_path):
    """The call of grpc_health_probe: Check with a service's name, SERVING or not."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, server.grpc],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["SERVING"] * 3 + ["1", "NOT_FOUND"]
