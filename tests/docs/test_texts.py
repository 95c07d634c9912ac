"""docs/texts.md: every line of its tables runs; the table of the texts is that of the examples."""

import io
import re
from pathlib import Path

import pytest

from gru_training.command_settings import task_settings
from gru_training.task import find_task
from keras_gru.__main__ import main
from keras_gru.teaching.worked_example import load_examples
from keras_gru.teaching.worked_example_report import read_texts

TEXTS = read_texts()["texts"]
DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "texts.md").read_text("utf-8")
LINES = re.findall(r"^\| (?!the text has|---)(.+?) \| (.*?) ?\| `(.+)` \|$", PAGE, re.M)
COMMANDS = ("trace", "list", "compare")


@pytest.fixture(scope="module")
def names():
    found = {}
    exec(re.search(r"```python\n(.*?)```", PAGE, re.S)[1], found)
    return found


def test_every_line_of_the_tables_is_found():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    assert len(LINES) == len(rows) - 4  # one head in each table
    assert len(LINES) > 50
    for text in TEXTS:
        assert f"## {text['name']}: *" in PAGE


@pytest.mark.parametrize(("what", "where", "code"), LINES, ids=[line[0] for line in LINES])
def test_line_runs(what, where, code, names, capsys, monkeypatch):
    words = code.split()
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    if words[0] == "gru-train":
        config = task_settings(find_task(words[1]), words[2:], "gru-train")
        assert config.model.layers == 2
    elif words[0] in COMMANDS:
        if words[-1] == "--help":
            with pytest.raises(SystemExit, match="0"):
                main(words)
        else:
            assert main(words) == 0
        assert capsys.readouterr().out
    else:
        assert eval(code, names) is not None
    for example in re.findall(r"worked example (\w+)", where):
        assert example in {found.name for found in load_examples()}
    for link in re.findall(r"\]\(([^)#]+)\)", where):
        assert (DOCS / link).exists()


def test_the_texts_write_what_the_table_says():
    for text in TEXTS:
        networks = [
            example.network()
            for example in load_examples()
            if example.content["text"] == text["name"] and example.content.get("network")
        ]
        for network in networks:
            if network.cell_name == "gru":
                assert network.update_gate == text["update_gate"]
                assert not network.reset_after
                assert "before" in text["reset"]
    assert [text["update_gate"] for text in TEXTS] == ["keep", "replace", "replace", "replace"]
    assert {text["name"] for text in TEXTS} == {e.content["text"] for e in load_examples()}


def test_titles_are_those_of_the_texts():
    texts = DOCS.parents[1] / "shared" / "texts"
    if not texts.exists():
        pytest.skip("needs the texts beside the checkout")
    for text in TEXTS:
        content = " ".join((texts / f"{text['name']}.md").read_text("utf-8").split())
        for part in text["title"].split("; "):
            for words in part.split(", "):
                assert words in content
