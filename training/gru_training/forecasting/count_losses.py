"""Losses for counts: half the Poisson and negative binomial deviance of sales, calls, visits.

A squared error weighs a miss of ten alike where two and where two hundred are sold; these weigh it
by the variance that counts of that mean have: μ, or μ + μ²/r (McCullagh and Nelder, "Generalized
Linear Models", chapters 6 and 9). Their minimum is the mean, as that of the squared error is.

Networks answer on the standardised scale without what known inputs add, where zero is somewhere
else for each column and step. What is compared with therefore says where, in H + 1 further steps:
(B, 2H + 1, K).
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
import tensorflow as tf

from gru_training.loop.fit import PerRowFunction

COUNT_LOSSES = ("poisson", "negative_binomial")
_LEAST = 0.05
"""Of a mean, in deviations; answers below are bent so that their logarithm exists."""


def with_scale(
    futures: np.ndarray, scale: np.ndarray, effects: np.ndarray | None = None
) -> np.ndarray:
    """(B, 2H + 1, K): standardised futures (B, H, K), how far each is above zero, the deviation.

    Args:
        futures: Without what known inputs add; NaN where a value is missing.
        scale: (2, K) or (B, 2, K): mean and deviation with which they were standardised.
        effects: (B, H, K), what known inputs add; None: nothing.
    """
    mean, deviation = scale[..., :1, :], scale[..., 1:, :]
    level = np.broadcast_to(mean / deviation, futures.shape)
    if effects is not None:
        level = level + effects
    spread = np.broadcast_to(deviation, (len(futures), 1, futures.shape[-1]))
    return np.concatenate([futures, level.astype(np.float32), spread.astype(np.float32)], axis=1)


def scaled_steps(horizon: int) -> int:
    """Steps of `with_scale`, by the H of the futures."""
    return 2 * horizon + 1


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
        # The logarithm of their ratio, which rounding would make 0 of a large size.
        ratio = tf.math.log1p((counts - means) / (means + size))
        return logs - (counts + size) * ratio / spread

    return _per_row(of_value)


def count_metrics() -> dict[str, PerRowFunction]:
    """Squared and absolute errors, standardised, of what `with_scale` made."""
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
        horizon = answers.shape[1]
        futures, level = targets[:, :horizon], targets[:, horizon:-1]
        spread = targets[:, -1:]
        seen = tf.math.is_finite(futures)
        truth = tf.maximum(tf.where(seen, futures, 0.0) + level, 0.0)[..., tf.newaxis]
        answer = answers + level[..., tf.newaxis]
        values = tf.reduce_mean(of_value(truth, answer, spread[..., tf.newaxis]), axis=-1)
        kept = tf.cast(seen, values.dtype)
        return tf.reduce_sum(values * kept, (1, 2)) / tf.maximum(tf.reduce_sum(kept, (1, 2)), 1.0)

    return per_row
