"""What is checked before Ray is asked, and a replica by itself."""

import asyncio
from types import SimpleNamespace

import grpc
import httpx
import pytest

from gru_serving.config.files import single_model
from gru_serving.config.flags import FLAGS, REPLICA_FLAGS, Flags
from gru_serving.errors import InvalidArgument
from gru_serving.protos.predict_pb2 import PredictRequest


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
