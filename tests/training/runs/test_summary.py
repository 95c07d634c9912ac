import importlib.metadata
import time

import pytest
import tensorflow as tf

from gru_training.loop.checkpoint import EpochRecord
from gru_training.loop.fit import FitResult
from gru_training.runs.writer import run_summary


def test_tensorflow_may_come_in_a_package_of_another_name(monkeypatch):
    """As in the training image, which contains tensorflow-cpu."""

    def nothing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", nothing)
    monkeypatch.setattr(importlib.metadata, "version", nothing)
    record = EpochRecord(1, {"loss": 1.0}, {"loss": 1.0}, 0.1, 2.0)
    summary = run_summary(FitResult((record,), 1, False), 3, 0.0)
    assert summary["versions"]["tensorflow"] == tf.__version__
    assert (summary["seed"], summary["epochs"], summary["best_epoch"]) == (3, 1, 1)


def test_time_spent_before_a_break_counts():
    record = EpochRecord(1, {"loss": 1.0}, {"loss": 1.0}, 0.1, 2.0)
    results = [FitResult((record,), 1, False, earlier) for earlier in (0.0, 3600.0)]
    started = time.perf_counter()
    alone, resumed = (run_summary(result, 3, started)["seconds"] for result in results)
    assert resumed - alone == pytest.approx(3600, abs=5)
