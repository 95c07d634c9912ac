"""The examples of docs/how_to/layer.md run as they are, and its table names what there is."""

import re
from pathlib import Path

import pytest

import keras_gru
from keras_gru import convert, introspection

PAGE = (Path(__file__).parents[2] / "docs/how_to/layer.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.S)


def test_there_are_examples():
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_runs(example, capsys):
    if "import torch" in example:
        pytest.importorskip("torch")
    exec(compile(example, "layer.md", "exec"), {"__name__": "__main__"})
    *_, last = capsys.readouterr().out.splitlines()
    if "rounding only" in example:
        assert float(last) < 1e-5


def test_what_it_names_is_there():
    for module in (convert, introspection):
        name = module.__name__.removeprefix("keras_gru.")
        for found in re.findall(rf"`(?:keras_gru\.)?{name}\.(\w+)", PAGE):
            assert hasattr(module, found)
    for name in ("GRU", "GRUCell", "GRUEncoder", "MGU", "CoupledGRU", "portable"):
        assert name in PAGE
        assert hasattr(keras_gru, name)
