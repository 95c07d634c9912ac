"""The import rule: keras_gru <- training <- serving, and light clients."""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGES = ("keras_gru", "training", "serving")


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
    for package in PACKAGES:
        yield from (
            ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")
            for path in (REPOSITORY / package).rglob("*.py")
            if "__all__" in path.read_text(encoding="utf-8")
        )


def test_every_all_is_real():
    for name in modules_with_all():
        module = importlib.import_module(name)
        listed = module.__all__
        assert len(set(listed)) == len(listed), name
        assert [one for one in listed if not hasattr(module, one)] == [], name


LIGHT = (
    "serving.errors",
    "serving.codecs.json_predict",
    "serving.codecs.tensor_proto",
    "serving.codecs.json_example",
    "serving.client",
    "serving.client.rest.client",
    "serving.client.grpc.client",
    "serving.client.streaming",
    "serving.commands.stream",
    "serving.commands.explain",
    "serving.release.verify",
    "serving.commands.load_test",
    "serving.load_test.load",
    "serving.load_test.report",
    "serving.commands.example_request",
    "serving.commands.rollout",
    "serving.commands.watch",
    "serving.commands.publish",
    "serving.commands.prune",
    "serving.commands.inspect",
    "serving.commands.diff",
    "serving.commands.predict",
    "serving.config.flags",
    "serving.config.command_line",
    "serving.config.files",
    "serving.__main__",
    "serving.server.process",
)


def test_clients_and_codecs_load_no_tensorflow():
    program = "\n".join(
        [
            "import sys",
            *(f"import {name}" for name in LIGHT),
            "heavy = {'tensorflow', 'keras', 'keras_gru', 'training'} & set(sys.modules)",
            "assert not heavy, heavy",
        ]
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_rest_client_leaves_heavy_modules_for_later():
    program = (
        "import sys, serving.client.rest.client; "
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


def test_no_test_module_is_imported():
    """Code shared by tests has its own module, or is a fixture in conftest.py."""
    found = [
        f"{path.relative_to(REPOSITORY)}: {name}"
        for package in (*PACKAGES, "tests", "benchmarks")
        for path in (REPOSITORY / package).rglob("*.py")
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
from serving.storage.publishing import publisher, put_in_place
from training.runs.directory import RunWriter

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


def test_without_posix_every_module_imports_and_results_are_published(tmp_path):
    modules = [
        ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")
        for package in PACKAGES
        for path in sorted((REPOSITORY / package).rglob("*.py"))
    ]
    done = run_without_posix(PUBLISH, str(tmp_path), *modules)
    assert done.returncode == 0, done.stderr
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {"models/1/saved_model.pb", "run/manifest.json", "run/report.md"}


def test_the_server_says_that_it_does_not_run_on_windows():
    done = run_without_posix(
        "from serving.commands.serve import main; sys.platform = 'win32'; sys.exit(main([]))"
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
    loaded = loaded_after("import serving.server.rest.app, serving.server.rest.middleware")
    assert "starlette" in loaded
    assert [name for name in loaded if name.startswith(("grpc", "serving.server.grpc"))] == []


def test_use_cases_load_no_transport():
    loaded = loaded_after("import serving.inference.service, serving.inference.examples")
    transports = ("grpc", "starlette", "uvicorn", "httptools", "serving.server")
    assert [name for name in loaded if name.startswith(transports)] == []


def test_grpc_client_needs_no_json():
    loaded = loaded_after("import serving.client.grpc.client")
    assert "grpc" in loaded
    json = ("serving.codecs.json", "serving.codecs.rapidjson", "orjson", "httpx")
    assert [name for name in loaded if name.startswith(json)] == []
