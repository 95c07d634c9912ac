"""The signature `one_series`: a forecaster of many series asked for one that it never saw."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from training.forecasting.preprocessor import LARGEST_LOGARITHM, SeriesPreprocessor
from training.forecasting.scores.conformal import MEDIAN, quantiles

_AS_IT_IS = SeriesPreprocessor(np.zeros(1), np.ones(1), (0,))


class OneSeries:
    """Forecasts a series on the scale that its own history has.

    Args:
        model: From standardised windows (B, L, 1) to (B, H, 1, Q or 1).
        logarithmic: Whether the logarithm of one more than a value is standardised.
        levels: The Q levels.
        offsets: (H, K, Q), standardised, of the K series that the model was trained on.
    """

    def __init__(
        self,
        model: keras.Model,
        logarithmic: bool,
        levels: tuple[float, ...],
        offsets: np.ndarray,
    ) -> None:
        self.model, self.lookback = model, int(model.input_shape[1])
        self.logarithmic, self.levels = logarithmic, levels
        self.offsets = np.median(offsets, axis=1, keepdims=True).astype(np.float32)

    def forecast(self, history: Any) -> dict[str, Any]:
        """Forecast series one by one.

        Args:
            history: (B, T) float32 in raw units, NaN = missing; each row has a value. Of less than
                the model reads the first value counts for what is missing before it.

        Returns:
            `forecast` (B, H) and `quantiles` (B, H, Q), float32, in raw units.
        """
        rows = tf.shape(history)[0]
        before = tf.fill((rows, self.lookback), float("nan"))
        read = tf.concat([before, history], axis=1)[:, -self.lookback :]
        read = tf.ensure_shape(read, (None, self.lookback))
        if self.logarithmic:
            known = tf.logical_not(tf.math.is_nan(read))
            read = tf.where(known, tf.math.log1p(tf.maximum(read, 0.0)), read)
        mean, deviation = _scale(read)
        standardised = _AS_IT_IS.standardise(((read - mean) / deviation)[..., tf.newaxis])
        answers = self.model(standardised, training=False)
        served = quantiles(answers, self.offsets, self.levels)[:, :, 0]  # (B, H, Q)
        raw = served * deviation[..., tf.newaxis] + mean[..., tf.newaxis]
        if self.logarithmic:
            raw = tf.maximum(tf.math.expm1(tf.minimum(raw, LARGEST_LOGARITHM)), 0.0)
        return {"forecast": raw[..., list(self.levels).index(MEDIAN)], "quantiles": raw}


def _scale(read: Any) -> tuple[Any, Any]:
    """Mean and deviation (B, 1) of the values that there are; the latter 1 where all are alike."""
    known = tf.logical_not(tf.math.is_nan(read))
    count = tf.reduce_sum(tf.cast(known, tf.float32), axis=1, keepdims=True)
    mean = tf.reduce_sum(tf.where(known, read, 0.0), axis=1, keepdims=True) / count
    squares = tf.reduce_sum(tf.where(known, tf.square(read - mean), 0.0), axis=1, keepdims=True)
    deviation = tf.sqrt(squares / count)
    return mean, tf.where(deviation > 1e-6 * (1.0 + tf.abs(mean)), deviation, 1.0)
