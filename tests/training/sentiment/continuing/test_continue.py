"""`gru-train continue`, from the command line to exports."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from gru_serving.__main__ import main as gru_serve
from gru_training.__main__ import main
from gru_training.continuing.beside import beside_lines, check_line, checked, warning
from gru_training.sentiment.run import SentimentRun
from tests.made_once import made_once
from tests.training.sentiment.continuing.tickets import NEW_WORDS, first_run, tickets, write
from tests.training.sentiment.targets.runs import labelled, rated, train_labels, train_number

REPOSITORY = Path(__file__).parents[4]


def make(folder):
    first_run(folder, bidirectional=True)
    new = write(folder / "new.csv", tickets(80, 1, NEW_WORDS))
    arguments = ["--name", "continued", "--learning-rate", "0.01"]
    assert main(["continue", str(folder / "old"), "--data", str(new), *arguments]) == 0


@pytest.fixture(scope="module")
def folder():
    return made_once("continued_runs", make)


def test_the_old_run_stands_beside_the_new(folder):
    run, old = SentimentRun.open(folder / "continued"), SentimentRun.open(folder / "old")
    of = run.metrics["continued"]
    parts = of["parts"]
    held = len(list(old.test_predictions()))
    assert parts["old test rows"]["rows"] == held
    assert parts["all test rows"]["rows"] == held + parts["new test rows"]["rows"]
    assert parts["old test rows"]["before"] == old.metrics["model"]["test"]["accuracy"]
    assert parts["all test rows"]["after"] == run.metrics["model"]["test"]["accuracy"]
    right = [row.label == row.predicted for row in run.test_predictions()]
    assert parts["new test rows"]["after"] == np.mean(right[held:])
    assert of["check"]["before"] == old.metrics["model"]["validation"]["accuracy"]
    assert of["check"]["rows"] == old.metrics["data"]["rows"]["validation"]
    assert of["grown"]["classes"] == ["login"]
    assert of["grown"]["words"] == len(run.vocabulary) - len(old.vocabulary) > 0
    assert run.classes == (*old.classes, "login")
    for name in ("report.md", "report.html"):
        text = (run.path / name).read_text("utf-8")
        assert "The run it goes on from" in text
        assert f"new test rows ({parts['new test rows']['rows']})" in text
    assert run.metrics["model"]["test"]["accuracy"] > 0.9
    assert run.config.training.epochs == 3
    assert run.config.continued.from_run == folder / "old"


@pytest.mark.long
def test_it_predicts_and_is_exported_as_any_run(folder, tmp_path):
    path = folder / "continued"
    output = tmp_path / "scored.csv"
    new = folder / "new.csv"
    arguments = ["--data", str(new), "--output", str(output)]
    assert main(["predict", str(path), *arguments]) == 0
    assert gru_serve(["export", str(path), "--to", str(tmp_path / "models")]) == 0
    scored = pd.read_csv(output)
    assert (scored["label"] == "login").sum() > 5
    served = tf.saved_model.load(tmp_path / "models" / "1").signatures["serving_default"]
    answers = served(tf.constant(scored["text"]))
    assert [label.decode() for label in answers["label"].numpy()] == list(scored["label"])
    names = list(SentimentRun.open(path).classes)
    np.testing.assert_allclose(scored[names], answers["scores"], atol=1e-5)


@pytest.mark.long
def test_killed_and_resumed_and_continued_again(folder, tmp_path):
    arguments = ["continue", str(folder / "old"), "--data", str(folder / "new.csv"), "--epochs",
                 "6", "--patience", "6", "--runs-dir", str(tmp_path)]  # fmt: skip
    assert main([*arguments, "--name", "whole"]) == 0
    command = [sys.executable, "-m", "gru_training", *arguments, "--name", "broken"]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL) as process:
        while not (tmp_path / ".broken.checkpoint").exists():
            assert process.poll() is None
            time.sleep(0.002)
        process.kill()
    assert main(["resume", str(tmp_path / "broken")]) == 0
    whole, broken = (SentimentRun.open(tmp_path / name) for name in ("whole", "broken"))
    for one, other in zip(
        whole.load_model().get_weights(), broken.load_model().get_weights(), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    more = write(tmp_path / "more.csv", tickets(40, 2, NEW_WORDS))
    again = ["continue", str(tmp_path / "broken"), "--data", str(more), "--name", "again"]
    assert main(again) == 0
    last = SentimentRun.open(tmp_path / "again")
    parts = last.metrics["continued"]["parts"]
    assert parts["old test rows"]["rows"] == broken.metrics["data"]["rows"]["test"]
    stored = [row.text for row in broken.test_predictions()]
    assert [row.text for row in last.test_predictions()][: len(stored)] == stored


@pytest.mark.long
def test_only_new_rows(folder, tmp_path, capsys):
    arguments = ["continue", str(folder / "old"), "--data", str(folder / "new.csv"), "--only-new",
                 "--runs-dir", str(tmp_path), "--name", "only"]  # fmt: skip
    assert main(arguments) == 0
    assert "not scored, as --only-new reads no old row" in capsys.readouterr().out
    run = SentimentRun.open(tmp_path / "only")
    assert run.metrics["continued"]["check"] is None
    assert run.metrics["data"]["rows"]["train"] < 80


@pytest.mark.long
def test_labels_and_numbers(tmp_path):
    train_labels(tmp_path)
    rows = labelled(80, 1)
    for row in rows[::4]:
        row["label"] = [*row["label"], "urgent"]
    new = tmp_path / "new.jsonl"
    new.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["continue", str(tmp_path / "labels"), "--data", str(new), "--name", "more"]) == 0
    run = SentimentRun.open(tmp_path / "more")
    assert run.classes == ("billing", "bug", "delivery", "urgent")
    of = run.metrics["continued"]
    old = SentimentRun.open(tmp_path / "labels")
    assert of["parts"]["old test rows"]["before"] == pytest.approx(
        old.metrics["model"]["test"]["micro_f1"]
    )
    assert of["grown"]["labels"] == ["urgent"]

    train_number(tmp_path)
    rated(80, 1).to_csv(tmp_path / "stars2.csv", index=False)
    arguments = ["--data", str(tmp_path / "stars2.csv"), "--name", "stars-on"]
    assert main(["continue", str(tmp_path / "number"), *arguments]) == 0
    run, old = (SentimentRun.open(tmp_path / name) for name in ("stars-on", "number"))
    of = run.metrics["continued"]
    assert of["parts"]["old test rows"]["before"] == pytest.approx(
        old.metrics["model"]["test"]["mae"], rel=1e-5
    )
    assert (run.scale.mean, run.scale.deviation) == (old.scale.mean, old.scale.deviation)


@pytest.mark.slow
def test_what_is_for_other_runs_is_refused(tiny_run, tmp_path, capsys):
    new = write(tmp_path / "new.csv", tickets(9, 1))
    assert main(["continue", str(tiny_run.path), "--data", str(new), "--refit-scaler"]) == 2
    assert "--refit-scaler is for runs of series" in capsys.readouterr().err
    assert main(["continue", str(tiny_run.path), "--data", str(tmp_path)]) == 2
    assert "expected a file with new rows" in capsys.readouterr().err
    assert main(["continue", "no/run", "--data", "a.csv"]) == 2
    assert "there is no run directory no/run" in capsys.readouterr().err


def test_a_loss_beyond_chance_is_warned_of():
    def told(check, **further):
        of = {"run": "runs/a", "new_data": "b.csv", "only_new": False, "replay": 0.1, "grown": {},
              "measure": "accuracy", "style": ".1%", "rows": "rows", "parts": {}}  # fmt: skip
        return {**of, "check": check, **further}

    worse = told(checked(900, 0.9, 0.8, 1e-4, higher_is_better=True))
    assert "accuracy 90.0% before, 80.0% now (900 rows; worse, p = 0.0001)" in check_line(worse)
    assert "--replay 0.2" in warning(worse)
    assert "--replay" in "\n".join(beside_lines(worse))
    for check in (
        checked(900, 0.9, 0.89, 0.3, higher_is_better=True),
        checked(900, 0.8, 0.9, 1e-4, higher_is_better=True),
        checked(900, 3.0, 2.0, 1e-4, higher_is_better=False),
    ):
        assert warning(told(check)) is None
    assert checked(9, 2.0, 3.0, 1e-4, higher_is_better=False)["verdict"] == "worse"
    assert "--learning-rate" in warning(told(worse["check"], replay=1.0))
