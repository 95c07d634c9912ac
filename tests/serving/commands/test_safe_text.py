"""Text and bars for a terminal."""

import json
import math

import pytest

from gru_serving.commands.terminal import explain_error, safe_json, safe_text, share_bar
from gru_serving.errors import InvalidArgument
from tests.serving.commands.lying_server import RAW


def test_every_character():
    """All of Unicode: what is left is printed, and JSON stays the same."""
    for start in range(0, 0x110000, 0x1000):
        text = "".join(map(chr, range(start, start + 0x1000)))
        assert not RAW.search(safe_text(text).replace("\n", "")), hex(start)
        assert "\n" not in safe_text(text)
        if not 0xD000 <= start < 0xE000:
            raw = json.dumps(text, ensure_ascii=False)
            assert json.loads(safe_json(raw)) == text
            safe_text(text).encode()
    assert safe_text("שלום 你好 é 👩\u200d👩 a\u00a0b") == "שלום 你好 é 👩\u200d👩 a\u00a0b"
    assert safe_text("ab" * 9, 4) == "abab... (18 characters)"


@pytest.mark.parametrize(
    ("share", "blocks"), [(0.5, 5), (7, 10), (-1, 0), (math.nan, 0), (1e300, 10)]
)
def test_bars(share, blocks):
    assert share_bar(share, 10) == "█" * blocks


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("assertion failed: [x: expected [?, 2], got [1]]", "x: expected [?, 2], got [1]"),
        ("assertion failed: [x: got [1]] (sent [1, 1])", "x: got [1] (sent [1, 1])"),
        ("no assertion failed: [x]", "no assertion failed: [x]"),
    ],
)
def test_checks_of_a_model_are_shown_without_tensorflow_s_words(message, shown):
    assert explain_error(InvalidArgument(message)) == shown
