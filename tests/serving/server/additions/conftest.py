"""One server with all additions for each file."""

import ssl

import grpc
import pytest
from tensorflow_serving.apis import (
    prediction_service_pb2_grpc,
)

from tests.serving.certificate import certificate
from tests.serving.server.additions.equipped import CONFIG, OTHER, TOKEN, Equipped, ready
from tests.serving.servers import metrics_flag, running, wait_until


@pytest.fixture(scope="module")
def equipped(models, tmp_path_factory):
    directory = tmp_path_factory.mktemp("additions")
    pair = certificate(directory)
    quoted = [path.read_text().replace("\n", "\\n") for path in pair]
    config, tls, tokens = (directory / name for name in ("models", "ssl", "tokens"))
    config.write_text(CONFIG.format(root=models))
    tls.write_text(f'server_key: "{quoted[0]}" server_cert: "{quoted[1]}"')
    tokens.write_text(f"# who may ask\n{TOKEN}\n{OTHER}\n")
    flags = (
        f"--model_config_file={config}",
        "--allow_version_labels_for_unavailable_models",
        metrics_flag(directory),
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


@pytest.fixture(scope="module")
def channel(equipped):
    with grpc.insecure_channel(equipped.server.grpc) as channel:
        yield channel


@pytest.fixture(scope="module")
def stub(channel):
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)
