"""What a network minimises, and what it is compared with, by the name of its loss."""

from collections.abc import Sequence

import numpy as np

from gru_training.forecasting.count_losses import (
    COUNT_LOSSES,
    count_loss,
    count_metrics,
    dispersion,
    scaled_steps,
)
from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.losses import Loss, forecast_loss, point_metrics
from gru_training.forecasting.network.config import ForecastShape
from gru_training.loop.fit import PerRowFunction


def objective_of(
    loss: Loss, levels: Sequence[float], data: ForecastingData
) -> tuple[PerRowFunction, dict[str, PerRowFunction]]:
    """The loss, and the errors that are shown beside it.

    Args:
        loss: Its name.
        levels: Of the quantiles.
        data: Whose training rows say how counts are dispersed.
    """
    if loss not in COUNT_LOSSES:
        return forecast_loss(loss, levels), point_metrics(loss, levels)
    rows = data.series.values[: data.borders.part("train")[1], list(data.shape.targets)]
    return count_loss(loss, dispersion(rows, data.season)), count_metrics()


def count_scale(loss: Loss, data: ForecastingData) -> np.ndarray | None:
    """(2, K) mean and deviation of the targets, for a loss that needs them."""
    return np.stack(data.preprocessor.target_scale) if loss in COUNT_LOSSES else None


def compared_steps(loss: Loss, shape: ForecastShape) -> int:
    """Steps of what forecasts are compared with."""
    return scaled_steps(shape.horizon) if loss in COUNT_LOSSES else shape.horizon
