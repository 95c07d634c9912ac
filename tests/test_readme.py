"""The README's Python examples run as they are."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.S)


def test_there_are_examples():
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_runs(example, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for what an example writes
    if "import torch" in example:
        pytest.importorskip("torch")
    exec(compile(example, "README.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out
