"""Losses for counts: half the Poisson and negative binomial deviance of sales, calls, visits.

A squared error weighs a miss of ten alike where two and where two hundred are sold; these weigh it
by the variance that counts of that mean have: μ, or μ + μ²/r (McCullagh and Nelder, "Generalized
Linear Models", chapters 6 and 9). Their minimum is the mean, as that of the squared error is.

Networks answer on the standardised scale, where zero is somewhere else for each column. What is
compared with therefore has two steps more, which say where: (B, H + 2, K).
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
import tensorflow as tf

from training.loop.fit import PerRowFunction

COUNT_LOSSES = ("poisson", "negative_binomial")
EXTRA_STEPS = 2
_LEAST = 0.05
"""Of a mean, in deviations; answers below are bent so that their logarithm exists."""


def with_scale(futures: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """(B, H + 2, K): standardised futures (B, H, K) and after them their scale.

    Args:
        futures: NaN where a value is missing.
        scale: (2, K) or (B, 2, K): mean and deviation with which they were standardised.
    """
    mean, deviation = scale[..., :1, :], scale[..., 1:, :]
    steps = np.concatenate([mean / deviation, deviation], axis=-2).astype(np.float32)
    return np.concatenate([futures, np.broadcast_to(steps, (len(futures), 2, steps.shape[-1]))], 1)


def count_loss(kind: str, size: float) -> PerRowFunction:
    """Half the deviance, over the deviation of the column.

    Args:
        kind: One of `COUNT_LOSSES`.
        size: r of the negative binomial distribution; the larger, the more like Poisson's.
    """

    def of_value(truth: tf.Tensor, answer: tf.Tensor, spread: tf.Tensor) -> tf.Tensor:
        low = answer / _LEAST - 1
        logarithm = tf.where(
            answer > _LEAST, tf.math.log(tf.maximum(answer, _LEAST)), np.log(_LEAST) + low
        )
        mean = tf.where(answer > _LEAST, answer, _LEAST * tf.exp(tf.minimum(low, 0.0)))
        logs = tf.math.xlogy(truth, truth) - truth * logarithm
        if kind == "poisson":
            return logs - truth + mean
        counts, means = truth * spread, mean * spread
        return logs - (counts + size) * tf.math.log((counts + size) / (means + size)) / spread

    return _per_row(of_value)


def count_metrics() -> dict[str, PerRowFunction]:
    """Squared and absolute errors, standardised, of what has the two steps more."""
    return {
        "mse": _per_row(lambda truth, answer, _: tf.square(truth - answer)),
        "mae": _per_row(lambda truth, answer, _: tf.abs(truth - answer)),
    }


def dispersion(values: np.ndarray, season: int) -> float:
    """R of counts (rows, K) whose variance is μ + μ²/r, by the method of moments.

    The mean is a moving one over two seasons; NaN where a value is missing.
    """
    steps = max(7, 2 * season)
    table = pd.DataFrame(values)
    mean = table.rolling(steps, center=True, min_periods=steps).mean()
    variance = table.rolling(steps, center=True, min_periods=steps).var()
    known = np.isfinite(mean.to_numpy())
    beyond = (variance - mean).to_numpy()[known].sum()
    squares = (mean**2).to_numpy()[known].sum()
    return float(np.clip(squares / beyond, 0.1, 1e6)) if beyond > 0 else 1e6


def _per_row(of_value: Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor]) -> PerRowFunction:
    """The mean over the values that are there, and over the forecasts side by side."""

    def per_row(targets: tf.Tensor, answers: tf.Tensor) -> tf.Tensor:
        futures, level, spread = targets[:, :-2], targets[:, -2:-1], targets[:, -1:]
        seen = tf.math.is_finite(futures)
        truth = tf.maximum(tf.where(seen, futures, 0.0) + level, 0.0)[..., tf.newaxis]
        answer = answers + level[..., tf.newaxis]
        values = tf.reduce_mean(of_value(truth, answer, spread[..., tf.newaxis]), axis=-1)
        kept = tf.cast(seen, values.dtype)
        return tf.reduce_sum(values * kept, (1, 2)) / tf.maximum(tf.reduce_sum(kept, (1, 2)), 1.0)

    return per_row
