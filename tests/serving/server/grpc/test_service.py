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
    get_model_metadata_pb2,
    model_management_pb2,
)

from gru_serving.engine.worker_threads import WorkerThreads
from gru_serving.inference.service import Inference
from gru_serving.protos.services import PREDICTION_SERVICE, generic_handler
from gru_serving.repository.repository import Repository
from gru_serving.server.grpc.listener import DrainGate, TokenGuard
from gru_serving.server.grpc.services import PredictionService
from gru_serving.server.tokens import Tokens
from tests.serving.messages import (
    BOTH,
    examples,
    metadata,
    multi_inference,
    predict,
    refused,
    regression,
    status,
)
from tests.serving.saved_models import ECHOED

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

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(kept()) < 3 * size
    finally:
        gc.enable()


AFFINE = {"x": np.float32([[1, 0, 0]]), "b": np.float32([[0.5]])}


def test_predict(stub):
    response = stub.Predict(predict("affine", **AFFINE), timeout=20)
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
    message = predict("affine", label="stable", **AFFINE)
    spec = stub.Predict(message, timeout=20).model_spec
    assert (spec.version.value, spec.version_label) == (1, "")


def test_typed_list_and_content_are_both_accepted(stub):
    message = predict("affine", **AFFINE)
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
    response = stub.Predict(predict("echo", name, x=value), timeout=20)
    back = tf.make_ndarray(response.outputs["x"])
    assert response.outputs["x"].dtype == dtype.as_datatype_enum
    np.testing.assert_array_equal(back, value)


def test_output_filter(stub):
    message = predict("affine", **AFFINE)
    message.output_filter.append("doubled")
    outputs = stub.Predict(message, timeout=20).outputs
    assert list(outputs) == ["doubled"]


def test_wrong_type_has_tensorflows_text(stub):
    code, text = refused(stub.Predict, predict("affine", x=np.int32([[1, 0, 0]]), b=AFFINE["b"]))
    assert code == "INVALID_ARGUMENT"
    assert text in {f"Expects arg[{i}] to be float but int32 is provided" for i in (0, 1)}


def test_deadline(stub):
    with pytest.raises(grpc.RpcError) as caught:
        stub.Predict(predict("affine", "spin", steps=np.int64(10**10)), timeout=0.3)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


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


def test_empty_label_is_a_label(stub):
    assert refused(stub.Predict, predict("affine", label="")) == (
        "INVALID_ARGUMENT",
        "Unrecognized servable version label: ",
    )


def test_metadata(stub):
    message = metadata(model_spec={"name": "text"}, metadata_field=["signature_def"])
    response = stub.GetModelMetadata(message, timeout=20)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(signatures)
    assert signatures.signature_def["serving_default"].inputs["text"].dtype == tf.string
    assert (response.model_spec.name, response.model_spec.version.value) == ("text", 1)
    assert response.model_spec.signature_name == ""


def test_status(models_stub):
    message = status(model_spec={"name": "affine"})
    states = models_stub.GetModelStatus(message, timeout=20).model_version_status
    assert [(s.version, s.state, s.status.error_code) for s in states] == [(3, 30, 0), (1, 30, 0)]


def test_classify(stub):
    message = examples("text", "classify", b"good", b"awful")
    response = stub.Classify(message, timeout=20)
    rows = response.result.classifications
    assert [[c.label for c in row.classes] for row in rows] == [["negative", "positive"]] * 2
    assert rows[0].classes[1].score == pytest.approx(0.7310586, abs=1e-6)
    assert response.model_spec.signature_name == "classify"


def test_regress(stub):
    response = stub.Regress(regression("text", "regress", b"good"), timeout=20)
    assert [r.value for r in response.result.regressions] == [pytest.approx(0.7310586, abs=1e-6)]


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


def test_multi_inference(stub):
    first, second = stub.MultiInference(multi_inference(*BOTH), timeout=20).results
    assert first.classification_result.classifications[0].classes[0].score == 3.5
    assert second.regression_result.regressions[0].value == 3.5
    spec = second.model_spec
    assert (spec.name, spec.version.value) == ("half/plus:two", 1)
    assert spec.signature_name == "regress_x_to_y"


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
