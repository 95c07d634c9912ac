"""pyproject.toml agrees with the rest of the project about Python versions and extras."""

import re
import tomllib
from pathlib import Path

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_pythons_are_those_that_are_tested():
    """`make wheel` fails if a classifier is unknown to PyPI."""
    named = re.findall(r":: Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    tested = re.findall(r"^(?:OLDEST|NEWEST) +:= (\S+)", makefile, re.M)
    assert [named[0], named[-1]] == tested
    allowed = SpecifierSet(PROJECT["requires-python"])
    assert next(f"3.{minor}" for minor in range(30) if f"3.{minor}" in allowed) == named[0]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"Python {tested[0]} to {tested[1]}" in readme


def test_the_page_about_installing_names_the_extras():
    page = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
    table = set(re.findall(r"^\| `keras-gru\[([\w-]+)\]`", page, re.M))
    # The other extras are for contributors.
    assert table == set(PROJECT["optional-dependencies"]) - {"dev", "docs", "interop"}
