"""Training a network that stands alone."""

import itertools
from collections.abc import Sequence
from functools import partial

import keras
import tensorflow as tf
from rich.console import Console

from gru_training.forecasting.baselines.simple import ridge_of
from gru_training.forecasting.config import ForecastingConfig
from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.network.model import build_forecaster, initialise_linear
from gru_training.forecasting.network.objective import compared_steps, count_scale, objective_of
from gru_training.forecasting.scores.forecast_errors import CHUNK
from gru_training.forecasting.windows import WindowBatches
from gru_training.loop.fit import FitResult, Progress
from gru_training.loop.replicas import Replicas
from gru_training.loop.train import Objective, train
from gru_training.runs.writer import TrainingRunWriter


def train_network(
    data: ForecastingData,
    config: ForecastingConfig,
    replicas: Replicas,
    writer: TrainingRunWriter | None,
    console: Console,
    last_epoch: bool = False,
    initial: keras.Model | None = None,
    followers: Sequence[Progress] = (),
) -> tuple[keras.Model, FitResult]:
    """Train it from standardised windows (B, L, C) to (B, H, K, Q or 1).

    Args:
        data: What to learn from.
        config: With nothing left open.
        replicas: Of the model.
        writer: Keeps checkpoints.
        console: Where to show progress.
        last_epoch: Keep the last epoch in place of the one that validates best.
        initial: Model of the same settings, with whose weights it begins; drawn by default.
        followers: Told of steps and epochs, beside the console.
    """
    epochs = itertools.count()
    settings = config.training
    keras.utils.set_random_seed(settings.seed)
    training = WindowBatches(
        data.windows("train"),
        data.preprocessor,
        settings.batch_size,
        settings.seed,
        settings.train_stride or 1,
        scale=count_scale(config.model.loss, data),
    )
    validation = WindowBatches(
        data.windows("validation"),
        data.preprocessor,
        CHUNK,
        scale=count_scale(config.model.loss, data),
    )
    loss, measures = objective_of(config.model.loss, config.model.levels, data)
    with replicas.scope():
        model = build_forecaster(config.model, data.shape, config.model.levels)
    if config.model.linear_skip:
        initialise_linear(
            model, ridge_of(data, data.shape.lookback, data.borders.trained).coefficients
        )
    if initial is not None:
        model.set_weights(initial.get_weights())
    checkpoint = None  # of several replicas each would have random numbers of its own to keep
    if writer is not None and replicas.count == 1:
        checkpoint = partial(writer.checkpoint, data=data.digest)
    result = train(
        model,
        training,
        validation.in_order,
        Objective(
            loss,
            measures,
            score=lambda means: (next(epochs) if last_epoch else -means["loss"],),
            shown="mse",
            style=".4f",
        ),
        settings,
        signature=(
            tf.TensorSpec((None, data.shape.lookback, data.shape.channels), tf.float32),
            tf.TensorSpec(
                (None, compared_steps(config.model.loss, data.shape), len(data.shape.targets)),
                tf.float32,
            ),
        ),
        console=console,
        checkpoint=checkpoint,
        replicas=replicas,
        followers=followers,
    )
    return model, result
