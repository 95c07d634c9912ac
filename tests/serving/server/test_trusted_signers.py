"""A live server that requires signatures: at the start, for new versions, after a reload."""

import shutil

import grpc
import pytest

from gru_serving.client import connect
from gru_serving.protos.model_management_pb2 import ReloadConfigRequest
from gru_serving.protos.services import MODEL_SERVICE, Stub
from gru_serving.storage.signatures import Signer
from tests.serving.scrape import page_of
from tests.serving.server.ended_server import failure
from tests.serving.servers import metrics_flag, running, wait_until
from tests.serving.signing_keys import SigningKeys


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return SigningKeys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def signed(models, tmp_path, keys):
    """Makes a version, signed by a key or by nobody, and puts it in place."""

    def make(name, number, signer=keys.key, certificates=()):
        aside = tmp_path / f"aside-{name}-{number}"
        shutil.copytree(models / "affine" / "1", aside)
        if signer is not None:
            Signer(signer, certificates).sign(aside)
        base = tmp_path / name
        base.mkdir(exist_ok=True)
        aside.rename(base / str(number))
        return base

    return make


def reload(server, **bases):
    request = ReloadConfigRequest()
    for name, base in bases.items():
        request.config.model_config_list.config.add(
            name=name, base_path=str(base), model_platform="tensorflow"
        )
    with grpc.insecure_channel(server.grpc) as channel:
        Stub(channel, MODEL_SERVICE).HandleReloadConfigRequest(request, timeout=60)


def test_only_signed_versions_serve(signed, tmp_path, keys):
    base = signed("m", 1)
    signed("m", 2, signer=None)
    flags = (
        "--model_name=m",
        f"--model_base_path={base}",
        metrics_flag(tmp_path),
        f"--trusted_signers={keys.public},{keys.authority}",
    )
    with running(tmp_path / "log", *flags) as server, connect(server.rest) as client:

        def status(model="m"):
            listed = client.status(model)
            return {one.version: (one.state, one.error_message) for one in listed}

        def state(number, model="m"):
            return status(model)[number][0]

        assert state(1) == "AVAILABLE"
        ended, reason = status()[2]
        assert ended == "END"
        assert "expected the signature that --trusted_signers asks for; got none" in reason
        assert reason in server.log.read_text()
        # By another's key; then by a certificate of the authority.
        signed("m", 3, signer=keys.other)
        wait_until(lambda: 3 in status() and state(3) == "END", server)
        assert "the signature does not hold: by " in status()[3][1]
        key, *certificates = keys.signer
        signed("m", 4, key, certificates)
        wait_until(lambda: 4 in status() and state(4) == "AVAILABLE", server)
        # A reload: a model without a good signature fails and leaves the others as they are.
        other = signed("other", 1, signer=keys.other)
        with pytest.raises(grpc.RpcError, match="the signature does not hold: by "):
            reload(server, m=base, other=other)
        assert state(1, "other") == "END"
        assert state(4) == "AVAILABLE"
        Signer(keys.key).sign(other / "1")
        wait_until(lambda: state(1, "other") == "AVAILABLE", server)
        page = page_of(server)
    for path, outcome in (
        (base / "2", "missing"),
        (base / "3", "invalid"),
        (base / "4", "valid"),
    ):
        name = f'gru_serve:signature_check_count{{model_path="{path}",outcome="{outcome}"}} 1'
        assert name in page


def test_a_file_of_no_signer_ends_the_start(signed, tmp_path):
    base = signed("m", 1)
    out = failure(
        "--model_name=m", f"--model_base_path={base}", f"--trusted_signers={tmp_path / 'none.pub'}"
    )
    assert "INVALID_ARGUMENT: --trusted_signers: expected a public key" in out


def test_an_unsigned_version_alone_ends_the_start(signed, tmp_path, keys):
    base = signed("m", 1, signer=None)
    out = failure("--model_name=m", f"--model_base_path={base}", f"--trusted_signers={keys.public}")
    assert "expected the signature that --trusted_signers asks for; got none" in out
