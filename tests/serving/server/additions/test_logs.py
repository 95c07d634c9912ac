"""The access log and the prediction log."""

import json
import re
import time

import grpc
import numpy as np
import pytest
import tensorflow as tf

from gru_serving.protos.model_management_pb2 import ReloadConfigRequest
from gru_serving.protos.services import MODEL_SERVICE, Stub
from tests.serving.load import X
from tests.serving.messages import BOTH, examples, multi_inference, predict
from tests.serving.raw_http import HALF_URL
from tests.serving.server.additions.equipped import bearer, soon


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
    assert line.pop("request_id") == answer.headers["x-request-id"]
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

    from gru_serving.engine.predictor import Predictor
    from gru_serving.engine.warmup import FILE, replay

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


def test_affine_answers(equipped):
    """A model whose log is off answers all the same."""
    with equipped.client() as client:
        body = {name: value.tolist() for name, value in X.items()}
        answer = client.post("/v1/models/affine:predict", json={"inputs": body}).json()
    assert answer["outputs"]["y"] == [[10.0, 20.0]]
