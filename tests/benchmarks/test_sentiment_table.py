"""The results table: from hand-written runs, and from a small training that continues."""

import json
from dataclasses import replace

import pytest
from rich.console import Console

from benchmarks.sentiment import __main__ as sentiment
from benchmarks.sentiment.__main__ import main, markdown, row, train
from gru_training.config import to_dict
from gru_training.runs.directory import RunWriter
from gru_training.sentiment.config import (
    ClassifierConfig,
    SentimentConfig,
    SentimentDataConfig,
    SentimentRunConfig,
    SentimentTrainingConfig,
)
from gru_training.sentiment.run import SentimentRun

CONFIG = SentimentConfig(preset="mr", data=SentimentDataConfig(fold=0))
NGRAMS = "NB-weighted bigrams, logistic regression"
BAG = "bag of words, logistic regression"


def write_run(folder, name, seed, test, rows, alone=None):
    metrics = {
        "data": {"name": "mr", "rows": {"test": rows}},
        "model": {"validation": {"accuracy": 0.5}, "test": {"accuracy": test}},
        "baselines": {NGRAMS: {"test_accuracy": 0.79}, BAG: {"test_accuracy": 0.78}},
        "seed": seed,
        "seconds": 10.0 + seed,
        "interrupted": False,
    }
    if alone is not None:
        metrics["gru_alone"] = {"test": {"accuracy": alone}}
    with RunWriter(folder, name) as writer:
        writer.write_json("config.json", {"task": "sentiment", **to_dict(CONFIG)})
        writer.write_json("metrics.json", metrics)
        writer.publish()
    return SentimentRun.open(folder / name)


def test_folds_count_by_their_rows_and_seeds_spread(tmp_path):
    runs = [
        write_run(tmp_path, "a", 0, 0.8, 100),
        write_run(tmp_path, "b", 0, 0.6, 300),
        write_run(tmp_path, "c", 1, 0.7, 100),
        write_run(tmp_path, "d", 1, 0.7, 300),
    ]
    figures = row(CONFIG, runs)
    assert figures["test_rows"] == 400
    assert figures["test"]["model"] == pytest.approx([0.65, 0.70])
    line = markdown([figures]).splitlines()[2]
    assert line == "| `mr` | 2 | 400 | 67.50 ± 3.54 |  | 50.00 | 79.00 | 78.00 | 10 s |"


def test_the_gru_alone_stands_beside_the_combined_model(tmp_path):
    runs = [write_run(tmp_path, str(s), s, 0.9, 10, alone=0.8) for s in range(3)]
    assert "| 80.00 | 90.00 |" in markdown([row(CONFIG, runs)])


@pytest.mark.slow
def test_what_is_there_is_not_trained_again(tmp_path, monkeypatch, capsys):
    config = SentimentConfig(
        data=SentimentDataConfig(reviews=200),
        model=ClassifierConfig(4, 3, ngrams=True),
        training=SentimentTrainingConfig(epochs=1),
        run=SentimentRunConfig(tmp_path),
    )
    monkeypatch.setattr(sentiment, "PRESETS", {"small": config})
    arguments = ["small", "--seeds", "3", "--runs-dir", str(tmp_path)]
    assert main([*arguments, "--json", str(tmp_path / "rows.json")]) == 0
    table = capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["small-s3"]
    monkeypatch.setattr(sentiment, "train_sentiment", None)
    assert main(arguments) == 0
    assert capsys.readouterr().out == table
    (figures,) = json.loads((tmp_path / "rows.json").read_text())
    run = SentimentRun.open(tmp_path / "small-s3")
    assert figures["test"]["gru_alone"] == [run.metrics["gru_alone"]["test"]["accuracy"]]
    assert run.metrics["shares"].keys() == {"gru", "ngrams"}
    assert run.load_model().get_layer("ngrams").count > 100


@pytest.mark.slow
def test_folds_are_trained_one_by_one(tmp_path, monkeypatch):
    names = []

    def note(config, resume):
        names.append((config.data.fold, config.training.seed, resume))
        return write_run(tmp_path, config.run.name, config.training.seed, 0.5, 10)

    monkeypatch.setattr(sentiment, "train_sentiment", note)
    config = replace(CONFIG, run=SentimentRunConfig(tmp_path))
    train(config, [0, 1], tmp_path, Console(quiet=True))
    assert names == [(fold, seed, True) for seed in (0, 1) for fold in range(10)]


def test_unknown_preset(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["nix"])
    assert "--preset must be one of demo, mr" in capsys.readouterr().err
