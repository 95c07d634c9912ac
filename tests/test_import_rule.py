"""The import rule of the house: keras_gru <- training <- serving, and light clients."""

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
    "serving.rest_codec",
    "serving.grpc_codec",
    "serving.json_example",
    "serving.client",
    "serving.rest_client",
    "serving.grpc_client",
    "serving.streaming",
    "serving.stream_command",
    "serving.explain_command",
    "serving.verify",
    "serving.load_test_command",
    "serving.load_test",
    "serving.load_report",
    "serving.example_request",
    "serving.rollout_command",
    "serving.publish_command",
    "serving.prune_command",
    "serving.inspect_command",
    "serving.diff_command",
    "serving.predict",
    "serving.flags",
    "serving.config_files",
    "serving.__main__",
    "serving.server",
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
        "import sys, serving.rest_client; "
        "print(*({'tensorflow', 'keras', 'grpc', 'httpx', 'starlette', 'rich'} & set(sys.modules)))"
    )
    loaded = subprocess.check_output([sys.executable, "-c", program], cwd=REPOSITORY, text=True)
    assert loaded.split() == []
