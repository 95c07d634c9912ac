"""The losses of forecasters, used in training, in its reports, and for the weights of combinations.

Losses of networks are per-row functions of `gru_training.loop.fit`: targets (B, H, K), NaN where
there is nothing to compare with, and model outputs (B, H, K, Q). A row's value is the mean over the
known targets.

For counts (sales, calls, visits), the losses are half the Poisson and the negative binomial
deviance. A squared error weighs a miss of ten equally at means of two and of two hundred; the
deviances weigh it by the variance of counts with that mean: μ, or μ + μ²/r (McCullagh and Nelder,
"Generalized Linear Models", chapters 6 and 9). Their minimum is the mean, as for the squared error.
Networks answer on the standardised scale without the effects of known inputs, where zero lies
elsewhere for each column and step. The targets therefore carry its place in H + 1 further steps:
(B, 2H + 1, K).

A `Criterion` is a loss of errors (n,), forecast minus truth. It also gives the weight of each
squared error for which least squares have the gradient of the loss at these errors (iteratively
reweighted least squares: Schlossmacher 1973 for the absolute error, Nelder and Wedderburn 1972 for
deviances).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
import pandas as pd
import tensorflow as tf

from gru_training.forecasting.config import ForecastShape
from gru_training.loop.fit import PerRowFunction

if TYPE_CHECKING:
    from gru_training.forecasting.data import ForecastingData
    from gru_training.forecasting.windows import Windows

Loss = Literal["mse", "mae", "huber", "quantile", "poisson", "negative_binomial"]
_MEDIAN = 0.5


def forecast_loss(loss: Loss, levels: Sequence[float]) -> PerRowFunction:
    """Return the loss of this name.

    Args:
        loss: Name of a loss, but none of `COUNT_LOSSES`. `huber` is quadratic up to a
            residual of one deviation, linear beyond; `quantile` is the pinball loss, the mean over
            the levels.
        levels: Levels of the outputs, for `quantile`.
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
    """Return squared and absolute error of the point forecast; with `quantile` that of level .5."""
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


COUNT_LOSSES = ("poisson", "negative_binomial")
LEAST_MEAN = 0.05
"""Least mean of a count, in deviations; answers below are bent upwards so that their logarithm
exists.
"""


def with_scale(
    futures: np.ndarray, scale: np.ndarray, effects: np.ndarray | None = None
) -> np.ndarray:
    """Stack standardised futures, their heights above zero and the deviation, (B, 2H + 1, K).

    Args:
        futures: Values without what known inputs add; NaN where one is missing.
        scale: Mean and deviation of the standardisation, (2, K) or (B, 2, K).
        effects: Contribution of the known inputs, (B, H, K); None for none.
    """
    mean, deviation = scale[..., :1, :], scale[..., 1:, :]
    level = np.broadcast_to(mean / deviation, futures.shape)
    if effects is not None:
        level = level + effects
    spread = np.broadcast_to(deviation, (len(futures), 1, futures.shape[-1]))
    return np.concatenate([futures, level.astype(np.float32), spread.astype(np.float32)], axis=1)


def scaled_steps(horizon: int) -> int:
    """Return the number of steps of `with_scale` for H steps."""
    return 2 * horizon + 1


def count_loss(kind: str, size: float) -> PerRowFunction:
    """Return half the deviance divided by the deviation of the column.

    Args:
        kind: Name of the loss, one of `COUNT_LOSSES`.
        size: r of the negative binomial distribution; the larger, the more like Poisson's.
    """

    def of_value(truth: tf.Tensor, answer: tf.Tensor, spread: tf.Tensor) -> tf.Tensor:
        low = answer / LEAST_MEAN - 1
        logarithm = tf.where(
            answer > LEAST_MEAN,
            tf.math.log(tf.maximum(answer, LEAST_MEAN)),
            np.log(LEAST_MEAN) + low,
        )
        mean = tf.where(answer > LEAST_MEAN, answer, LEAST_MEAN * tf.exp(tf.minimum(low, 0.0)))
        logs = tf.math.xlogy(truth, truth) - truth * logarithm
        if kind == "poisson":
            return logs - truth + mean
        counts, means = truth * spread, mean * spread
        # The logarithm of the ratio would round to 0 at large sizes.
        ratio = tf.math.log1p((counts - means) / (means + size))
        return logs - (counts + size) * ratio / spread

    return _per_count_row(of_value)


def count_metrics() -> dict[str, PerRowFunction]:
    """Return squared and absolute errors, standardised, of the targets that `with_scale` made."""
    return {
        "mse": _per_count_row(lambda truth, answer, _: tf.square(truth - answer)),
        "mae": _per_count_row(lambda truth, answer, _: tf.abs(truth - answer)),
    }


def dispersion(values: np.ndarray, season: int) -> float:
    """Estimate r of counts (rows, K) with variance μ + μ²/r by the method of moments.

    The mean is a moving average over two seasons; NaN marks missing values.
    """
    steps = max(7, 2 * season)
    table = pd.DataFrame(values)
    mean = table.rolling(steps, center=True, min_periods=steps).mean()
    variance = table.rolling(steps, center=True, min_periods=steps).var()
    known = np.isfinite(mean.to_numpy())
    beyond = (variance - mean).to_numpy()[known].sum()
    squares = (mean**2).to_numpy()[known].sum()
    return float(np.clip(squares / beyond, 0.1, 1e6)) if beyond > 0 else 1e6


def _per_count_row(
    of_value: Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor],
) -> PerRowFunction:
    """Average over the known values, and over parallel forecasts."""

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


def objective_of(
    loss: Loss, levels: Sequence[float], data: "ForecastingData"
) -> tuple[PerRowFunction, dict[str, PerRowFunction]]:
    """Return the loss, and the errors that are shown beside it.

    Args:
        loss: Name of the loss.
        levels: Levels of the quantiles, ascending.
        data: Series whose training rows say how counts are dispersed.
    """
    if loss not in COUNT_LOSSES:
        return forecast_loss(loss, levels), point_metrics(loss, levels)
    rows = data.series.values[: data.borders.part("train")[1], list(data.shape.targets)]
    return count_loss(loss, dispersion(rows, data.season)), count_metrics()


def count_scale(loss: Loss, data: "ForecastingData") -> np.ndarray | None:
    """Return mean and deviation (2, K) of the targets, for a loss that needs them."""
    return np.stack(data.preprocessor.target_scale) if loss in COUNT_LOSSES else None


def compared_steps(loss: Loss, shape: ForecastShape) -> int:
    """Return the number of steps of the targets."""
    return scaled_steps(shape.horizon) if loss in COUNT_LOSSES else shape.horizon


_LEAST_ERROR = 1e-3
"""Least absolute error, in deviations; smaller errors count as this."""


class Criterion(Protocol):
    """A loss of errors (n,)."""

    @property
    def name(self) -> str:
        """Name of the loss for people."""

    def loss(self, errors: np.ndarray) -> float:
        """Average the loss of the errors."""

    def importance(self, errors: np.ndarray) -> np.ndarray:
        """Return the weights (n,) of squared errors at these errors."""


@dataclass(frozen=True)
class SquaredError:
    """Squared error, for means."""

    name: str = "mean squared error"

    def loss(self, errors: np.ndarray) -> float:
        """Average the loss; see `Criterion`."""
        return float((errors**2).mean())

    def importance(self, errors: np.ndarray) -> np.ndarray:
        """Return the weights; see `Criterion`."""
        return np.ones_like(errors)


@dataclass(frozen=True)
class AbsoluteError:
    """Absolute error, for medians."""

    name: str = "mean absolute error"

    def loss(self, errors: np.ndarray) -> float:
        """Average the loss; see `Criterion`."""
        return float(np.abs(errors).mean())

    def importance(self, errors: np.ndarray) -> np.ndarray:
        """Return the weights; see `Criterion`."""
        return np.asarray(1 / np.maximum(np.abs(errors), _LEAST_ERROR))


@dataclass(frozen=True)
class HuberError:
    """Quadratic up to one deviation, linear beyond."""

    name: str = "mean Huber loss"

    def loss(self, errors: np.ndarray) -> float:
        """Average the loss; see `Criterion`."""
        size = np.abs(errors)
        return float(np.where(size <= 1, size**2 / 2, size - 0.5).mean())

    def importance(self, errors: np.ndarray) -> np.ndarray:
        """Return the weights; see `Criterion`."""
        return np.asarray(1 / np.maximum(np.abs(errors), 1.0))


@dataclass(frozen=True)
class Deviance:
    """Half the deviance of counts, as `gru_training.forecasting.losses` has it.

    Args:
        kind: Name of the loss, one of `COUNT_LOSSES`.
        size: r of the negative binomial distribution.
        truth: True values, (n,), standardised.
        level: Mean of the standardisation over its deviation, (n,).
        spread: Deviation of the standardisation, (n,).
    """

    kind: str
    size: float
    truth: np.ndarray
    level: np.ndarray
    spread: np.ndarray
    name: str = "mean half deviance"

    def loss(self, errors: np.ndarray) -> float:
        """Average the loss; see `Criterion`."""
        steps = np.stack([self.truth, self.level, self.spread], axis=1).astype(np.float32)
        answers = (self.truth + errors).astype(np.float32)
        of_value = count_loss(self.kind, self.size)
        losses = of_value(
            tf.constant(steps[..., np.newaxis]), tf.constant(answers.reshape(-1, 1, 1, 1))
        )
        return float(np.mean(losses, dtype=np.float64))

    def importance(self, errors: np.ndarray) -> np.ndarray:
        """Return the weights; see `Criterion`."""
        mean = np.maximum(self.truth + errors + self.level, LEAST_MEAN) * self.spread
        variance = mean if self.kind == "poisson" else mean + mean**2 / self.size
        return np.asarray(self.spread / variance)


def criterion_of(loss: Loss, data: "ForecastingData", windows: "Windows") -> Criterion:
    """Make the criterion of a loss, for errors of forecasts for all values of these windows.

    Args:
        loss: Name of the loss; of all quantiles the median counts.
        data: Series whose training rows say how counts are dispersed.
        windows: N of them.
    """
    if loss == "huber":
        return HuberError()
    if loss in ("mae", "quantile"):
        return AbsoluteError()
    if loss not in COUNT_LOSSES:
        return SquaredError()
    futures = windows.futures()
    seen = np.isfinite(futures)
    mean, deviation = data.preprocessor.target_scale
    truth = data.preprocessor.measured(futures, windows.effects_ahead())
    rows = data.series.values[: data.borders.part("train")[1], list(data.shape.targets)]
    level, spread = (
        np.broadcast_to(each, futures.shape)[seen] for each in (mean / deviation, deviation)
    )
    return Deviance(loss, dispersion(rows, data.season), truth[seen], level, spread)
