"""One trial of a search for settings: a training that is judged on its validation windows."""

from collections.abc import Callable

from rich.console import Console

from training.data.series import Series
from training.forecasting.combination.plan import make_plan
from training.forecasting.combination.training import train_plan
from training.forecasting.config import ForecastingConfig
from training.loop.progress import EpochFollower
from training.loop.replicas import Replicas


def try_settings(
    config: ForecastingConfig, series: Series, after_epoch: Callable[[int, float], None]
) -> float:
    """The mean squared error on the validation windows; test windows are not read.

    Args:
        config: Every setting.
        series: What to learn.
        after_epoch: Told the number of each epoch and the error of the networks after it; may end
            the trial by an error.

    Raises:
        TrainingError: These settings cannot be used.
    """
    follower = EpochFollower("mse", after_epoch)
    plan = make_plan(series, config)
    return train_plan(plan, Replicas(), None, Console(quiet=True), (follower,)).validation_mse
