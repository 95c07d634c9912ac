"""ARCHITECTURE.md and all other texts name only modules that exist; no package is left out."""

import re
import subprocess

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


# Keys of files and tags of trackers, and examples of tests.
NO_MODULES = {
    "gru_serving.codecs.json", "gru_serving.codecs.png", "gru_training.nowhere.at_all",
    "keras_gru.json", "keras_gru.run", "keras_gru.silent", "keras_gru.task", "keras_gru.version",
}  # fmt: skip
_MODULE = re.compile(r"(?<![\w./>])(gru_training|gru_serving|keras_gru)((?:\.[a-z_]\w*)+)")


def missing_modules(text):
    """Dotted names in a text that lead to no module, nor to a name of the last package there."""
    for package, rest in _MODULE.findall(text):
        place, names = PACKAGES[package], rest[1:].split(".")
        while names and (place / names[0]).is_dir():
            place /= names.pop(0)
        if not names or names[0].startswith("__") or (place / f"{names[0]}.py").exists():
            continue
        own = (place / "__init__.py").read_text("utf-8")
        if not re.search(rf"\b{names[0]}\b", own):
            yield package + rest


def test_no_text_names_a_module_that_has_gone():
    """Docstrings, messages, strings of tests and pages outlive the modules that they name."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md", "*.toml", "*.sh", "*.yaml", "*.conf"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    found = {
        (name, module)
        for name in listed
        if name != "CHANGELOG.md" and (ROOT / name).exists()
        for module in missing_modules((ROOT / name).read_text("utf-8"))
    }
    assert len(listed) > 500
    assert {pair for pair in found if pair[1] not in NO_MODULES} == set()


def test_a_module_that_has_gone_is_found():
    text = (
        "see `gru_training.nowhere.at_all`, keras_gru.GRU, gru_serving.codecs and tests.keras_gru.x"
    )
    assert list(missing_modules(text)) == ["gru_training.nowhere.at_all"]
