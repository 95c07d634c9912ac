"""Each extra contains what its modules import: they are imported with nothing else installed."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.packages import PACKAGES, ROOT, module_name

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DISTRIBUTIONS = {
    module: {canonicalize_name(name) for name in names}
    for module, names in packages_distributions().items()
}
IMPORT_WITHOUT = """
import importlib, importlib.util, json, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def find_spec(name, package=None, find=importlib.util.find_spec):
    return None if name in absent else find(name, package)

absent, modules = map(set, json.load(sys.stdin))
importlib.util.find_spec = find_spec  # with which some modules look for what they can do without
sys.meta_path.insert(0, Absent())
for module in sorted(modules):
    importlib.import_module(module)
"""


def direct(*extras):
    """Distributions that the base and some extras require, each with extras of its own."""
    found = {Requirement(line).name: set() for line in PROJECT["dependencies"]}
    for extra in extras:
        for line in map(Requirement, PROJECT["optional-dependencies"][extra]):
            found |= (
                direct(*line.extras) if line.name == PROJECT["name"] else {line.name: line.extras}
            )
    return {canonicalize_name(name): further for name, further in found.items()}


def installed_with(*extras):
    """Names of all distributions that would be installed."""
    found, left = {}, list(direct(*extras).items())
    while left:
        name, further = left.pop()
        if name in found and further <= found[name]:
            continue
        found[name] = found.get(name, set()) | further
        try:
            lines = map(Requirement, requires(name) or [])
        except PackageNotFoundError:
            continue
        left += [
            (canonicalize_name(line.name), line.extras)
            for line in lines
            if line.marker is None
            or any(line.marker.evaluate({"extra": extra}) for extra in ("", *further))
        ]
    return found.keys()


def modules(*rooms, without=()):
    for path in sorted(path for room in rooms for path in room.rglob("*.py")):
        if not (name := module_name(path)).startswith(without):
            yield name


EXPORT = ("gru_serving.export", "gru_serving.commands.export")
TABLES = ("gru_serving.commands.files.score_file",)
RAY = ("gru_serving.ray", "gru_serving.commands.deploy_ray")
SERVING, TRAINING = PACKAGES["gru_serving"], PACKAGES["gru_training"]
KIT_MODELS = "gru_serving.conformance.models"  # made with TensorFlow
CLIENT = [SERVING / room for room in ("client", "codecs", "commands", "conformance", "config",
                                      "protos", "release", "storage", "telemetry")]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("extras", "found"),
    [
        ((), ["gru_serving.__main__", "gru_serving.errors", "gru_training.__main__"]),
        (("client",), modules(*CLIENT, without=(*EXPORT, *TABLES, KIT_MODELS, *RAY))),
        (("layer",), modules(PACKAGES["keras_gru"])),
        (("tables",), [*TABLES, *modules(TRAINING / "scoring", TRAINING / "tables")]),
        (("serve",), modules(SERVING, without=(*EXPORT, *TABLES, *RAY))),
        (("ray",), RAY),
        (("train",), [*modules(TRAINING, SERVING / "export"), "gru_serving.commands.export"]),
    ],
    ids=["base", "client", "layer", "tables", "serve", "ray", "train"],
)
def test_modules_import_with_their_extra(extras, found):
    with_extra = installed_with(*extras)
    absent = [module for module, names in DISTRIBUTIONS.items() if not names & with_extra]
    assert {"tensorflow", "pandas"} & set(absent) or extras == ("train",)
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_WITHOUT], input=json.dumps([absent, list(found)]),
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("package", "extras"),
    [
        ("keras_gru", ("layer", "plot", "train", "interop")),
        ("gru_training", ("train", "excel", "tensorboard", "mlflow", "wandb")),
        ("gru_serving", ("all", "otel", "ray", "signing", "text", "tflite")),
    ],
)
def test_what_is_imported_is_asked_for(package, extras):
    """By name, including those that another package happens to bring along today."""
    asked = direct(*extras)
    for path in PACKAGES[package].rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module]
            for name in {re.split(r"\.", name)[0] for name in names}:
                if name not in PACKAGES and name not in sys.stdlib_module_names:
                    brought_by = DISTRIBUTIONS.get(name, {canonicalize_name(name)})
                    assert brought_by & asked.keys(), f"{path}: {name}"
