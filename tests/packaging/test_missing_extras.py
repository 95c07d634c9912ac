"""If a package is missing, commands and imports name the extra to install, in one line."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""
COMMAND = """
from importlib import import_module
sys.exit(import_module(sys.argv[2]).main(sys.argv[3:]))
"""


def run_without(module, package, *arguments):
    return program_without(module, COMMAND, f"{package}.__main__", *arguments)


def program_without(module, program, *arguments):
    return subprocess.run(
        [sys.executable, "-c", ABSENT + program, module, *arguments],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("module", "package", "arguments", "message"),
    [
        ("tyro", "gru_training", ["--help"],
         "gru-train: error: training needs tyro, which is not installed; install it with "
         "pip install 'keras-gru[train]'\n"),
        ("scipy", "gru_training", ["backtest", "runs/none"],
         "gru-train: error: training needs scipy, which is not installed; install it with "
         "pip install 'keras-gru[train]'\n"),
        ("keras", "gru_serving", ["export", "runs/none", "--to", "models/none"],
         "gru-serve export: needs keras, which is not installed; install it with "
         "pip install 'keras-gru[train]'\n"),
        ("tyro", "gru_serving", ["export", "runs/none", "--to", "models/none"],
         "gru-serve export: needs tyro, which is not installed; install it with "
         "pip install 'keras-gru[train]'\n"),
        ("orjson", "gru_serving", ["predict", "--model", "m", "a text"],
         "gru-serve predict: needs orjson, which is not installed; install it with "
         "pip install 'keras-gru[client]'\n"),
        ("google", "gru_serving", ["prune", "models", "--keep", "1"],
         "gru-serve prune: needs protobuf, which is not installed; install it with "
         "pip install 'keras-gru[client]'\n"),
    ],
)  # fmt: skip
def test_the_extra_is_named(module, package, arguments, message):
    done = run_without(module, package, *arguments)
    assert done.stderr == message
    assert done.returncode == 2


@pytest.mark.parametrize("module", ["onnxruntime", "starlette", "grpc_reflection"])
def test_a_server_says_so_before_it_loads_a_model(module, tmp_path):
    """The package loaded, and failed when it was first used."""
    flags = ("--port=1", "--model_name=m", f"--model_base_path={tmp_path}")
    done = run_without(module, "gru_serving", "serve", *flags)
    assert done.stderr.splitlines()[-1] == (
        f"gru-serve serve: needs {module}, which is not installed; install it with "
        "pip install 'keras-gru[serve]'"
    )
    assert done.returncode == 2
    assert "servable" not in done.stderr


@pytest.mark.parametrize(
    ("module", "flag", "message"),
    [
        ("opentelemetry", "--tracing", "needs opentelemetry-sdk, which is not installed; "
         "install it with pip install 'keras-gru[otel]'"),
        ("model_signing", "--trusted_signers=key.pub", "needs model-signing, which is not "
         "installed; install it with pip install 'keras-gru[signing]'"),
    ],
)  # fmt: skip
def test_what_a_flag_asks_for_is_named_before_a_model_is_loaded(module, flag, message, tmp_path):
    flags = ("--port=1", "--model_name=m", f"--model_base_path={tmp_path}", flag)
    done = run_without(module, "gru_serving", "serve", *flags)
    assert done.stderr.splitlines()[-1] == f"gru-serve serve: {message}"
    assert done.returncode == 2
    assert "Loading" not in done.stderr


@pytest.mark.slow
def test_a_model_says_that_it_needs_tensorflow(tmp_path):
    """The server itself does without it: models of ONNX may be all that it serves."""
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").touch()
    flags = (
        "--port=1",
        "--model_name=m",
        "--max_num_load_retries=0",
        f"--model_base_path={tmp_path}",
    )
    done = run_without("tensorflow", "gru_serving", "serve", *flags)
    assert done.returncode == 255
    assert "needs TensorFlow, which is not installed here: use the image `engine`" in done.stdout
    assert "pip install 'keras-gru[serve]'" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "program", "message"),
    [
        ("keras", "import keras_gru",
         "keras_gru needs keras, which is not installed; install it with "
         "pip install 'keras-gru[layer]'"),
        ("tensorflow", "import keras_gru",
         "keras_gru needs tensorflow, which is not installed; install it with "
         "pip install 'keras-gru[layer]'"),
        ("google", "from gru_serving.client import connect",
         "gru_serving.client needs protobuf, which is not installed; install it with "
         "pip install 'keras-gru[client]'"),
        ("aiohttp", "from gru_serving.client import connect; connect('http://localhost:1')",
         "gru_serving.client needs aiohttp, which is not installed; install it with "
         "pip install 'keras-gru[client]'"),
        ("grpc", "from gru_serving.client import connect_async; connect_async('localhost:1')",
         "gru_serving.client needs grpcio, which is not installed; install it with "
         "pip install 'keras-gru[client]'"),
        ("matplotlib", "from keras_gru.introspection import plot_gradient_flow as plot; plot({})",
         "keras_gru needs matplotlib, which is not installed; install it with "
         "pip install 'keras-gru[plot]'"),
    ],
)  # fmt: skip
def test_an_import_names_the_extra(module, program, message):
    done = program_without(module, program)
    assert done.stderr.splitlines()[-1] == f"ModuleNotFoundError: {message}"


def test_another_missing_module_is_left_as_it_is():
    """Keras looks for JAX if the environment says so; none of our extras contains it."""
    done = program_without(
        "jax", "import os; os.environ['KERAS_BACKEND'] = 'jax'; import keras_gru"
    )
    assert "pip install" not in done.stderr
    assert "No module named 'jax'" in done.stderr


@pytest.mark.slow
def test_a_comparison_says_so_before_it_trains(tmp_path):
    done = run_without("matplotlib", "keras_gru", "compare", "--output", str(tmp_path))
    assert done.stderr.splitlines()[-1].endswith(
        "error: keras_gru needs matplotlib, which is not installed; install it with "
        "pip install 'keras-gru[plot]'"
    )
    assert done.returncode == 2


def test_debug_shows_where_it_is_needed():
    done = run_without("tyro", "gru_training", "--help", "--debug")
    assert "Traceback" in done.stderr
    assert done.returncode == 1


def test_a_fault_of_the_package_is_no_missing_extra():
    done = run_without("gru_training", "gru_training", "--help")
    assert "Traceback" in done.stderr
    assert "pip install" not in done.stderr
