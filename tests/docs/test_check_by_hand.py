"""docs/tutorials/check_by_hand.md, typed from top to bottom, prints what it shows."""

import pytest

from tests.docs.lesson import assert_prints, blocks, reader

PAGE = "docs/tutorials/check_by_hand.md"


def test_it_prints_what_it_shows(tmp_path):
    shown = 0
    with reader(tmp_path) as typing:
        for block in blocks(PAGE):
            printed = typing.type_in(block)
            if block.shown is not None:
                assert_prints(printed, block.shown, abs=2e-6)
                shown += 1
    assert shown == 6
    assert "1.0000" not in (tmp_path / "trace.json").read_text()  # unrounded
    assert "<html" in (tmp_path / "trace.html").read_text("utf-8")


def test_a_wrong_figure_would_be_seen():
    assert_prints("a 1.5 b\nc 2\nd 3\n", "a 1.5 b\n...\nd 3\n")
    with pytest.raises(AssertionError):
        assert_prints("a 1.5 b\nc 2\n", "a 1.6 b\n...\n")
    with pytest.raises(AssertionError, match="expected to print"):
        assert_prints("a 1.5 b\nc 2\n", "...\nd 2\n")
