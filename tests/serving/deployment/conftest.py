"""A server of the two exported classifiers."""

import pytest

from tests.serving.servers import running

CONFIG = """
model_config_list {{
  config {{ name: "one" base_path: "{root}/one" model_platform: "tensorflow" }}
  config {{ name: "both" base_path: "{root}/both" model_platform: "tensorflow" }}
}}
"""


@pytest.fixture(scope="module")
def deployed(exports, tmp_path_factory):
    directory = tmp_path_factory.mktemp("deployed")
    config = directory / "models.config"
    config.write_text(CONFIG.format(root=exports.root))
    with running(directory / "log", f"--model_config_file={config}") as server:
        yield server


@pytest.fixture(params=["rest", "grpc"])
def url(request, deployed):
    return getattr(deployed, request.param)
