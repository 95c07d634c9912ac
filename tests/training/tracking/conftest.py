"""Trainings to track, and what keeps trackers to themselves."""

from dataclasses import replace

import pytest
from rich.console import Console

from gru_training.loop.checkpoint import EpochRecord
from tests.training.conftest import tiny_config


@pytest.fixture(autouse=True)
def nobody_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("DO_NOT_TRACK", "true")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    for name in ("WANDB_DATA_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "wandb-data"))


@pytest.fixture
def console(tmp_path):
    """One whose lines can be read again."""
    with (tmp_path / "console").open("w+") as file:
        yield Console(file=file, soft_wrap=True, width=10_000, markup=False, highlight=False)


@pytest.fixture
def shown(console):
    def read():
        console.file.seek(0)
        return console.file.read()

    return read


@pytest.fixture
def tracked_config(tmp_path):
    def make(name="tracked", **run):
        config = tiny_config(tmp_path, name)
        return replace(config, run=replace(config.run, **run))

    return make


@pytest.fixture
def records():
    return [
        EpochRecord(n, {"loss": 1 / n, "accuracy": n / 8}, {"loss": 2 / n}, 0.01, 3.5)
        for n in range(1, 5)
    ]
