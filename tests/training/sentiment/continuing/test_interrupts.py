"""Ctrl-C in `gru-train continue`: nothing half-written, and a second go works."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gru_training.__main__ import main
from gru_training.forecasting.run import ForecastingRun
from gru_training.sentiment.run import SentimentRun
from tests.made_once import made_once, own_copy
from tests.training.conftest import write_waves
from tests.training.sentiment.continuing.tickets import NEW_WORDS, first_run, tickets, write

REPOSITORY = Path(__file__).parents[4]
LONG = ["--epochs", "5000", "--patience", "5000"]


def classifier(folder):
    first_run(folder)
    write(folder / "new.csv", tickets(80, 1, NEW_WORDS))


def forecaster(folder):
    lines = write_waves(folder / "waves.csv", 400).read_text().splitlines(keepends=True)
    (folder / "hours.csv").write_text("".join(lines[:321]))
    (folder / "later.csv").write_text("".join(lines[:1] + lines[321:]))
    small = ["--epochs", "1", "--units", "6", "--horizon", "6", "--no-refit"]
    place = ["--data", str(folder / "hours.csv"), "--runs-dir", str(folder), "--name", "series"]
    assert main(["forecasting", *small, *place]) == 0


RUNS = {"old": classifier, "series": forecaster}


@pytest.fixture
def folder(tmp_path_factory, old):
    """With the run of this name."""
    return own_copy(made_once(f"interrupted_{old}", RUNS[old]), tmp_path_factory)


@pytest.fixture(autouse=True)
def ctrl_c_interrupts():
    """What a job in the background ignores, the processes that it starts ignore, too."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


def interrupted(arguments, line):
    """Run a command, interrupt it at a line that begins so; its status, output and errors."""
    command = [sys.executable, "-m", "gru_training", *map(str, arguments)]
    process = subprocess.Popen(
        command,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said = []
    with process:
        for each in process.stdout:
            said.append(each)
            if each.startswith(line):
                process.send_signal(signal.SIGINT)
                break
        out, errors = process.communicate(timeout=400)
    return process.returncode, "".join(said) + out, errors


@pytest.mark.long
@pytest.mark.parametrize(
    ("old", "new", "run_type"),
    [
        ("old", "new.csv", SentimentRun),
        ("series", "later.csv", ForecastingRun),
    ],
)
def test_continue_keeps_the_best_epoch(folder, tmp_path, old, new, run_type):
    arguments = ["continue", folder / old, "--data", folder / new, "--runs-dir", tmp_path]
    status, out, errors = interrupted([*arguments, *LONG, "--name", "cut"], "epoch    2/5000")
    assert status == 130, errors
    assert "the best so far, is kept" in out
    assert "Traceback" not in errors
    run = run_type.open(tmp_path / "cut")
    assert run.metrics["interrupted"] is True
    assert run.metrics["continued"]["run"] == str(folder / old)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("old", "new"),
    [("old", "new.csv"), ("series", "later.csv")],
)
def test_continue_before_its_first_epoch_writes_nothing(folder, tmp_path, old, new):
    arguments = ["continue", folder / old, "--data", folder / new, "--runs-dir", tmp_path]
    arguments += ["--name", "cut", "--epochs", "1"]
    status, _, errors = interrupted(arguments, "data ")
    assert status == 130, errors
    assert "Traceback" not in errors
    assert not [path for path in tmp_path.iterdir() if not path.name.startswith(".")]
    assert main(list(map(str, arguments))) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut"]
