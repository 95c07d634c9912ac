"""How the server starts, and refuses to start."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from gru_serving.client import connect
from gru_serving.config.flags import usage
from tests.ports import free_ports
from tests.serving.server.ended_server import ended, failure
from tests.serving.servers import REPOSITORY, answered_and_imported, running


def test_help_and_version():
    assert ended("--help")[:2] == (255, usage() + "\n")
    status, out, _ = ended("--version")
    assert status == 0
    assert "TensorFlow ModelServer: keras-gru " in out
    assert "TensorFlow Library: " in out


def test_bad_value_prints_usage():
    status, out, _ = ended("--port=x")
    assert status == 255
    assert out.startswith("Couldn't interpret value x for flag port")
    assert usage() in out


def test_a_start_imports_no_keras(models, tmp_path):
    """TensorFlow would install it, which takes half of the time of a start."""
    one = {"x": np.ones((1, 3)), "b": np.zeros((1, 1))}
    _, imported = answered_and_imported(tmp_path, "affine", models / "affine", one)
    assert not {"keras", "keras.src", "matplotlib", "pandas", "sklearn"} & imported


def test_a_system_without_threads_is_one_line(tmp_path):
    """Each thread takes 8 MB of address space for its stack."""
    config = tmp_path / "models.config"
    config.write_text("model_config_list {}")
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "gru_serving", "serve", f"--port={port}"]
    command += ["--grpc_max_threads=2000", f"--model_config_file={config}"]
    ended = subprocess.run(
        ["sh", "-c", 'ulimit -v 4000000; exec "$@"', "sh", *command],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 255
    assert ended.stdout.startswith(
        "Failed to start server. Error: RESOURCE_EXHAUSTED: the system started no more threads"
    )
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_garbage_collection_passes_over_modules(models, tmp_path):
    """The collector would take 150 ms for their quarter of a million objects, again and again."""
    seen = tmp_path / "seen"
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, gc, pathlib\n"
        "path = pathlib.Path(__file__).with_name('seen')\n"
        "note = lambda: path.write_text(f'{gc.isenabled()} {len(gc.get_objects())}')\n"
        "atexit.register(note)\n"
    )
    flags = ("--model_name=affine", f"--model_base_path={models}/affine")
    environment = {"PYTHONPATH": str(tmp_path)}
    with (
        running(tmp_path / "log", *flags, environment=environment) as server,
        connect(server.rest) as client,
    ):
        client.predict({"x": np.ones((1, 3)), "b": np.zeros((1, 1))}, "affine")
    enabled, objects = seen.read_text().split()
    assert enabled == "True"
    assert int(objects) < 50_000


def test_start_errors():
    assert failure() == (
        "Failed to start server. Error: INVALID_ARGUMENT: Both server_options.model_base_path and "
        "server_options.model_config_file are empty!\n"
    )
    assert failure("--model_base_path=relative") == (
        "Failed to start server. Error: INVALID_ARGUMENT: Expected model default to have an "
        "absolute path or URI; got base_path()=relative\n"
    )


def test_bad_config_file(tmp_path):
    config = tmp_path / "c"
    config.write_text("nonsense")
    status, out, err = ended(f"--model_config_file={config}")
    assert status == 255
    assert out == (
        f"Failed to start server. Error: INVALID_ARGUMENT: Invalid protobuf file: '{config}'\n"
    )
    assert "Error parsing text-format tensorflow.serving.ModelServerConfig: 1:1: " in err


@pytest.mark.slow
def test_a_start_says_what_takes_long(models, tmp_path):
    version = shutil.copytree(models / "affine" / "1", tmp_path / "m" / "1")
    flags = ("--model_name=m", f"--model_base_path={version.parent}")
    with running(tmp_path / "log", *flags, cold=True) as server:
        log = server.log.read_text()
    said = (
        f"Starting to serve m from {version.parent} ...",
        "Loading servable version",
        "Importing TensorFlow ...",
        "Successfully loaded",
    )
    places = [log.index(one) for one in said]
    assert places == sorted(places)


@pytest.mark.slow
def test_broken_model_ends_the_start(tmp_path):
    (tmp_path / "1").mkdir()
    port, _ = free_ports(2)
    status, out, err = ended(
        f"--port={port}", f"--model_base_path={tmp_path}", "--model_name=m",
        "--max_num_load_retries=1", "--load_retry_interval_micros=-1",
    )  # fmt: skip
    assert status == 255
    assert out.startswith(
        "Failed to start server. Error: UNKNOWN: 1 servable(s) did not become available: {{{name: "
        "m version: 1} due to error: NOT_FOUND: Could not find SavedModel"
    )
    assert "try 2 of 2" in err


def test_module_and_command_line_are_the_same():
    done = subprocess.run(
        [sys.executable, "-m", "gru_serving"],
        cwd=REPOSITORY,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "usage: gru-serve COMMAND" in done.stdout
