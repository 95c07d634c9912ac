"""The table of teachers and students, from small trainings."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import teaching
from gru_training.sentiment.config import PretrainingConfig, SentimentDataConfig, TeachingConfig
from gru_training.sentiment.run import SentimentRun
from tests.training.tickets import config, tickets, write


def small(folder):
    """Settings of a set with few rows; its texts without labels are in a file of their own."""
    write(folder / "labelled.csv", tickets(120, 0))
    texts = [text for text, _ in tickets(200, 1)]
    (folder / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    data = SentimentDataConfig(data=folder / "labelled.csv")
    pretraining = PretrainingConfig(
        unlabelled=folder / "texts.txt", vector_size=6, topic_size=0, vector_words=30
    )
    made = config(folder, None, data, ngrams=True)
    # One epoch: a network that makes no mistake would hide whose figures these are.
    training = replace(made.training, epochs=1)
    return replace(made, pretraining=pretraining, training=training)


@pytest.mark.long
def test_a_student_of_a_student_stands_beside_the_first_teacher(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(teaching, "PRESETS", {"small": small(tmp_path)})
    monkeypatch.setattr(
        teaching, "SETS", {"tickets": ("small", TeachingConfig(Path(), teach_texts=150))}
    )
    runs = tmp_path / "runs"
    arguments = ["--generations", "2", "--seeds", "3", "--runs-dir", str(runs)]
    assert teaching.main(["--sets", "tickets", *arguments]) == 0
    table = capsys.readouterr().out
    made = {name: SentimentRun.open(runs / f"small-{name}s3") for name in ("", "taught-")}
    last = SentimentRun.open(runs / "small-taught-2-s3")
    assert made["taught-"].metrics["taught"]["run"] == "small-s3"
    assert last.metrics["taught"]["run"] == "small-taught-s3"
    first = made[""].metrics
    shares = [
        run[part]["test"]["accuracy"]
        for part in ("gru_alone", "model")
        for run in (first, last.metrics)
    ]
    cells = table.splitlines()[2].strip("| ").split(" | ")
    assert cells[:4] == ["tickets", "", "3", str(first["data"]["rows"]["test"])]
    assert cells[4:8] == [f"{share:.2%}" for share in shares]
    gained = 100 * (shares[1] - shares[0])
    assert float(re.match(r"[+-][\d.]+", cells[8])[0]) == pytest.approx(gained, abs=0.006)

    monkeypatch.setattr(teaching, "train_sentiment", None)  # all runs are there
    assert teaching.main(["--sets", "tickets", *arguments]) == 0
    assert capsys.readouterr().out == table


def test_generations_are_counted_from_one(capsys):
    with pytest.raises(SystemExit):
        teaching.main(["--generations", "0"])
    assert "--generations: expected at least 1, got 0" in capsys.readouterr().err
