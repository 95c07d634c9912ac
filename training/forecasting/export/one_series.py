"""The signature `one_series`: a forecaster of many series asked for one that it never saw."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from training.forecasting.power import graph_powers, graph_roots
from training.forecasting.preprocessor import SeriesPreprocessor
from training.forecasting.scores.conformal import MEDIAN, quantiles

_AS_IT_IS = SeriesPreprocessor(np.zeros(1), np.ones(1), (0,))


class OneSeries:
    """Forecasts a series on the scale that its own history has.

    Args:
        model: From standardised windows (B, L, 1) to (B, H, 1, Q or 1).
        exponent: Of the power (`training.forecasting.power`) that is standardised; None: values
            are.
        levels: The Q levels.
        offsets: (H, K, Q), standardised, of the K series that the model was trained on.
    """

    def __init__(
        self,
        model: keras.Model,
        exponent: float | None,
        levels: tuple[float, ...],
        offsets: np.ndarray,
    ) -> None:
        self.model, self.lookback = model, int(model.input_shape[1])
        self.exponent, self.levels = exponent, levels
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
        if self.exponent is not None:
            known = tf.logical_not(tf.math.is_nan(read))
            read = tf.where(known, graph_powers(read, self.exponent), read)
        mean, deviation = _scale(read)
        standardised = _AS_IT_IS.standardise(((read - mean) / deviation)[..., tf.newaxis])
        answers = self.model(standardised, training=False)
        served = quantiles(answers, self.offsets, self.levels)[:, :, 0]  # (B, H, Q)
        raw = served * deviation[..., tf.newaxis] + mean[..., tf.newaxis]
        if self.exponent is not None:
            raw = graph_roots(raw, self.exponent)
        return {"forecast": raw[..., list(self.levels).index(MEDIAN)], "quantiles": raw}


def _scale(read: Any) -> tuple[Any, Any]:
    """Mean and deviation (B, 1) of the values that there are; the latter 1 where all are alike."""
    known = tf.logical_not(tf.math.is_nan(read))
    count = tf.reduce_sum(tf.cast(known, tf.float32), axis=1, keepdims=True)
    mean = tf.reduce_sum(tf.where(known, read, 0.0), axis=1, keepdims=True) / count
    squares = tf.reduce_sum(tf.where(known, tf.square(read - mean), 0.0), axis=1, keepdims=True)
    deviation = tf.sqrt(squares / count)
    return mean, tf.where(deviation > 1e-6 * (1.0 + tf.abs(mean)), deviation, 1.0)
