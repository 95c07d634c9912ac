"""The import rule: keras_gru <- gru_training <- gru_serving, and light clients."""

import ast
import importlib
import os
import subprocess
import sys

import pytest

from tests.packages import PACKAGES, module_name
from tests.packages import ROOT as REPOSITORY


def test_contracts():
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


def modules_with_all():
    for folder in PACKAGES.values():
        yield from (
            module_name(path)
            for path in folder.rglob("*.py")
            if "__all__" in path.read_text(encoding="utf-8")
        )


def test_every_all_is_real():
    for name in modules_with_all():
        module = importlib.import_module(name)
        listed = module.__all__
        assert len(set(listed)) == len(listed), name
        assert [one for one in listed if not hasattr(module, one)] == [], name


LIGHT = (
    "gru_serving.errors",
    "gru_serving.preprocessing",
    "gru_serving.codecs.json_predict",
    "gru_serving.codecs.tensor_proto",
    "gru_serving.codecs.json_example",
    "gru_serving.client",
    "gru_serving.client.rest.client",
    "gru_serving.client.grpc.client",
    "gru_serving.client.streaming",
    "gru_serving.commands.stream",
    "gru_serving.commands.explain",
    "gru_serving.release.verify",
    "gru_serving.commands.example_request",
    "gru_serving.commands.rollout",
    "gru_serving.commands.watch",
    "gru_serving.commands.publish",
    "gru_serving.commands.prune",
    "gru_serving.commands.inspect",
    "gru_serving.commands.diff",
    "gru_serving.commands.predict",
    "gru_serving.commands.conformance",
    "gru_serving.config.flags",
    "gru_serving.config.files",
    "gru_serving.__main__",
    "gru_serving.server.process",
)


def test_clients_and_codecs_load_no_tensorflow():
    program = "\n".join(
        [
            "import sys",
            *(f"import {name}" for name in LIGHT),
            "heavy = {'tensorflow', 'keras', 'keras_gru'} & set(sys.modules)",
            "heavy |= {name for name in sys.modules if name.startswith('gru_training')}",
            "assert not heavy, heavy",
        ]
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_rest_client_leaves_heavy_modules_for_later():
    program = (
        "import sys, gru_serving.client.rest.client; "
        "print(*({'tensorflow', 'keras', 'grpc', 'httpx', 'starlette', 'rich'} & set(sys.modules)))"
    )
    loaded = subprocess.check_output([sys.executable, "-c", program], cwd=REPOSITORY, text=True)
    assert loaded.split() == []


def imported(path):
    """The names in a module's import statements, wherever they are."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.slow
def test_no_test_module_is_imported():
    """Code shared by tests has its own module, or is a fixture in conftest.py."""
    found = [
        f"{path.relative_to(REPOSITORY)}: {name}"
        for folder in (*PACKAGES.values(), REPOSITORY / "tests", REPOSITORY / "benchmarks")
        for path in folder.rglob("*.py")
        for name in imported(path)
        if any(part.startswith("test_") for part in name.split("."))
    ]
    assert found == []


# Missing in Python for Windows.
WITHOUT_POSIX = """
import os, signal, sys
for name in ("fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty",
             "uvloop"):
    sys.modules[name] = None
for name in ("chown", "fchmod", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid",
             "getuid", "killpg", "mkfifo", "pread", "pwrite", "register_at_fork",
             "sched_getaffinity", "setsid", "statvfs"):
    if hasattr(os, name):
        delattr(os, name)
os.process_cpu_count = os.cpu_count  # from Python 3.13 on; made for POSIX, it needs the above
for name in ("SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1", "SIGUSR2"):
    delattr(signal, name)
"""


def run_without_posix(program, *arguments):
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX + program, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )


# As on Windows: folders cannot be opened, and files opened only for reading cannot be synced.
PUBLISH = """
import importlib, pathlib
folder, *modules = sys.argv[1:]
for name in modules:
    importlib.import_module(name)
from gru_serving.storage.publishing import publisher, put_in_place
from gru_training.runs.directory import RunWriter

def synced(descriptor):
    os.write(descriptor, b"")

def opened(path, *more, given=os.open, **options):
    if os.path.isdir(path):
        raise PermissionError(13, "is a folder", path)
    return given(path, *more, **options)

sys.platform, os.open, os.fsync = "win32", opened, synced
folder = pathlib.Path(folder)
with publisher(folder / "models") as aside:
    (aside / "saved_model.pb").write_bytes(b"model")
    put_in_place(aside, folder / "models")
with RunWriter(folder, "run") as writer:
    writer.write_text("report.md", "fine")
    writer.publish()
"""


@pytest.mark.slow
def test_without_posix_every_module_imports_and_results_are_published(tmp_path):
    modules = [
        module_name(path)
        for folder in PACKAGES.values()
        for path in sorted(folder.rglob("*.py"))
        if "ray" not in path.stem.split("_")  # Ray itself, as installed here, needs them
    ]
    done = run_without_posix(PUBLISH, str(tmp_path), *modules)
    assert done.returncode == 0, done.stderr
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {"models/1/saved_model.pb", "run/manifest.json", "run/report.md"}


def test_the_server_says_that_it_does_not_run_on_windows():
    done = run_without_posix(
        "from gru_serving.commands.serve import main; sys.platform = 'win32'; sys.exit(main([]))"
    )
    assert done.returncode == 255, done.stderr
    assert "the server needs Linux or macOS" in done.stdout


def loaded_after(program):
    """Names of all modules that a fresh process has loaded afterwards."""
    program += "\nimport sys\nprint(*sys.modules)"
    return set(
        subprocess.check_output([sys.executable, "-c", program], cwd=REPOSITORY, text=True).split()
    )


def test_rest_answers_without_grpc():
    loaded = loaded_after("import gru_serving.server.rest.listener")
    assert "starlette" in loaded
    assert [name for name in loaded if name.startswith(("grpc", "gru_serving.server.grpc"))] == []


def test_use_cases_load_no_transport():
    loaded = loaded_after("import gru_serving.inference.service")
    transports = ("grpc", "starlette", "uvicorn", "httptools", "gru_serving.server")
    assert [name for name in loaded if name.startswith(transports)] == []


def test_grpc_client_needs_no_json():
    loaded = loaded_after("import gru_serving.client.grpc.client")
    assert "grpc" in loaded
    json = ("gru_serving.codecs.json", "gru_serving.codecs.rapidjson", "orjson", "httpx")
    assert [name for name in loaded if name.startswith(json)] == []
