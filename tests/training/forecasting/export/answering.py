"""A forecaster with random weights, and what its signatures answer."""

import functools

import keras
import numpy as np
import tensorflow as tf

from gru_training.forecasting.config import ForecasterConfig, ForecastShape
from gru_training.forecasting.export.signatures import ForecastingSignatures
from gru_training.forecasting.intervals import LEVELS
from gru_training.forecasting.network import build_forecaster
from gru_training.forecasting.preprocessor import SeriesPreprocessor

RNG = np.random.default_rng(17)
COLUMNS = ("load", "wind", "price")
SHAPE = ForecastShape(lookback=12, horizon=5, channels=3, targets=(2, 0))
MEAN, DEVIATION = np.array([50.0, -3.0, 400.0]), np.array([4.0, 0.5, 25.0])
RAW = (MEAN + DEVIATION * RNG.normal(size=(4, 12, 3))).astype(np.float32)
OFFSETS = np.sort(RNG.normal(0, 0.4, (5, 2, 5)), axis=-1).astype(np.float32)
OFFSETS -= OFFSETS[..., 2:3]


class Answering:
    """A model with random weights, and its signatures."""

    def __init__(self, **options):
        keras.utils.set_random_seed(3)
        self.config = ForecasterConfig(**{"units": 6, "segment": 4, **options})
        self.model = build_forecaster(self.config, SHAPE, LEVELS)
        rng = np.random.default_rng(4)
        for weight in self.model.weights:
            weight.assign(rng.normal(0, 0.4, weight.shape))
        self.preprocessor = SeriesPreprocessor(MEAN, DEVIATION, SHAPE.targets)
        self.module = ForecastingSignatures(
            self.model,
            (self.model, SHAPE),
            self.config,
            SHAPE,
            self.preprocessor,
            COLUMNS,
            LEVELS,
            OFFSETS,
        )
        self.signatures = self.module.concrete()

    def ask(self, raw):
        answer = self.signatures["serving_default"](history=tf.constant(raw, tf.float32))
        return {name: value.numpy() for name, value in answer.items()}

    def stream(self, raw):
        """The answers after each tick."""
        state = tf.zeros((len(raw), self.module.state_size))
        answers = []
        for t in range(raw.shape[1]):
            answer = self.signatures["step"](value=tf.constant(raw[:, t]), state=state)
            state = answer.pop("state")
            answers.append({name: value.numpy() for name, value in answer.items()})
        return answers


@functools.cache
def forecaster_with(**options):
    """One for all tests, because each takes seconds to trace."""
    return Answering(**options)


STREAMS = {"architecture": "one_shot", "normalisation": "difference"}
KINDS = [
    {},
    {"architecture": "one_shot"},
    {"architecture": "one_shot", "channel_independent": False},
    {"loss": "quantile", "linear_skip": True},
    STREAMS,
    {"layers": 2, "dropout": 0.3},
]
