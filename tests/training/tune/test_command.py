"""`gru-train tune` and the `tune` of the estimators, on small trainings."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from optuna.trial import TrialState

from gru_training.__main__ import main
from gru_training.estimators.forecaster import Forecaster
from gru_training.loop.checkpoint import checkpoint_path
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.run import SentimentRun
from gru_training.task import find_task
from gru_training.tune.command import TuneConfig, search_space
from gru_training.tune.study import open_study

SMALL = ["--epochs", "1", "--set", "embedding_size=4", "--set", "reviews=120", "--no-bidirectional"]
UNITS = ["--only", "--vary", "units=4:8:4"]


def tune(folder, *arguments):
    return main(["tune", "sentiment", *SMALL, *UNITS, "--runs-dir", str(folder), *arguments])


@pytest.mark.long
def test_a_search_trains_with_the_best_settings_and_goes_on(tmp_path, capsys):
    assert tune(tmp_path, "--units", "8", "--trials", "2", "--name", "best") == 0
    shown = capsys.readouterr().out
    assert "new study" in shown
    assert "units  4 to 8, 4 apart (default 8)" in shown
    assert "2 trials: 2 complete" in shown
    study = tmp_path / "tune-sentiment-built-in"
    table = pd.read_csv(study / "trials.csv")
    best = table.loc[0 if "defaults are kept" in shown else table["log loss"].idxmin()]
    run = SentimentRun.open(tmp_path / "best")
    assert run.config.model.units == best["units"]
    assert run.config.model.embedding_size == 4
    # What the search measured is what a training with these settings reaches.
    reached = run.metrics["calibration"]["validation"]["after"]["negative_log_likelihood"]
    assert reached == pytest.approx(best["log loss"], abs=1e-4)
    assert "gru-train sentiment --epochs 1" in (study / "report.md").read_text()

    # A final training that was killed does not stand in the way of the next.
    checkpoint_path(tmp_path / "cut").write_bytes(b"")
    assert tune(tmp_path, "--units", "8", "--trials", "1", "--name", "cut") == 0
    assert SentimentRun.open(tmp_path / "cut-2").config.model.embedding_size == 4

    assert tune(tmp_path, "--units", "8", "--trials", "1", "--epochs", "3") == 2
    assert "this study has --epochs 1, expected the same again, got 3" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "measure"), [("accuracy", "accuracy"), (None, "log loss")])
def test_test_rows_are_not_read(metric, measure):
    task, config = find_task("sentiment"), SentimentConfig()
    data = task.read(config).data

    class Unread:
        def __getattribute__(self, name):
            raise AssertionError(f"the search read {name} of the test rows")

    data = replace(data, test=Unread())
    space = search_space(TuneConfig("sentiment", vary=("units=4,8",), only=True), config, ())
    small = space.with_values({"units": 4, "epochs": 1, "embedding_size": 4, "dropout": 0.0})
    small = replace(small, training=replace(small.training, metric=metric))
    criterion = task.criterion(small, data)
    assert criterion.name == measure
    seen = []
    value, left_out = task.try_settings(small, data, criterion, lambda *told: seen.append(told))
    ((epoch, after_epoch),) = seen
    assert epoch == 1
    if metric is None:  # of answers that are as sure as they may be
        assert 0 < value <= after_epoch
    else:
        assert value == after_epoch
    assert len(left_out) == 20
    assert np.mean(left_out) == pytest.approx(value, abs=1e-3)


def test_what_trials_are_judged_by():
    task, (config, data) = find_task("sentiment"), _settings_and_data()
    named = replace(config, training=replace(config.training, metric="macro_f1"))
    assert task.criterion(named, data)[:2] == ("macro_f1", True)
    assert task.criterion(config, data)[:2] == ("log loss", False)
    assert task.criterion(config, replace(data, kind="number"))[:2] == ("mae", False)
    assert task.criterion(config, data).caution == ""
    few = replace(data, validation=replace(data.validation, texts=data.validation.texts[:99]))
    assert task.criterion(config, few).caution.startswith("only 99 validation rows: ")


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_ends_every_process_and_the_study_goes_on(tmp_path):
    command = [sys.executable, "-m", "gru_training", "tune", "sentiment", *SMALL, *UNITS]
    command += ["--units", "8", "--study", str(tmp_path / "study"), "--seeds", "0"]
    process = subprocess.Popen(
        [*command, "--trials", "50"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    criterion = find_task("sentiment").criterion(*_settings_and_data())
    deadline = time.monotonic() + 60
    running = []
    while not running and time.monotonic() < deadline:
        time.sleep(0.2)
        if (tmp_path / "study" / "study.db").is_file():
            study = open_study(tmp_path / "study", criterion, 0)
            running = study.get_trials(states=(TrialState.RUNNING,))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert "interrupted" in errors
    assert "the same command continues it" in errors
    first, again = study.get_trials()
    assert (first.state, first.user_attrs["reason"]) == (TrialState.FAIL, "interrupted")
    assert (again.state, again.system_attrs["fixed_params"]) == (TrialState.WAITING, first.params)
    done = subprocess.run([*command, "--trials", "1"], capture_output=True, text=True, check=True)
    assert "going on with study" in done.stdout


def _settings_and_data():
    config = SentimentConfig()
    return config, find_task("sentiment").read(config).data


@pytest.mark.long
def test_a_task_that_compares_no_runs_is_searched_and_trained(tmp_path, capsys):
    """The final training of a language model ended in an error."""
    data = tmp_path / "lines.txt"
    data.write_text("".join(f"the cat {n % 7} sat on mat {n % 5}\n" for n in range(90)))
    command = ["tune", "language", "--data", str(data), "--document", "line", "--epochs", "1",
               "--units", "4", "--runs-dir", str(tmp_path / "runs"), "--trials", "1"]  # fmt: skip
    assert main([*command, "--only", "--vary", "embedding_size=4,8", "--name", "best"]) == 0
    said = capsys.readouterr().out
    assert "does better on the validation documents: a perplexity of" in said
    assert "1 trial: 1 complete" in said
    assert f"run     {tmp_path / 'runs' / 'best'}" in said
    assert "Test rows" not in said


def test_settings_that_cannot_be_searched(tmp_path, capsys):
    for arguments, said in (
        (
            ["tune", "texts"],
            "expected one of the tasks sentiment, forecasting, language, got 'texts'",
        ),
        (["tune", "sentiment", "--only"], "--only needs the settings to search"),
        (["tune", "sentiment", "--trials", "0"], "--trials must be at least 1, got 0"),
        (["tune", "sentiment", "--data", str(tmp_path / "none.csv")], "there is no file"),
        (["tune", "forecasting", "--vary", "units=7:9", "--trials", "1"], "--units must be even"),
    ):
        assert main([*arguments, "--debug"][:-1]) == 2
        assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_settings_that_fail_at_once_leave_no_study(tmp_path, capsys):
    rows = pd.DataFrame({"text": [f"word{n} {n % 2}" for n in range(60)], "label": ["a", "b"] * 30})
    rows.to_csv(tmp_path / "t.csv", index=False)
    settings = ["--data", str(tmp_path / "t.csv"), "--vectors", str(tmp_path / "v.txt")]
    (tmp_path / "v.txt").write_text("0 1.0 2.0 3.0\n1 1.0\n")
    assert tune(tmp_path, *settings, "--units", "8", "--trials", "1") == 2
    assert "v.txt" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv", "v.txt"]


@pytest.mark.long
def test_a_forecaster_searches_and_is_trained_with_what_did_best(tmp_path):
    times = pd.date_range("2024-01-01", periods=400, freq="D", name="ds")
    noise = np.random.default_rng(0).normal(0, 0.2, 400)
    table = pd.DataFrame({"sales": np.sin(np.arange(400) * 2 * np.pi / 7) + noise}, index=times)
    forecaster = Forecaster(runs_dir=tmp_path, epochs=1, units=4, horizon=7, refit=False)
    forecaster.tune(table.reset_index(), trials=2, vary=["dropout=0.0:0.3"], progress=False)
    assert forecaster.study_ == tmp_path / "tune-forecasting"
    trials = pd.read_csv(forecaster.study_ / "trials.csv")
    assert len(trials) == 2
    kept = "defaults are kept" in (forecaster.study_ / "report.md").read_text()
    best = trials.loc[0 if kept else trials["mean squared error"].idxmin()]
    assert forecaster.run_.config.model.units == 4
    assert forecaster.run_.config.model.dropout == pytest.approx(best["dropout"])
    combination = json.loads((forecaster.run_.path / "combination.json").read_text())
    assert combination["shares"]
