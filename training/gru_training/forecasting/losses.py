"""What forecasters minimise, and what is reported while they train.

All are per-row functions of `gru_training.loop.fit`: targets (B, H, K), NaN where there is nothing
to compare with, and model outputs (B, H, K, Q). A row's value is the mean over what is there.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import tensorflow as tf

from gru_training.loop.fit import PerRowFunction

Loss = Literal["mse", "mae", "huber", "quantile", "poisson", "negative_binomial"]
_MEDIAN = 0.5


def forecast_loss(loss: Loss, levels: Sequence[float]) -> PerRowFunction:
    """The loss of this name.

    Args:
        loss: Not one of `gru_training.forecasting.count_losses`. `huber` is quadratic up to a
            residual of one deviation, linear beyond; `quantile` is the pinball loss, the mean over
            the levels.
        levels: Of the outputs, for `quantile`.
    """
    p = np.array(levels, np.float32)
    of_residual: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
        "mse": tf.square,
        "mae": tf.abs,
        "huber": lambda r: tf.where(tf.abs(r) <= 1, tf.square(r) / 2, tf.abs(r) - 0.5),
        "quantile": lambda r: tf.maximum(p * r, (p - 1) * r),
    }
    return _per_row(of_residual[loss], slice(None))


def point_metrics(loss: Loss, levels: Sequence[float]) -> dict[str, PerRowFunction]:
    """Squared and absolute error of the point forecast: with `quantile` that of level .5."""
    point = list(levels).index(_MEDIAN) if loss == "quantile" else 0
    only = slice(point, point + 1)
    return {"mse": _per_row(tf.square, only), "mae": _per_row(tf.abs, only)}


def _per_row(of_residual: Callable[[tf.Tensor], tf.Tensor], outputs: slice) -> PerRowFunction:
    def per_row(targets: tf.Tensor, answers: tf.Tensor) -> tf.Tensor:
        answers = answers[..., outputs]
        seen = tf.math.is_finite(targets)
        known = tf.where(seen, targets, 0.0)[..., tf.newaxis]
        values = tf.reduce_mean(of_residual(known - answers), axis=-1)  # (B, H, K)
        kept = tf.cast(seen, values.dtype)
        return tf.reduce_sum(values * kept, (1, 2)) / tf.maximum(tf.reduce_sum(kept, (1, 2)), 1.0)

    return per_row
