"""Preprocessing and model as one graph: how everything but an export asks a forecaster."""

import functools
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

from gru_training.forecasting.preprocessor import SeriesPreprocessor

Predictor = Callable[[np.ndarray], np.ndarray]
"""Raw histories (B, L, C) in, standardised answers (B, H, K, Q or 1) out."""


def make_predictor(model: keras.Model, preprocessor: SeriesPreprocessor) -> Predictor:
    """Put preprocessing and model into one graph, traced at its first use, for batches of any size.

    Args:
        model: From standardised windows (B, L, C) to (B, H, K, Q or 1).
        preprocessor: The scale of the model.
    """
    spec = tf.TensorSpec((None, *model.input_shape[1:]), tf.float32)

    @tf.function(input_signature=[spec], autograph=False)
    def predict(histories: tf.Tensor) -> tf.Tensor:
        return model(preprocessor.standardise(histories), training=False)

    traced = functools.cache(predict.get_concrete_function)
    return lambda histories: np.asarray(traced()(tf.constant(histories, tf.float32)).numpy())
