"""What is checked before Ray is asked, and a replica by itself."""

import asyncio
from collections import Counter
from types import SimpleNamespace

import grpc
import httpx
import numpy as np
import pytest

from gru_serving.codecs.tensor_proto import decode_tensor, encode_tensor
from gru_serving.config.files import single_model
from gru_serving.config.flags import FLAGS, REPLICA_FLAGS, Flags
from gru_serving.errors import InvalidArgument
from gru_serving.protos.predict_pb2 import PredictRequest, PredictResponse
from tests.serving.scrape import parsed, rendered


@pytest.fixture(scope="module")
def replica(exports):
    from gru_serving.ray import Replica

    base = exports.version("one").parent
    return Replica([single_model("one", str(base))], Flags())


def called(replica, method, raw):
    """Code, text and answer of a call as Ray's proxy makes it."""
    seen = SimpleNamespace(code=None, text=None)
    context = SimpleNamespace(
        set_code=lambda code: setattr(seen, "code", code),
        set_details=lambda text: setattr(seen, "text", text),
    )
    answer = asyncio.run(getattr(replica, method)(raw, grpc_context=context))
    return seen.code, seen.text, answer.SerializeToString()


def test_a_replica_answers_rest_and_knows_no_other_configuration(replica):
    async def got(path):
        transport = httpx.ASGITransport(replica.__serve_build_asgi_app__())
        async with httpx.AsyncClient(transport=transport, base_url="http://ray") as client:
            return await client.get(path)

    assert asyncio.run(got("/v1/models/one")).json()["model_version_status"][0]["version"] == "1"
    assert asyncio.run(got("/v1/models/two")).status_code == 404
    code, text, _ = called(replica, "HandleReloadConfigRequest", b"")
    assert (code, "gru-serve deploy-ray CONFIG" in text) == (grpc.StatusCode.UNIMPLEMENTED, True)


def test_a_replica_answers_grpc(replica):
    request = PredictRequest()
    request.model_spec.name = "two"
    assert called(replica, "Predict", request.SerializeToString()) == (
        grpc.StatusCode.NOT_FOUND, "Servable not found for request: Latest(two)", b"",
    )  # fmt: skip


def test_requests_that_ray_hands_over_together_are_one_run(exports, tmp_path):
    """In place of `@serve.batch`: 32 requests of one model, for which the engine waits for."""
    from gru_serving.ray import Replica

    parameters = tmp_path / "batching"
    parameters.write_text("max_batch_size { value: 32 } batch_timeout_micros { value: 1000000 }")
    flags = Flags(enable_batching=True, batching_parameters_file=str(parameters))
    base = exports.version("one").parent
    merging = Replica([single_model("one", str(base))], flags)
    context = SimpleNamespace(set_code=None, set_details=None)

    async def together():
        requests = (prediction("a good film " * length) for length in LENGTHS)
        return await asyncio.gather(*(merging.Predict(each, context) for each in requests))

    before = batches(merging)
    answers = asyncio.run(together())
    assert batches(merging) - before == {"wrapped_run_count": 1, "processed_batch_size_sum": 32}
    alone = Replica([single_model("one", str(base))], Flags())
    for length, answer in zip(LENGTHS[:4], answers, strict=False):
        _, _, expected = called(alone, "Predict", prediction("a good film " * length))
        assert scores(answer) == pytest.approx(scores(expected), abs=1e-6)


LENGTHS = 8 * (1, 2, 3, 4)


def batches(replica):
    """Runs of merged requests so far, and their rows."""
    counted = parsed(rendered(replica._metrics))
    names = "wrapped_run_count", "processed_batch_size_sum"
    serving = ":tensorflow:serving:batching_session:"
    return Counter({name: counted.get(serving + name, {}).get((), 0) for name in names})


def prediction(text):
    request = PredictRequest()
    request.model_spec.name = "one"
    request.inputs["text"].CopyFrom(encode_tensor(np.array([text.encode()], object)))
    return request.SerializeToString()


def scores(answer):
    return decode_tensor(PredictResponse.FromString(bytes(answer)).outputs["scores"]).ravel()


def test_flags_that_no_replica_honours_are_refused(exports):
    from gru_serving.ray import deployment

    assert {one.name for one in FLAGS} > REPLICA_FLAGS
    base = exports.version("one").parent
    with pytest.raises(InvalidArgument, match=r"--auth_token_file: expected .* honour.*'tokens'"):
        deployment(base, Flags(auth_token_file="tokens"))
    deployment(base, Flags(enable_batching=True), num_replicas=2)


def test_a_configuration_without_models_is_refused(tmp_path):
    from gru_serving.ray import deployment

    (tmp_path / "models.config").write_text("model_config_list {}")
    with pytest.raises(InvalidArgument, match="expected a model_config_list with a model"):
        deployment(tmp_path / "models.config")


def test_a_configuration_with_a_shadow_is_refused(tmp_path):
    from gru_serving.ray import deployment

    (tmp_path / "models.config").write_text(
        'model_config_list { config { name: "m" base_path: "/m" model_platform: "tensorflow" '
        "shadow { version: 2 share: 1 } } }"
    )
    with pytest.raises(InvalidArgument, match=r"expected no shadow.* take it out of the model m"):
        deployment(tmp_path / "models.config")
