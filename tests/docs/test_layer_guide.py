"""The tables of the layer's guides name what there is; `test_guides` runs their examples."""

import re
from pathlib import Path

import keras_gru
from keras_gru import convert, introspection

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "".join(
    (DOCS / page).read_text("utf-8")
    for page in ("how_to/layer.md", "how_to/gates.md", "explanation/fast_path.md")
)


def test_what_they_name_is_there():
    for module in (convert, introspection):
        name = module.__name__.removeprefix("keras_gru.")
        named = re.findall(rf"`(?:keras_gru\.)?{name}\.(\w+)", PAGE)
        assert named
        for found in named:
            assert hasattr(module, found)
    for name in ("GRU", "GRUCell", "GRUEncoder", "MGU", "CoupledGRU", "portable"):
        assert name in PAGE
        assert hasattr(keras_gru, name)
