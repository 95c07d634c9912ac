"""The gRPC API as a foreign client sees it: tensorflow-serving-api's stubs."""

import asyncio
import gc
import tracemalloc

import grpc
import grpc.aio
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from serving.grpc_drain import DrainGate
from serving.grpc_interceptors import TokenGuard
from serving.grpc_service import PredictionService
from serving.protos.services import PREDICTION_SERVICE, generic_handler
from serving.repository import Repository
from serving.tokens import Tokens
from serving.worker_threads import WorkerThreads

from .saved_models import ECHOED


@pytest.fixture(scope="module")
def channel(server):
    with grpc.insecure_channel(server.grpc) as channel:
        yield channel


@pytest.fixture(scope="module")
def stub(channel):
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


@pytest.fixture(scope="module")
def models_stub(channel):
    return model_service_pb2_grpc.ModelServiceStub(channel)


def request(model="affine", signature="", **inputs):
    message = predict_pb2.PredictRequest()
    message.model_spec.name = model
    message.model_spec.signature_name = signature
    for name, value in inputs.items():
        message.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return message


REFUSALS = {
    "the service": "NOT_FOUND.*\n.*Servable not found",
    "the tokens": "UNAUTHENTICATED",
    "the drain": "UNAVAILABLE.*\n.*the server is stopping",
}


def refused(call, message):
    with pytest.raises(grpc.RpcError) as caught:
        call(message, timeout=20)
    return caught.value.code().name, caught.value.details()


@pytest.mark.parametrize("by", ["the service", "the tokens", "the drain"])
def test_refused_requests_are_not_kept(by, tmp_path):
    """Not even until the garbage collector comes by: they may be of many megabytes."""
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
            service = PredictionService(Repository([]), threads)
            server.add_generic_rpc_handlers((generic_handler(PREDICTION_SERVICE, service),))
            await server.start()
            async with grpc.aio.insecure_channel(f"localhost:{port}") as channel:
                call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
                message = request("nobody", x=np.zeros(size, np.uint8)).SerializeToString()
                tracemalloc.start()
                for _ in range(6):
                    with pytest.raises(grpc.RpcError, match=REFUSALS[by]):
                        await call(message)
                used, _ = tracemalloc.get_traced_memory()
                tracemalloc.stop()
            await server.stop(None)
        return used

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(kept()) < 3 * size
    finally:
        gc.enable()


AFFINE = {"x": np.float32([[1, 0, 0]]), "b": np.float32([[0.5]])}


def test_predict(stub):
    response = stub.Predict(request(**AFFINE), timeout=20)
    assert response.outputs.keys() == {"y", "doubled"}
    np.testing.assert_array_equal(tf.make_ndarray(response.outputs["y"]), [[10.5, 20.5]])
    # TF Serving fills the typed list; clients read it.
    assert list(response.outputs["y"].float_val) == [10.5, 20.5]
    assert not response.outputs["y"].tensor_content
    spec = response.model_spec
    assert (spec.name, spec.version.value, spec.signature_name) == (
        "affine",
        3,
        "serving_default",
    )


def test_label_is_resolved_not_echoed(stub):
    message = request(**AFFINE)
    message.model_spec.version_label = "stable"
    spec = stub.Predict(message, timeout=20).model_spec
    assert (spec.version.value, spec.version_label) == (1, "")


def test_typed_list_and_content_are_both_accepted(stub):
    message = request(**AFFINE)
    message.inputs["x"].tensor_content = b""
    message.inputs["x"].float_val[:] = [1, 0, 0]
    message.inputs["b"].float_val[:] = []
    message.inputs["b"].tensor_content = np.float32(0.5).tobytes()
    outputs = stub.Predict(message, timeout=20).outputs
    np.testing.assert_array_equal(tf.make_ndarray(outputs["y"]), [[10.5, 20.5]])


@pytest.mark.parametrize("name", ECHOED)
def test_every_type(stub, name):
    dtype = tf.as_dtype(name)
    value = (
        np.array([b"a", b"\xff"]) if name == "string" else np.ones(2).astype(dtype.as_numpy_dtype)
    )
    response = stub.Predict(request("echo", name, x=value), timeout=20)
    back = tf.make_ndarray(response.outputs["x"])
    assert response.outputs["x"].dtype == dtype.as_datatype_enum
    np.testing.assert_array_equal(back, value)


def with_filter(*names):
    message = request(**AFFINE)
    message.output_filter.extend(names)
    return message


def test_output_filter(stub):
    outputs = stub.Predict(with_filter("doubled"), timeout=20).outputs
    assert list(outputs) == ["doubled"]


def broken_tensor():
    message = request(**AFFINE)
    message.inputs["x"].tensor_content = b"123"
    return message


def without_spec():
    message = request(**AFFINE)
    message.ClearField("model_spec")
    return message


def of_version(number):
    message = request(**AFFINE)
    message.model_spec.version.value = number
    return message


def of_label(label):
    message = request(**AFFINE)
    message.model_spec.version_label = label
    return message


X, B = AFFINE["x"], AFFINE["b"]


@pytest.mark.parametrize(
    ("message", "code", "text"),
    [
        (without_spec(), "INVALID_ARGUMENT", "Missing ModelSpec"),
        (request("", **AFFINE), "INVALID_ARGUMENT", "ModelSpec has no name specified."),
        (request("nix"), "NOT_FOUND", "Servable not found for request: Latest(nix)"),
        (of_version(2), "NOT_FOUND", "Servable not found for request: Specific(affine, 2)"),
        (of_label("beta"), "INVALID_ARGUMENT", "Unrecognized servable version label: beta"),
        (request(signature="nix", **AFFINE), "FAILED_PRECONDITION",
         'Serving signature key "nix" not found.'),
        (request(x=X), "INVALID_ARGUMENT",
         "input size does not match signature: 1!=2 len({x}) != len({b,x}). Sent extra: {}. "
         "Missing but required: {b}."),
        (request(x=X, b=B, c=B), "INVALID_ARGUMENT",
         "input size does not match signature: 3!=2 len({b,c,x}) != len({b,x}). Sent extra: {c}. "
         "Missing but required: {}."),
        (request(x=X, y=B), "INVALID_ARGUMENT",
         "Signature input alias: b(feed name: serving_default_b:0) not found in request and no "
         "default value provided. Inputs expected to be in the request {x,y}, or default input "
         "alias set: "),
        (broken_tensor(), "INVALID_ARGUMENT", "tensor parsing error: x"),
        (with_filter("y", "z"), "INVALID_ARGUMENT",
         "output tensor alias not found in signature: z Outputs expected to be in the set "
         "{doubled,y}."),
        (with_filter("y", "y"), "INVALID_ARGUMENT", "duplicate output tensor alias: y"),
    ],
)  # fmt: skip
def test_predict_errors(stub, message, code, text):
    assert refused(stub.Predict, message) == (code, text)


def test_wrong_type_has_tensorflows_text(stub):
    code, text = refused(stub.Predict, request(x=X.astype(np.int32), b=B))
    assert code == "INVALID_ARGUMENT"
    assert text in {f"Expects arg[{i}] to be float but int32 is provided" for i in (0, 1)}


def test_deadline(stub):
    with pytest.raises(grpc.RpcError) as caught:
        stub.Predict(request(signature="spin", steps=np.int64(10**10)), timeout=0.3)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def test_long_messages_are_cut(stub):
    code, text = refused(stub.Predict, request("n" * 5000))
    assert code == "NOT_FOUND"
    assert len(text) == 1024 + len("...TRUNCATED")
    assert text.endswith("...TRUNCATED")
    # Counted in bytes, and cut between characters.
    _, text = refused(stub.Predict, request("n" + "é" * 700))
    kept = text.removesuffix("...TRUNCATED")
    assert kept != text
    assert len(kept.encode()) in (1023, 1024)


def test_empty_label_is_a_label(stub):
    message = request("affine")
    message.model_spec.version_label = ""
    assert refused(stub.Predict, message) == (
        "INVALID_ARGUMENT",
        "Unrecognized servable version label: ",
    )


def metadata_request(model, *fields):
    message = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=fields)
    message.model_spec.name = model
    return message


def test_metadata(stub):
    response = stub.GetModelMetadata(metadata_request("text", "signature_def"), timeout=20)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(signatures)
    assert signatures.signature_def["serving_default"].inputs["text"].dtype == tf.string
    assert (response.model_spec.name, response.model_spec.version.value) == ("text", 1)
    assert response.model_spec.signature_name == ""


@pytest.mark.parametrize(
    ("message", "code", "text"),
    [
        (metadata_request("text"), "INVALID_ARGUMENT",
         "GetModelMetadataRequest must specify at least one metadata_field"),
        (metadata_request("text", "x"), "INVALID_ARGUMENT", "Metadata field x is not supported"),
        (metadata_request("nix", "signature_def"), "NOT_FOUND",
         "Servable not found for request: Latest(nix)"),
        (get_model_metadata_pb2.GetModelMetadataRequest(), "INVALID_ARGUMENT",
         "Missing ModelSpec"),
    ],
)  # fmt: skip
def test_metadata_errors(stub, message, code, text):
    assert refused(stub.GetModelMetadata, message) == (code, text)


def test_status(models_stub):
    message = get_model_status_pb2.GetModelStatusRequest()
    message.model_spec.name = "affine"
    states = models_stub.GetModelStatus(message, timeout=20).model_version_status
    assert [(s.version, s.state, s.status.error_code) for s in states] == [(3, 30, 0), (1, 30, 0)]
    message.model_spec.name = "nix"
    assert refused(models_stub.GetModelStatus, message) == (
        "NOT_FOUND",
        "Could not find any versions of model nix",
    )


def examples(model, signature, *features):
    """A ClassificationRequest's bytes serve as a RegressionRequest's as well."""
    message = classification_pb2.ClassificationRequest()
    message.model_spec.name = model
    message.model_spec.signature_name = signature
    for feature in features:
        message.input.example_list.examples.add().features.feature["text"].CopyFrom(feature)
    return message


def text_feature(text):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[text]))


def test_classify(stub):
    message = examples("text", "classify", text_feature(b"good"), text_feature(b"awful"))
    response = stub.Classify(message, timeout=20)
    rows = response.result.classifications
    assert [[c.label for c in row.classes] for row in rows] == [["negative", "positive"]] * 2
    assert rows[0].classes[1].score == pytest.approx(0.7310586, abs=1e-6)
    assert response.model_spec.signature_name == "classify"


def test_regress(stub):
    message = regression_pb2.RegressionRequest.FromString(
        examples("text", "regress", text_feature(b"good")).SerializeToString()
    )
    response = stub.Regress(message, timeout=20)
    assert [r.value for r in response.result.regressions] == [pytest.approx(0.7310586, abs=1e-6)]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (examples("text", "classify"), "Input is empty."),
        (examples("text", "nix"), "No signature was found with the name: nix"),
        (examples("affine", ""), "Expected one input Tensor."),
        (examples("text", ""), "Expected one or two output Tensors, found 3"),
    ],
)
def test_classify_errors(stub, message, text):
    assert refused(stub.Classify, message) == ("INVALID_ARGUMENT", text)


def test_reload_takes_lists_only(models_stub):
    message = model_management_pb2.ReloadConfigRequest()
    assert refused(models_stub.HandleReloadConfigRequest, message) == (
        "INVALID_ARGUMENT",
        "ServerModelConfig type not supported by HandleReloadConfigRequest. Only ModelConfigList "
        "is currently supported",
    )
    message.config.model_config_list.config.add(name="m", base_path="/m")
    code, text = refused(models_stub.HandleReloadConfigRequest, message)
    assert code == "INVALID_ARGUMENT"
    assert text.startswith("Illegal setting neither ModelServerConfig::model_type")


def several(*tasks, model="half/plus:two"):
    message = inference_pb2.MultiInferenceRequest()
    for signature, method in tasks:
        task = message.tasks.add(method_name=f"tensorflow/serving/{method}")
        task.model_spec.name = model
        task.model_spec.signature_name = signature
    example = message.input.example_list.examples.add()
    example.features.feature["x"].float_list.value.append(3)
    example.features.feature["text"].CopyFrom(text_feature(b"good"))
    return message


BOTH = (("classify_x_to_y", "classify"), ("regress_x_to_y", "regress"))


def test_multi_inference(stub):
    first, second = stub.MultiInference(several(*BOTH), timeout=20).results
    assert first.classification_result.classifications[0].classes[0].score == 3.5
    assert second.regression_result.regressions[0].value == 3.5
    spec = second.model_spec
    assert (spec.name, spec.version.value) == ("half/plus:two", 1)
    assert spec.signature_name == "regress_x_to_y"


def test_multi_inference_of_signatures_with_inputs_of_their_own(stub):
    """As those of all TF2 exports."""
    message = several(("classify", "classify"), ("regress", "regress"), model="text")
    first, second = stub.MultiInference(message, timeout=20).results
    classes = first.classification_result.classifications[0].classes
    assert [entry.label for entry in classes] == ["negative", "positive"]
    assert second.regression_result.regressions[0].value == pytest.approx(0.7310586)
    assert classes[1].score == pytest.approx(0.7310586)


def other_models(name="affine"):
    message = several(*BOTH)
    message.tasks[1].model_spec.name = name
    return message


@pytest.mark.parametrize(
    ("message", "code", "text"),
    [
        (several(), "INVALID_ARGUMENT", "ModelSpec has no name specified."),
        (several(("classify", "classify"), model=""), "INVALID_ARGUMENT",
         "ModelSpec has no name specified."),
        (other_models(""), "INVALID_ARGUMENT", "Found ModelSpec with an empty model name."),
        # The model of the first task is looked up before the others are looked at.
        (several(*BOTH, model="nix"), "NOT_FOUND", "Servable not found for request: Latest(nix)"),
        (several(("nix", "classify"), ("nix", "classify")), "INVALID_ARGUMENT",
         "Requested signature not found in model graph: nix"),
        (other_models(), "INVALID_ARGUMENT",
         "All ModelSpecs in a MultiInferenceRequest must access the same model name."),
        (several(BOTH[0], BOTH[0]), "INVALID_ARGUMENT",
         "Duplicate evaluation of signature: classify_x_to_y"),
        (several(("nix", "classify")), "INVALID_ARGUMENT",
         "Requested signature not found in model graph: nix"),
        (several(("classify_x_to_y", "predict")), "UNIMPLEMENTED",
         "Unsupported signature method_name: tensorflow/serving/predict"),
    ],
)  # fmt: skip
def test_multi_inference_errors(stub, message, code, text):
    assert refused(stub.MultiInference, message) == (code, text)


@pytest.mark.parametrize("name", ["", "ModelService", "PredictionService"])
def test_health(channel, name):
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    stub = health_pb2_grpc.HealthStub(channel)
    answer = stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=20)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_services_that_are_not_registered(channel):
    call = channel.unary_unary("/tensorflow.serving.SessionService/SessionRun")
    with pytest.raises(grpc.RpcError) as caught:
        call(b"", timeout=20)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_reflection(channel):
    from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    ask = reflection_pb2.ServerReflectionRequest
    requests = [
        ask(list_services=""),
        ask(file_containing_symbol="tensorflow.serving.PredictionService"),
    ]
    listed, found = stub.ServerReflectionInfo(iter(requests), timeout=20)
    names = {service.name for service in listed.list_services_response.service}
    assert {"tensorflow.serving.PredictionService", "tensorflow.serving.ModelService"} <= names
    assert found.file_descriptor_response.file_descriptor_proto
