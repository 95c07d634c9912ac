"""ARCHITECTURE.md names only what exists, and leaves out no package."""

import re

from tests.packages import PACKAGES, ROOT

TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
NAMED = {path.rstrip("/") for path in re.findall(r"`([\w/.-]*/[\w/.-]*)`", TEXT)}


def test_every_path_is_there():
    assert [path for path in sorted(NAMED) if not (ROOT / path).exists()] == []
    assert len(NAMED) > 60


def test_makefile_names_tests_that_exist():
    named = re.findall(r"\btests/[\w/.]+", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []
    assert len(named) > 10


def test_every_package_has_its_place():
    packages = {
        str(path.parent.relative_to(ROOT))
        for package in PACKAGES.values()
        for path in package.glob("*/__init__.py")
        if "protos" not in path.parts
    }
    assert packages - NAMED == set()
