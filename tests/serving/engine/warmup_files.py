"""Warmup files written by TensorFlow's own writer, and what replaying them comes to."""

import contextlib

import pytest
import tensorflow as tf

from gru_serving.engine.predictor import Predictor
from gru_serving.engine.warmup import FILE, load_warm, replay
from gru_serving.errors import ServingError
from gru_serving.telemetry.metrics import Metrics


def write(version, *logs):
    path = version / FILE
    path.parent.mkdir()
    with tf.io.TFRecordWriter(str(path)) as writer:
        for log in logs:
            writer.write(log if isinstance(log, bytes) else log.SerializeToString())


def replayed(version, iterations=1):
    """The metrics of a replay, whether it succeeded or not."""
    metrics = Metrics()
    predictor = Predictor(version)
    with contextlib.suppress(ServingError):
        replay(predictor, version, iterations, metrics)
    predictor.close()
    return metrics


def failure(version):
    with pytest.raises(ServingError) as caught:
        load_warm(version)
    return caught.value
