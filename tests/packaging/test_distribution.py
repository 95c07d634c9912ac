"""What `make wheel` built is complete, contains nothing else, and comes from this checkout."""

import configparser
import subprocess
import tarfile
import zipfile
from email import message_from_string

import pytest

from tests.packages import PACKAGES, ROOT
from tests.packaging.fresh_environment import built

pytestmark = pytest.mark.wheel


@pytest.fixture(scope="module")
def wheel():
    with zipfile.ZipFile(built(".whl")) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def metadata(wheel, name):
    (found,) = [path for path in wheel if path.endswith(f".dist-info/{name}")]
    return wheel[found].decode()


def tracked():
    """The files that git tracks; empty if this is not a checkout."""
    done = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return set(done.stdout.split())


def test_the_wheel_holds_the_packages(wheel):
    """The worked examples are both documents of the project and data of the package."""
    sources = {
        str(path.relative_to(folder.parent)): path.read_bytes()
        for folder in PACKAGES.values()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    for path in (ROOT / "docs" / "worked_examples").iterdir():
        sources[f"keras_gru/worked_examples/{path.name}"] = path.read_bytes()
    assert {name: text for name, text in wheel.items() if ".dist-info/" not in name} == sources
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(wheel)


def test_the_wheel_s_metadata(wheel):
    about = message_from_string(metadata(wheel, "METADATA"))
    version = about["Version"]
    assert f'__version__ = "{version}"' in (ROOT / "keras_gru" / "__init__.py").read_text()
    assert built(".whl").name == f"keras_gru-{version}-py3-none-any.whl"
    for name in ("LICENSE", "NOTICE"):
        assert metadata(wheel, f"licenses/{name}") == (ROOT / name).read_text()
    assert about["License-Expression"] == "Apache-2.0 AND MIT"
    assert about.get_payload().strip() == (ROOT / "README.md").read_text().strip()
    base = [one for one in about.get_all("Requires-Dist") if "extra ==" not in one]
    assert [one.partition(">")[0] for one in base] == ["numpy", "rich"]
    commands = configparser.ConfigParser()
    commands.read_string(metadata(wheel, "entry_points.txt"))
    assert dict(commands["console_scripts"]) == {
        "gru-train": "gru_training.__main__:main",
        "gru-serve": "gru_serving.__main__:main",
    }


def test_the_source_distribution_holds_what_git_has():
    """The wheel was built from it, too."""
    if not (files := tracked()):
        pytest.skip("not a git checkout")
    with tarfile.open(built(".tar.gz")) as archive:
        names = {one.name.partition("/")[2] for one in archive if one.isfile()}
    assert names - {"PKG-INFO"} == files
