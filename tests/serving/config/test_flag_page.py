"""docs/reference/server_flags.md lists every flag, and the tests that it names exist."""

import ast
import runpy
import tomllib
from pathlib import Path

from gru_serving.config.flags import FLAGS, Honour

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parents[1] / "docs/reference/server_flags.md"
LISTED = Path(__file__).with_name("shown_flags.toml")
TOOL = runpy.run_path(str(TESTS.parents[1] / "docs/sphinx/flag_page.py"))
DIFFERENCES, main = TOOL["DIFFERENCES"], TOOL["main"]
SHOWN = tomllib.loads(LISTED.read_text("utf-8"))


def test_page_is_up_to_date(tmp_path):
    main([str(tmp_path / "page.md"), str(LISTED)])
    assert PAGE.read_text("utf-8") == (tmp_path / "page.md").read_text("utf-8"), (
        "write it anew: python docs/sphinx/flag_page.py "
        "docs/reference/server_flags.md tests/serving/config/shown_flags.toml"
    )


def test_every_flag_with_an_effect_names_its_test():
    with_effect = {f.name for f in FLAGS if f.metadata["honour"] is Honour.YES}
    assert with_effect - SHOWN.keys() == set()
    ignored = {f.name for f in FLAGS if f.metadata["honour"] is Honour.IGNORED}
    assert ignored - DIFFERENCES.keys() == set()
    assert ignored & SHOWN.keys() == set()


def test_only_flags_that_exist_are_spoken_of():
    assert SHOWN.keys() | DIFFERENCES.keys() <= {f.name for f in FLAGS}


def test_the_tests_named_exist():
    for module, name in (where.split("::") for where in SHOWN.values()):
        tree = ast.parse((TESTS / f"{module}.py").read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
