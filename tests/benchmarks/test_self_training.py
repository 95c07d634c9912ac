"""The tables of teachers and students, from small trainings."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import distilling, self_training
from gru_training.sentiment.config import PretrainingConfig, SentimentDataConfig
from gru_training.sentiment.run import SentimentRun
from tests.training.tickets import config, tickets, write


def small(folder):
    """Settings of a set with few rows; its texts without labels are in a file of their own."""
    labelled = tickets(120, 0)
    write(folder / "labelled.csv", labelled)
    # Texts that have a label are passed over, and so is what is there twice.
    texts = [text for text, _ in (*tickets(200, 1), *labelled)]
    (folder / "texts.txt").write_text("\n".join([*texts, texts[0].upper()]), encoding="utf-8")
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
    monkeypatch.setattr(self_training, "PRESETS", {"small": small(tmp_path)})
    runs = tmp_path / "runs"
    arguments = ["--preset", "small", "--generations", "2", "--seeds", "3", "--runs-dir", str(runs)]
    assert self_training.main(arguments) == 0
    table = capsys.readouterr().out
    made = [SentimentRun.open(runs / f"small-s3-g{number}") for number in range(3)]
    texts = [
        json.loads(line)["text"] for line in (runs / "small-s3-g1.jsonl").open(encoding="utf-8")
    ]
    assert texts == [text for text, _ in tickets(200, 1)]
    assert [run.metrics.get("soft", {}).get("rows") for run in made] == [None, 200, 200]
    shares = [
        run.metrics[part]["test"]["accuracy"]
        for part in ("gru_alone", "model")
        for run in (made[0], made[-1])
    ]
    cells = table.splitlines()[2].strip("| ").split(" | ")
    assert cells[:3] == ["small", "3", str(made[0].metrics["data"]["rows"]["test"])]
    assert cells[3:7] == [f"{share:.2%}" for share in shares]
    gained = 100 * (shares[1] - shares[0])
    assert float(re.match(r"[+-][\d.]+", cells[7])[0]) == pytest.approx(gained, abs=0.006)

    monkeypatch.setattr(self_training, "train_sentiment", None)  # all runs are there
    assert self_training.main(arguments) == 0
    assert capsys.readouterr().out == table


def test_generations_are_counted_from_one(capsys):
    with pytest.raises(SystemExit):
        self_training.main(["--generations", "0"])
    assert "--generations: expected at least 1, got 0" in capsys.readouterr().err


def test_a_made_teacher_is_right_as_often_as_it_says(tmp_path):
    write(tmp_path / "rows.csv", [(f"text {number}", "ab"[number % 2]) for number in range(4000)])
    data = self_training.load_data(
        distilling.SentimentConfig(data=SentimentDataConfig(data=tmp_path / "rows.csv"))
    )
    rows = np.arange(len(data.train))
    path = distilling._write_answers(tmp_path / "said.jsonl", data, rows, 0.8, seed=0)
    said = [json.loads(line)["probabilities"] for line in path.read_text("utf-8").splitlines()]
    of_label = [row["ab"[label]] for row, label in zip(said, data.train.labels, strict=True)]
    assert {round(share, 6) for share in of_label} == {0.8, 0.2}
    assert np.mean(of_label) == pytest.approx(0.8 * 0.8 + 0.2 * 0.2, abs=0.02)
