"""docs/tutorials/tickets.md, typed from top to bottom; the network is a smaller one."""

import csv

import pytest

from tests.docs.lesson import assert_prints, blocks, reader

PAGE = "docs/tutorials/tickets.md"
TINY = ("--epochs", "2", "--units", "6", "--set", "embedding_size=6")


def labels(path):
    with path.open(newline="") as file:
        return [row["label"] for row in csv.DictReader(file)]


@pytest.mark.long
def test_the_lesson_ends_with_a_checked_deployment(tmp_path):
    data, look, clean, train, predict, export, serve, ask, ask_file = blocks(PAGE)
    with reader(tmp_path) as typing:
        typing.type_in(data)
        assert_prints(typing.type_in(look, status=2), look.shown)
        assert_prints(typing.type_in(clean), clean.shown)
        printed = typing.type_in(train, more=TINY)
        _, _, scores = train.shown.partition("\n\n")  # there are fewer epochs
        assert_prints(printed, scores, abs=100)
        report = (tmp_path / "runs" / "tickets" / "report.md").read_text("utf-8")
        assert report.split("\n")[2].startswith("**Of 100 new texts about ")
        assert_prints(typing.type_in(predict), predict.shown.split("0,2024")[0])
        for block in (export, serve):
            typing.type_in(block)
        assert "billing" in typing.type_in(ask)
        typing.type_in(ask_file)
    assert labels(tmp_path / "june-labelled.csv") == labels(tmp_path / "june-served.csv")
    assert set(labels(tmp_path / "june-served.csv")) <= {"billing", "bug", "delivery"}
