"""Training of a model with its settings: optimizer, schedule, clipping, early stopping."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from rich.console import Console

from gru_training.config import TrainingConfig
from gru_training.loop.batches import Batch
from gru_training.loop.checkpoint import Checkpoint
from gru_training.loop.fit import (
    EpochFollower,
    FitResult,
    Measure,
    PerRowFunction,
    Score,
    Step,
    TrainingBatches,
    fit,
    make_eval_step,
    make_train_step,
)
from gru_training.loop.optimizers import learning_rate_schedule
from gru_training.loop.progress import TrainingProgress
from gru_training.loop.twin import Twin, twin_of
from gru_training.loop.workers import Workers


class Objective(NamedTuple):
    """The loss and metrics of a training, and the criterion of its best epoch."""

    loss: PerRowFunction
    metrics: Mapping[str, PerRowFunction]
    score: Score
    shown: str
    """The metric to show beside the loss."""
    style: str = ".1%"
    """Format of the metric, as in format()."""
    measures: Mapping[str, Measure] = {}
    """Measures of all validation rows at once that are not means over rows, such as a macro F1."""
    key: Hashable = None
    """Key shared by objectives with the same loss and metrics, with which later trainings reuse the
    traced functions; None to trace for each training.
    """


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
    workers: Workers | None = None,
    followers: Sequence[EpochFollower] = (),
) -> FitResult:
    """Train with Adam; the model ends with the weights of its best epoch.

    Args:
        model: Model to train; functional or sequential.
        train_batches: Batches that are drawn anew for each epoch.
        validation_batches: Function that is called after each epoch for the batches of validation.
        objective: Loss, metrics and score.
        settings: Settings of the optimisation.
        signature: Signature of inputs and targets, with None for sizes that vary.
        console: Console for progress.
        checkpoint: Function that makes the checkpoint of these variables; none is written by
            default.
        workers: Workers that train together; one by default.
        followers: Functions called after each epoch, beside the console.

    Raises:
        DivergenceError: A mean, of training or validation, is infinite or not a number.
        CheckpointError: The checkpoint cannot be written or continued.
        LostWorkerError: Another worker has ended.
    """
    workers = workers or Workers()
    with (
        twin_of(model) if objective.key is not None else nullcontext() as lent,
        TrainingProgress(
            console,
            settings.epochs,
            len(train_batches),
            objective.shown,
            objective.style,
            followers,
        ) as progress,
    ):
        twin = lent or Twin(model)
        optimizer, train_step, eval_step = _steps(
            twin, objective, settings, len(train_batches), signature, workers
        )
        variables = [*twin.model.variables, *optimizer.variables]
        result = fit(
            twin.model,
            train_step,
            eval_step,
            train_batches,
            validation_batches,
            epochs=settings.epochs,
            patience=settings.patience,
            score=objective.score,
            learning_rate=lambda: float(optimizer.learning_rate),
            progress=progress,
            checkpoint=checkpoint(variables) if checkpoint else None,
            measures=objective.measures,
            workers=workers,
            variables=variables,
        )
        twin.write(model)
        return result


def _steps(
    twin: Twin,
    objective: Objective,
    settings: TrainingConfig,
    steps: int,
    signature: tuple[tf.TensorSpec, tf.TensorSpec],
    workers: Workers,
) -> tuple[keras.optimizers.Adam, Step, Step]:
    """Make an optimizer that has taken no step, the training step and the evaluation step."""
    loss, metrics, clip_norm = objective.loss, objective.metrics, settings.clip_norm
    rate, outputs = learning_rate_schedule(settings, steps), bool(objective.measures)
    varies = isinstance(rate, keras.optimizers.schedules.LearningRateSchedule)

    def training() -> tuple[keras.optimizers.Adam, Step]:
        optimizer = keras.optimizers.Adam(rate)
        return optimizer, make_train_step(
            twin.model, optimizer, loss, metrics, signature, clip_norm, workers
        )

    def evaluation() -> Step:
        return make_eval_step(twin.model, loss, metrics, signature, workers, outputs=outputs)

    if objective.key is None:
        return *training(), evaluation()
    alike = (objective.key, signature, workers.count)
    schedule = (type(rate), *rate.get_config().items()) if varies else None
    optimizer, train_step = twin.function(("training", *alike, schedule, clip_norm), training)
    if int(optimizer.iterations):  # of the training before
        for variable in optimizer.variables:
            variable.assign(np.zeros(variable.shape, variable.dtype))
    if not varies:
        optimizer.learning_rate = rate
    return optimizer, train_step, twin.function(("evaluation", *alike, outputs), evaluation)
