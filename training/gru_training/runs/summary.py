"""What `metrics.json` tells of every training, whatever its task."""

import platform
import time
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from gru_training.loop.fit import FitResult


def run_summary(result: FitResult, seed: int, started: float) -> dict[str, Any]:
    """How a training went, and with which versions.

    Args:
        result: Result of `gru_training.loop.fit.fit`.
        seed: Of the run.
        started: When the run began, on the clock of `time.perf_counter`.
    """
    return {
        "best_epoch": result.best_epoch,
        "epochs": len(result.epochs),
        "interrupted": result.interrupted,
        "seed": seed,
        "seconds": round(result.earlier_seconds + time.perf_counter() - started, 2),
        "versions": {
            "Python": platform.python_version(),
            # Not of the installed packages: TensorFlow comes in several, tensorflow-cpu for one.
            **{module.__name__: module.__version__ for module in (tf, keras, np)},
        },
    }
