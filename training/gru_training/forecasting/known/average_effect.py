"""What known inputs add to a series that a panel's model never saw."""

from typing import Any

import numpy as np
import tensorflow as tf

from gru_training.forecasting.known.effect import KnownEffect
from gru_training.forecasting.known.gaps import filled


class AverageEffect:
    """The mean of the effects of all series, for inputs on the scale of the caller's series.

    Args:
        known: Of a panel.
        mean: Of its input columns, (K·F,), as they were standardised.
        deviation: Likewise.
    """

    def __init__(self, known: KnownEffect, mean: np.ndarray, deviation: np.ndarray) -> None:
        self.count = len(known.knots)
        means, deviations = (each.reshape(-1, self.count) for each in (mean, deviation))
        self._relative = (means != means[0]).any(axis=0)  # to the mean of each series
        unit = np.where(self._relative, means[0], 1.0)
        self._mean = (means[0] / unit).astype(np.float32)
        self._deviation = (deviations[0] / unit).astype(np.float32)
        coefficients = known.coefficients.mean(axis=1, keepdims=True)
        self._effect = KnownEffect(range(self.count), known.knots, coefficients, known.pairs)

    def split(self, past: Any, future: Any, steps: int) -> tuple[Any, Any]:
        """The effects (B, steps) on the last steps of the past, and (B, H) on those ahead.

        Args:
            past: (B, T, F) raw, NaN where a value is missing: the last one known counts.
            future: (B, H, F) likewise.
            steps: Steps read; those before the past count as its first.
        """
        rows = tf.shape(past)[0]
        before = tf.fill((rows, steps, self.count), float("nan"))
        read = tf.concat([before, past], axis=1)[:, -steps:]
        known = tf.logical_not(tf.math.is_nan(read))
        sums = tf.reduce_sum(tf.where(known, read, 0.0), axis=1, keepdims=True)
        means = tf.math.divide_no_nan(sums, tf.reduce_sum(tf.cast(known, tf.float32), 1, True))
        scale = tf.where(self._relative & (means != 0), means, 1.0)
        whole = filled(tf.concat([read, future], axis=1)) / scale
        standardised = (whole - self._mean) / self._deviation
        effects = self._effect(tf.where(tf.math.is_nan(standardised), 0.0, standardised))[..., 0]
        return effects[:, :steps], effects[:, steps:]
