"""One trial of a search for settings: a training that is judged on its validation windows."""

from collections.abc import Callable

import numpy as np
from rich.console import Console

from gru_training.criterion import PARTS, Judged, judged
from gru_training.data.series import Series
from gru_training.forecasting.combination.plan import independent_windows, make_plan
from gru_training.forecasting.combination.training import train_plan, validation_errors
from gru_training.forecasting.config import ForecastingConfig
from gru_training.loop.progress import EpochFollower
from gru_training.loop.replicas import Replicas


def try_settings(
    config: ForecastingConfig,
    series: Series,
    measure: str,
    after_epoch: Callable[[int, float], None],
) -> Judged:
    """The mean squared or absolute error on the validation windows; test windows are not read.

    Args:
        config: Every setting.
        series: What to learn.
        measure: "mse" or "mae".
        after_epoch: Told the number of each epoch and the error of the networks after it; may end
            the trial by an error.

    Raises:
        TrainingError: These settings cannot be used.
    """
    follower = EpochFollower(measure, after_epoch)
    plan = make_plan(series, config)
    trained = train_plan(plan, Replicas(), None, Console(quiet=True), (follower,))
    errors = validation_errors(plan, trained.model)
    losses = np.abs(errors) if measure == "mae" else np.square(errors)
    parts = min(PARTS, int(independent_windows(plan.data)))  # neighbours overlap
    return judged(lambda kept: float(losses[kept].mean()), len(losses), parts)
