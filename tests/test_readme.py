"""The README's examples run as they are printed, in their order."""

import csv
import json
import random

import pytest

from tests.docs.lesson import ROOT, blocks, reader

EXAMPLES = [block for block in blocks("README.md") if not block.code.startswith("make ")]
GOOD, BAD = ("well", "brightly", "wonderfully"), ("badly", "slowly", "poorly")


def write_reviews(path):
    """Reviews of the same words; how they end decides."""
    draw = random.Random(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for number in range(240):
            good, bad, film = draw.choice(GOOD), draw.choice(BAD), f"Film {number}"
            first, last = (bad, good) if number % 2 else (good, bad)
            label = "positive" if number % 2 else "negative"
            writer.writerow([f"{film} starts {first} but ends {last}.", label])


@pytest.mark.long
def test_the_examples_lead_to_a_served_model(tmp_path):
    write_reviews(tmp_path / "reviews.csv")
    layer, train, serve, ask = EXAMPLES
    with reader(tmp_path) as typing:
        first, last = typing.type_in(layer).split("loss ")[1].split(" -> ")
        assert float(last) < 0.5 * float(first)
        assert (tmp_path / "models" / "sums" / "1" / "saved_model.pb").is_file()
        typing.type_in(train)
        assert (tmp_path / "runs" / "reviews" / "report.html").is_file()
        typing.type_in(serve)
        table, _, answer = typing.type_in(ask).partition("{")
    label = json.loads("{" + answer)["predictions"][0]["label"]
    assert label in ("negative", "positive")
    assert label in table


def test_it_is_short():
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.split()) <= 950
    for command in ("make demo", "make test"):
        assert f"\n{command} " in text
