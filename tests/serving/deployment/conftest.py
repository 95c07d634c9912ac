"""A server of the two exported classifiers."""

import pytest

from tests.serving.servers import models_flag, running


@pytest.fixture(scope="module")
def deployed(exports, tmp_path_factory):
    directory = tmp_path_factory.mktemp("deployed")
    bases = {name: exports.root / name for name in ("one", "both")}
    with running(directory / "log", models_flag(directory, bases)) as server:
        yield server


@pytest.fixture(params=["rest", "grpc"])
def url(request, deployed):
    return getattr(deployed, request.param)
