"""What the parts of a combination are weighed by: the loss that is asked for.

Each loss is one of errors (n,), forecast minus truth, and says how a squared error of each has to
count so that the least squares have the gradient of the loss where they are (iteratively reweighted
least squares: of the absolute error Schlossmacher 1973, of deviances Nelder and Wedderburn 1972).
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import tensorflow as tf

from gru_training.forecasting.count_losses import COUNT_LOSSES, count_loss, dispersion
from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.losses import Loss
from gru_training.forecasting.windows import Windows

_LEAST = 1e-3
"""Of an absolute error, in deviations: nearer to zero it counts as this."""
_LEAST_COUNT = 0.05
"""Of a mean, in deviations, as the loss of counts has it."""


class Criterion(Protocol):
    """A loss of errors (n,)."""

    @property
    def name(self) -> str:
        """For people."""

    def loss(self, errors: np.ndarray) -> float:
        """The mean over the values."""

    def importance(self, errors: np.ndarray) -> np.ndarray:
        """(n,) by what squared errors count where these are the errors."""


@dataclass(frozen=True)
class SquaredError:
    """For means."""

    name: str = "mean squared error"

    def loss(self, errors: np.ndarray) -> float:
        """See `Criterion`."""
        return float((errors**2).mean())

    def importance(self, errors: np.ndarray) -> np.ndarray:
        """See `Criterion`."""
        return np.ones_like(errors)


@dataclass(frozen=True)
class AbsoluteError:
    """For medians."""

    name: str = "mean absolute error"

    def loss(self, errors: np.ndarray) -> float:
        """See `Criterion`."""
        return float(np.abs(errors).mean())

    def importance(self, errors: np.ndarray) -> np.ndarray:
        """See `Criterion`."""
        return np.asarray(1 / np.maximum(np.abs(errors), _LEAST))


@dataclass(frozen=True)
class HuberError:
    """Quadratic up to one deviation, linear beyond."""

    name: str = "mean Huber loss"

    def loss(self, errors: np.ndarray) -> float:
        """See `Criterion`."""
        size = np.abs(errors)
        return float(np.where(size <= 1, size**2 / 2, size - 0.5).mean())

    def importance(self, errors: np.ndarray) -> np.ndarray:
        """See `Criterion`."""
        return np.asarray(1 / np.maximum(np.abs(errors), 1.0))


@dataclass(frozen=True)
class Deviance:
    """Half the deviance of counts, as `gru_training.forecasting.count_losses` has it.

    Args:
        kind: One of `COUNT_LOSSES`.
        size: r of the negative binomial distribution.
        truth: (n,) standardised.
        level: (n,) the mean with which it was standardised, over the deviation.
        spread: (n,) the deviation.
    """

    kind: str
    size: float
    truth: np.ndarray
    level: np.ndarray
    spread: np.ndarray
    name: str = "mean half deviance"

    def loss(self, errors: np.ndarray) -> float:
        """See `Criterion`."""
        steps = np.stack([self.truth, self.level, self.spread], axis=1).astype(np.float32)
        answers = (self.truth + errors).astype(np.float32)
        of_value = count_loss(self.kind, self.size)
        losses = of_value(
            tf.constant(steps[..., np.newaxis]), tf.constant(answers.reshape(-1, 1, 1, 1))
        )
        return float(np.mean(losses, dtype=np.float64))

    def importance(self, errors: np.ndarray) -> np.ndarray:
        """See `Criterion`."""
        mean = np.maximum(self.truth + errors + self.level, _LEAST_COUNT) * self.spread
        variance = mean if self.kind == "poisson" else mean + mean**2 / self.size
        return np.asarray(self.spread / variance)


def criterion_of(loss: Loss, data: ForecastingData, windows: Windows) -> Criterion:
    """That of a loss, for the errors of forecasts for all values of these windows.

    Args:
        loss: Its name; of all quantiles the median counts.
        data: Whose training rows say how counts are dispersed.
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
