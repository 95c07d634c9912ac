"""Training a model according to its settings: optimizer, schedule, clipping, early stopping."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf
from rich.console import Console

from gru_training.config import TrainingConfig
from gru_training.loop.batches import Batch
from gru_training.loop.checkpoint import Checkpoint
from gru_training.loop.evaluation import Measure
from gru_training.loop.fit import (
    FitResult,
    PerRowFunction,
    Progress,
    Score,
    TrainingBatches,
    fit,
    make_eval_step,
    make_train_step,
)
from gru_training.loop.learning_rate import learning_rate_schedule
from gru_training.loop.progress import ModelFollower, ProgressGroup, TrainingProgress
from gru_training.loop.replicas import Replicas


class Objective(NamedTuple):
    """What a training minimises and reports, and how it chooses the best epoch."""

    loss: PerRowFunction
    metrics: Mapping[str, PerRowFunction]
    score: Score
    shown: str
    """The metric to show beside the loss."""
    style: str = ".1%"
    """How to write it, as in format()."""
    measures: Mapping[str, Measure] = {}
    """Of all validation rows at once: what is no mean over rows, as a macro F1."""


def train(
    model: keras.Model,
    train_batches: TrainingBatches,
    validation_batches: Callable[[], Iterable[Batch]],
    objective: Objective,
    settings: TrainingConfig,
    *,
    signature: tuple[tf.TensorSpec, tf.TensorSpec],
    console: Console,
    checkpoint: Callable[[Sequence[Any]], Checkpoint] | None = None,
    replicas: Replicas | None = None,
    followers: Sequence[Progress] = (),
    adam: type[keras.optimizers.Adam] = keras.optimizers.Adam,
) -> FitResult:
    """Train with Adam; the model ends with the weights of its best epoch.

    Args:
        model: Made in the scope of the replicas.
        train_batches: Drawn anew for each epoch.
        validation_batches: Called after each epoch.
        objective: Loss, metrics and score.
        settings: How the weights are found.
        signature: Of inputs and targets, with None for sizes that vary.
        console: Where to show progress.
        checkpoint: Makes the checkpoint of these variables; none is written by default.
        replicas: Of the model; one by default.
        followers: Told of steps and epochs, beside the console; may end the training by an error.
        adam: The class of the optimizer.

    Raises:
        DivergenceError: A mean, of training or validation, is infinite or not a number.
        CheckpointError: The checkpoint cannot be written or continued.
    """
    replicas = replicas or Replicas()
    with replicas.scope():
        optimizer = adam(learning_rate_schedule(settings, len(train_batches)))
    loss, metrics = objective.loss, objective.metrics
    eval_step = make_eval_step(
        model, loss, metrics, signature, replicas, outputs=bool(objective.measures)
    )
    train_step = make_train_step(
        model, optimizer, loss, metrics, signature, settings.clip_norm, replicas
    )
    variables = [*model.variables, *optimizer.variables]
    for each in followers:
        if isinstance(each, ModelFollower):
            each.watch(model, loss, validation_batches)
    with TrainingProgress(
        console, settings.epochs, len(train_batches), objective.shown, objective.style
    ) as progress:
        return fit(
            model,
            train_step,
            eval_step,
            train_batches,
            validation_batches,
            epochs=settings.epochs,
            patience=settings.patience,
            score=objective.score,
            learning_rate=lambda: float(optimizer.learning_rate),
            progress=ProgressGroup((progress, *followers)),
            checkpoint=checkpoint(variables) if checkpoint else None,
            measures=objective.measures,
        )
