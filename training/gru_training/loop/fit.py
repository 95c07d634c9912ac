"""The training loop, independent of texts and series.

A *per-row function* takes targets and model outputs and returns one value per row, (B,). Losses and
metrics are of this kind, so means over an epoch weigh every row equally, however the rows are
distributed over batches.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol, cast

import keras
import numpy as np
import tensorflow as tf

from gru_training.errors import DivergenceError
from gru_training.loop.checkpoint import Checkpoint, EpochRecord, FitState, Totals, state_of
from gru_training.loop.workers import Workers
from gru_training.termination import check_interrupt

if TYPE_CHECKING:
    from gru_training.loop.progress import TrainingProgress

Measure = Callable[[np.ndarray, np.ndarray], float]
"""Function of the targets and outputs of many rows."""
AnyBatch = tuple[Any, np.ndarray]
"""Inputs and targets of a step: a `gru_training.loop.batches.Batch`, or a task's own type."""
Step = Callable[[Any, Any], Mapping[str, Any]]
"""Function from a batch to the sums over its rows of the loss and of each metric."""
OUTPUTS = "outputs"
"""Key under which a step may return the outputs of the model."""


def evaluate(
    eval_step: Step, batches: Iterable[AnyBatch], measures: Mapping[str, Measure] | None = None
) -> dict[str, float]:
    """Compute means over all rows of the loss and each metric, and the measures of all rows.

    Args:
        eval_step: Step from `make_eval_step`; with measures one that returns outputs.
        batches: Batches that hold each row once.
        measures: Measures by name.

    Raises:
        ValueError: There are no rows.
    """
    totals = Totals()
    answered: list[tuple[np.ndarray, np.ndarray]] = []
    for inputs, targets in batches:
        sums = dict(eval_step(inputs, targets))
        if measures:
            answered.append((targets, np.asarray(sums.pop(OUTPUTS))))
        totals.add(sums, len(targets))
    means = totals.means()
    if measures:
        rows = [np.concatenate(part) for part in zip(*answered, strict=True)]
        means |= {name: measure(rows[0], rows[1]) for name, measure in measures.items()}
    return means


PerRowFunction = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
Score = Callable[[Mapping[str, float]], tuple[float, ...]]
"""Score that early stopping maximises, computed from validation means; later entries break ties."""


@dataclass(frozen=True)
class FitResult:
    """The result of `fit`; the model holds the weights of the best epoch."""

    epochs: tuple[EpochRecord, ...]
    best_epoch: int
    interrupted: bool
    """Whether SIGINT ended it before early stopping or the last epoch."""
    earlier_seconds: float = 0.0
    """Seconds of training before the interruption, if it continued from a checkpoint."""


class TrainingBatches(Protocol):
    """Batches that can be drawn again for each epoch."""

    def __len__(self) -> int: ...

    def epoch(self, number: int) -> Iterator[AnyBatch]:
        """Yield all rows once, in an order that depends on the epoch."""


EpochFollower = Callable[[EpochRecord], None]
"""A function called after each epoch; may end the training by an error."""


def make_train_step(
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    loss: PerRowFunction,
    metrics: Mapping[str, PerRowFunction],
    signature: tuple[tf.TensorSpec, tf.TensorSpec],
    clip_norm: float,
    workers: Workers | None = None,
) -> Step:
    """Make the function of one gradient step on the mean loss of a batch, as a graph.

    Args:
        model: Model to train, called with `training=True`.
        optimizer: Optimizer of the trainable variables.
        loss: Per-row function to minimise.
        metrics: Further per-row functions to report.
        signature: Signature of inputs and targets, with None for sizes that vary: the graph is
            traced once.
        clip_norm: The gradients' global norm is scaled down to this.
        workers: Workers among which the rows are divided; one by default.

    Returns:
        The step.
    """
    workers = workers or Workers()
    optimizer.build(model.trainable_variables)

    @tf.function(input_signature=signature, autograph=False)
    def train_step(inputs: tf.Tensor, targets: tf.Tensor) -> Mapping[str, tf.Tensor]:
        count = tf.shape(targets)[0]
        inputs, targets = workers.own(inputs, targets)
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            row_losses = loss(targets, outputs)
            mean = tf.reduce_sum(row_losses) / tf.cast(count, row_losses.dtype)
            penalties = [penalty / workers.count for penalty in model.losses]
            objective = tf.add_n([mean, *penalties])
        gradients, sums = workers.summed((
            tape.gradient(objective, model.trainable_variables),
            _sums(row_losses, metrics, targets, outputs),
        ))  # fmt: skip
        gradients, _ = tf.clip_by_global_norm([summed(each) for each in gradients], clip_norm)
        optimizer.apply(gradients)
        return cast(Mapping[str, tf.Tensor], sums)

    return cast(Step, train_step.get_concrete_function())


def make_eval_step(
    model: keras.Model,
    loss: PerRowFunction,
    metrics: Mapping[str, PerRowFunction],
    signature: tuple[tf.TensorSpec, tf.TensorSpec],
    workers: Workers | None = None,
    outputs: bool = False,
) -> Step:
    """Make the function of loss and metrics of a batch without dropout, as a graph.

    Arguments as for training; with `outputs` it also returns those of the model.
    """
    workers = workers or Workers()

    @tf.function(input_signature=signature, autograph=False)
    def eval_step(inputs: tf.Tensor, targets: tf.Tensor) -> Mapping[str, tf.Tensor]:
        count = tf.shape(targets)[0]
        inputs, targets = workers.own(inputs, targets)
        answers = model(inputs, training=False)
        sums = workers.summed(_sums(loss(targets, answers), metrics, targets, answers))
        return {**sums, OUTPUTS: workers.joined(answers, count)} if outputs else sums

    return cast(Step, eval_step.get_concrete_function())


def fit(
    model: keras.Model,
    train_step: Step,
    eval_step: Step,
    train_batches: TrainingBatches,
    validation_batches: Callable[[], Iterable[AnyBatch]],
    *,
    epochs: int,
    patience: int,
    score: Score,
    learning_rate: Callable[[], float],
    progress: "TrainingProgress",
    checkpoint: Checkpoint | None = None,
    measures: Mapping[str, Measure] | None = None,
    workers: Workers | None = None,
    variables: Sequence[Any] = (),
) -> FitResult:
    """Train until the validation score has not risen for `patience` epochs.

    The model ends with the weights of its best epoch. SIGINT lets the current step finish and then
    ends in the same way (an unfinished first epoch counts as one); a second SIGINT interrupts at
    once. With a checkpoint, training continues from the last one, and ends with the same weights as
    without the interruption.

    Args:
        model: The model both steps work on.
        train_step: Step from `make_train_step`.
        eval_step: Step from `make_eval_step`.
        train_batches: Batches that are drawn anew for each epoch.
        validation_batches: Function that is called after each epoch for the batches of validation.
        epochs: Largest number of epochs.
        patience: Epochs without a better score before stopping.
        score: Score of an epoch's validation means; higher is better.
        learning_rate: The current learning rate, for the record.
        progress: Display of each step and epoch, including epochs before a resumption.
        checkpoint: Checkpoint, written after each epoch and now and then within it; none by
            default.
        measures: Measures of all validation rows, as for `evaluate`.
        workers: Workers that train together, for whom the steps were made; one by default.
        variables: Variables that training changes; the first worker gives its values to the others,
            and alone needs the checkpoint.

    Raises:
        DivergenceError: A mean, of training or validation, is infinite or not a number.
        CheckpointError: The checkpoint cannot be written or continued.
        LostWorkerError: Another worker has ended.
    """
    workers = workers or Workers()
    with workers.needed(checkpoint), _deferred_interrupt() as interrupted:
        restored = checkpoint.restore() if checkpoint else None
        state, best_weights = restored or (FitState(), model.get_weights())
        if workers.count > 1:
            told, best_weights = workers.agreed(asdict(state), best_weights)
            state = state_of(told)
            workers.align(variables)
        earlier_seconds = sum(record.seconds for record in state.records) + state.seconds
        for record in state.records:
            progress.epoch(record, record.epoch == state.best_epoch)
        stopped = False
        while state.epoch <= min(epochs, state.best_epoch + patience):
            started = time.perf_counter() - state.seconds
            for inputs, targets in islice(train_batches.epoch(state.epoch), state.step, None):
                state.totals.add(train_step(inputs, targets), len(targets))
                state.step += 1
                progress.step(state.epoch, state.step, _finite_loss(state))
                check_interrupt()
                if stopped := workers.any(interrupted()):
                    break
                if checkpoint and checkpoint.due:
                    state.seconds = time.perf_counter() - started
                    checkpoint.save(state, best_weights)
            if stopped and state.records:
                break
            validation = evaluate(eval_step, validation_batches(), measures)
            for name, mean in validation.items():  # the last step may have broken the weights
                _require_finite(f"validation {name}", mean, f"after epoch {state.epoch}")
            record = EpochRecord(
                state.epoch,
                state.totals.means(),
                validation,
                learning_rate(),
                time.perf_counter() - started,
            )
            current = score(record.validation)
            best = state.best_score is None or current > state.best_score
            if best:
                state.best_score, state.best_epoch = current, state.epoch
                best_weights = model.get_weights()
            progress.epoch(record, best)
            state = FitState(
                epoch=state.epoch + 1,
                records=[*state.records, record],
                best_epoch=state.best_epoch,
                best_score=state.best_score,
            )
            stopped = stopped or workers.any(interrupted())
            if stopped:
                break
            if checkpoint:
                checkpoint.save(state, best_weights)
    model.set_weights(best_weights)
    return FitResult(tuple(state.records), state.best_epoch, stopped, earlier_seconds)


@contextmanager
def _deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Turn a first SIGINT inside the context into a flag, which the yielded function returns."""
    received = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield received.is_set  # only the main thread may set signal handlers
        return
    previous = signal.getsignal(signal.SIGINT)

    def handler(_signal: int, _frame: FrameType | None) -> None:
        received.set()
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, handler)
    try:
        yield received.is_set
    finally:
        signal.signal(signal.SIGINT, previous)


def _finite_loss(state: FitState) -> float:
    loss = state.totals.means()["loss"]
    _require_finite("training loss", loss, f"in epoch {state.epoch}, step {state.step}")
    return loss


def _require_finite(name: str, mean: float, when: str) -> None:
    if not math.isfinite(mean):
        raise DivergenceError(f"the {name} became {mean} {when}; try a lower --learning-rate")


def summed(gradient: Any) -> Any:
    """Add up the entries of a sparse gradient for the same row; otherwise its norm is wrong."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, place = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, place, tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)


def _sums(
    row_losses: tf.Tensor,
    metrics: Mapping[str, PerRowFunction],
    targets: tf.Tensor,
    outputs: tf.Tensor,
) -> dict[str, tf.Tensor]:
    values = {"loss": row_losses, **{name: f(targets, outputs) for name, f in metrics.items()}}
    return {name: tf.reduce_sum(tf.cast(value, tf.float32)) for name, value in values.items()}
