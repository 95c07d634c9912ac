"""Documents cut into sentences."""

import pytest

from gru_training.sentiment.sources.sentences import sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. No was fun. J. R. Smith was not.", ["Dr. No was fun.", "J. R. Smith was not."]),
        ('He said "Go." She went (fast.) Then it ended...', [
            'He said "Go."', "She went (fast.)", "Then it ended...",
        ]),
        ("It cost 3.5 million. 90 minutes", ["It cost 3.5 million.", "90 minutes"]),
        ("no capitals here. none at all", ["no capitals here. none at all"]),
        ("A line<br /><br />Another line\nand a third", [
            "A line", "Another line", "and a third",
        ]),
        ('Really? "Yes." (No.)', ["Really?", '"Yes."', "(No.)"]),
        (" \n <br/> ", []),
        ("", []),
        ("...", ["..."]),
    ],
)  # fmt: skip
def test_a_sentence_ends_before_a_capital_or_at_a_line(text, expected):
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Good. " * 100_000 + "Word " * 100_000, 100_001),
        ("A. " * 200_000 + "Good.", 1),
        ("." * 200_000 + "x", 1),
        (". " + "(" * 200_000, 1),
        ("<br" * 100_000, 1),
    ],
)
def test_a_long_text_takes_no_longer_per_letter(text, count):
    # In time that grows with the square of the length, each would take minutes.
    assert len(sentences(text)) == count
