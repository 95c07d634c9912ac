"""docs/tutorials/first_model.md, typed from top to bottom, prints what it shows."""

import pytest

from tests.docs.lesson import assert_prints, blocks, reader

PAGE = "docs/tutorials/first_model.md"


@pytest.mark.slow
def test_it_prints_what_it_shows(tmp_path):
    printed = {}
    with reader(tmp_path) as typing:
        for block in blocks(PAGE):
            printed[block] = typing.type_in(block)
    shown = [block for block in printed if block.shown is not None]
    assert len(shown) == 5
    for block in shown:
        assert_prints(printed[block], block.shown, abs=0.06)  # another processor rounds otherwise
    loss = float(printed[shown[1]].split()[-1])
    assert loss < 0.01
    assert (tmp_path / "marked.keras").is_file()
    assert (tmp_path / "gates.png").read_bytes()[1:4] == b"PNG"
