"""The files that go with a release agree with the code and with one another."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def text(name):
    return (ROOT / name).read_text("utf-8")


@pytest.fixture(scope="module")
def version():
    return re.search(r'^__version__ = "(.+)"$', text("keras_gru/__init__.py"), re.M)[1]


def test_all_name_the_same_version(version):
    citation = yaml.safe_load(text("CITATION.cff"))
    assert citation["version"] == version
    released = re.findall(r"^## (\d[\d.]*) - (\d{4}-\d\d-\d\d)$", text("CHANGELOG.md"), re.M)
    assert released[0] == (version, citation["date-released"])
    assert re.findall(r"^ARG VERSION=(.+)$", text("docker/Dockerfile"), re.M) == [version]


def test_the_newest_release_is_supported(version):
    supported = re.findall(r"^\| ([\d.]+) \| yes \|$", text("SECURITY.md"), re.M)
    assert supported == [version.rpartition(".")[0]]


def test_the_policy_names_what_is_required():
    policy = text("docs/support.md")
    pythons = re.findall(r":: Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert f"| Python | {', '.join(pythons)} |" in policy
    assert re.search(r"^PYTHONS +\?= (.+)$", text("Makefile"), re.M)[1].split() == pythons
    layer = dict(line.split(">=") for line in PROJECT["optional-dependencies"]["layer"])
    assert f"TensorFlow {layer['tensorflow']} and newer, Keras {layer['keras']} and newer" in policy


@pytest.mark.parametrize(
    ("module", "name", "file"),
    [
        ("serving/gru_serving/preprocessing/description.py", "FORMAT", "assets.extra/onnx/"),
        ("serving/gru_serving/drift/reference.py", "_FORMAT", "assets.extra/reference.json"),
    ],
)
def test_the_policy_names_the_formats(module, name, file):
    number = re.search(rf"^{name} = (\d+)$", text(module), re.M)[1]
    (line,) = [
        line for line in text("docs/support.md").split("\n") if line.startswith(f"| `{file}`")
    ]
    assert f"`format` (now {number})" in line


def test_the_notice_has_what_the_pages_hold():
    """Everything that a page's sources import from npm, in its version and with its licence."""
    notice = text("NOTICE")
    sources = [path for path in (ROOT / "web").rglob("*.js") if "node_modules" not in path.parts]
    imported = set()
    for path in sources:
        imported |= set(re.findall(r'(?:from|import) "([\w@][^"]*)"', path.read_text("utf-8")))
    assert imported == {"uplot"}
    lock = json.loads(text("web/package-lock.json"))["packages"]["node_modules/uplot"]
    assert f"uPlot {lock['version']}\n" in notice
    page = text("serving/gru_serving/server/playground/assets/playground.js")
    licence = re.match(r"/\*! Charts: uPlot \S+\n(.*?)\n\*/", page, re.S)[1]
    assert licence in notice
    for path in re.findall(r"(?:serving|training|keras_gru)/[\w./]+\w", notice):
        assert (ROOT / path).exists(), path
