"""A model that training saved can be loaded after `import keras_gru` alone."""

import re
import subprocess
import sys

import pytest

from keras_gru.trained_layers import MODULES
from tests.packages import PACKAGES, module_name
from tests.packages import ROOT as REPOSITORY

LOAD = "import sys, keras, keras_gru; print(keras.models.load_model(sys.argv[1]).count_params())"
WITHOUT_TYRO = "import sys; sys.modules['tyro'] = None; "


def load(program, path):
    return subprocess.run(
        [sys.executable, "-c", program, str(path)],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_every_layer_of_training_is_known():
    registered = re.compile(r'register_keras_serializable\(package="gru_training"\)\nclass (\w+)')
    found = {
        name: module_name(path)
        for path in PACKAGES["gru_training"].rglob("*.py")
        for name in registered.findall(path.read_text(encoding="utf-8"))
    }
    assert found == MODULES


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sentiment", "forecasting"])
def test_a_fresh_process_reads_the_model(kind, request):
    run = request.getfixturevalue({"sentiment": "tiny_run", "forecasting": "forecasting_run"}[kind])
    done = load(LOAD, run.path / "model.keras")
    assert done.stdout.strip() == str(run.metrics["model"]["parameters"]), done.stderr


@pytest.mark.slow
def test_what_is_missing_is_named(tiny_run):
    done = load(WITHOUT_TYRO + LOAD, tiny_run.path / "model.keras")
    assert done.returncode == 1
    assert "needs tyro; install it with pip install 'keras-gru[train]'" in done.stderr
