import importlib.metadata

import tensorflow as tf

from training.fit_state import EpochRecord
from training.loop import FitResult
from training.run_summary import run_summary


def test_tensorflow_may_come_in_a_package_of_another_name(monkeypatch):
    """As in the training image, which holds tensorflow-cpu."""

    def nothing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", nothing)
    monkeypatch.setattr(importlib.metadata, "version", nothing)
    record = EpochRecord(1, {"loss": 1.0}, {"loss": 1.0}, 0.1, 2.0)
    summary = run_summary(FitResult((record,), 1, False), 3, 0.0)
    assert summary["versions"]["tensorflow"] == tf.__version__
    assert (summary["seed"], summary["epochs"], summary["best_epoch"]) == (3, 1, 1)
