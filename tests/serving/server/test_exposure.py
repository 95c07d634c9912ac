"""A server that others can reach without a token says so once, and names the remedy."""

import pytest

from gru_serving.commands.serve import exposure
from gru_serving.config.flags import Flags
from tests.serving.servers import running


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (Flags(bind_address="0.0.0.0", rest_api_port=8501), "0.0.0.0:8500 or :8501"),
        (Flags(bind_address="::", port=0, rest_api_port=8501), ":::8501"),
        (Flags(bind_address="192.0.2.1"), "change over gRPC which models are served"),
        (Flags(bind_address="0.0.0.0", enable_profiler=True), "make it write profiles"),
    ],
)
def test_what_is_open(flags, said):
    assert said in exposure(flags)
    assert "Set --auth_token_file" in exposure(flags)


@pytest.mark.parametrize(
    "flags",
    [
        Flags(rest_api_port=8501),
        Flags(bind_address="127.0.0.2"),
        Flags(bind_address="::1"),
        Flags(bind_address="localhost"),
        Flags(bind_address="0.0.0.0", auth_token_file="/tokens"),
        Flags(bind_address="0.0.0.0", port=0, grpc_socket_path="/run/socket"),
    ],
)
def test_what_is_closed(flags):
    assert exposure(flags) == ""


def test_rest_alone_changes_no_models():
    assert "gRPC" not in exposure(Flags(bind_address="0.0.0.0", port=0, rest_api_port=8501))


def test_log_of_a_server(models, tmp_path):
    flags = (f"--model_base_path={models / 'affine'}", "--model_name=affine")
    with running(tmp_path / "log", *flags, "--bind_address=0.0.0.0") as server:
        assert server.log.read_text().count("Without --auth_token_file") == 1
