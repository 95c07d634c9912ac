"""What `metrics.json` tells of every training, whatever its task."""

import platform
import time
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from gru_training.loop.fit import FitResult


def run_summary(result: FitResult | None, seed: int, started: float) -> dict[str, Any]:
    """How a training went, and with which versions.

    Args:
        result: Of `gru_training.loop.fit.fit`; None for a model that is made of trained ones.
        seed: Of the run.
        started: When the run began, on the clock of `time.perf_counter`.
    """
    epochs: dict[str, Any] = {}
    if result is not None:
        epochs = {"best_epoch": result.best_epoch, "epochs": len(result.epochs)}
    earlier = 0.0 if result is None else result.earlier_seconds
    return {
        **epochs,
        "interrupted": result is not None and result.interrupted,
        "seed": seed,
        "seconds": round(earlier + time.perf_counter() - started, 2),
        "versions": {
            "Python": platform.python_version(),
            # Not of the installed packages: TensorFlow comes in several, tensorflow-cpu for one.
            **{module.__name__: module.__version__ for module in (tf, keras, np)},
        },
    }
