"""Without an optional dependency the command lines name the extra to install, in one line."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
WITHOUT = """
import sys
from importlib import import_module

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
sys.exit(import_module(sys.argv[2]).main(sys.argv[3:]))
"""


def run_without(module, package, *arguments):
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, module, f"{package}.__main__", *arguments],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("module", "package", "arguments", "message"),
    [
        ("tyro", "training", ["--help"],
         "gru-train: error: training needs tyro, which is not installed; install it with "
         "pip install 'keras-gru[train]'\n"),
        ("scipy", "training", ["backtest", "runs/none"],
         "gru-train: error: training needs scipy, which is not installed; install it with "
         "pip install 'keras-gru[train]'\n"),
        ("tyro", "serving", ["export", "runs/none", "--to", "models/none"],
         "gru-serve export: needs tyro, which is not installed; install it with "
         "pip install 'keras-gru[train,serve]'\n"),
        ("orjson", "serving", ["predict", "--model", "m", "a text"],
         "gru-serve predict: needs orjson, which is not installed; install it with "
         "pip install 'keras-gru[serve]'\n"),
    ],
)  # fmt: skip
def test_the_extra_is_named(module, package, arguments, message):
    done = run_without(module, package, *arguments)
    assert done.stderr == message
    assert done.returncode == 2


def test_debug_shows_where_it_is_needed():
    done = run_without("tyro", "training", "--help", "--debug")
    assert "Traceback" in done.stderr
    assert done.returncode == 1


def test_a_fault_of_the_package_is_no_missing_extra():
    done = run_without("training", "training", "--help")
    assert "Traceback" in done.stderr
    assert "pip install" not in done.stderr
