"""docs/reference/conformance.md names tests and cases that exist, and one for every rule."""

import ast
import re

import pytest

from gru_serving.conformance.kit import all_cases
from tests.serving.servers import REPOSITORY

DOCUMENT = (REPOSITORY / "docs/reference/conformance.md").read_text("utf-8")
SECTIONS = (
    "Flags", "Configuration files", "REST: paths", "REST: requests and answers", "gRPC",
    "Versions and lifecycle", "Warmup", "Batching", "Metrics",
)  # fmt: skip
NAMED = sorted(set(re.findall(r"`([\w/]*test_\w+)::(test_\w+)`", DOCUMENT)))


CASES = {re.sub(r"(: .*)? \((rest|grpc)\)$", "", case.name, flags=re.S) for case in all_cases()}
NAMED_CASES = set(re.findall(r"`kit::([^`]+)`", DOCUMENT))


def rules():
    """(section, cells) of every row of a table."""
    section = ""
    for line in DOCUMENT.splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("| ") and not line.startswith("| Rule"):
            yield section, [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("module", sorted({module for module, _ in NAMED}))
def test_tests_exist(module):
    tree = ast.parse((REPOSITORY / "tests" / "serving" / f"{module}.py").read_text("utf-8"))
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert {name for of, name in NAMED if of == module} <= defined


def test_cases_exist():
    assert NAMED_CASES <= CASES


def test_every_section_has_rules_and_every_rule_has_tests():
    found = list(rules())
    assert {section for section, _ in found} == set(SECTIONS)
    for section, cells in found:
        assert len(cells) == 3, (section, cells)
        assert re.search(r"`([\w/]*test_\w+::test_\w+|kit::.+)`", cells[1]), (section, cells[0])
