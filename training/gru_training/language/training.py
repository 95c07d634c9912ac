"""Training of a language model, without writing anything."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import keras
import tensorflow as tf
from rich.console import Console

from gru_serving.preprocessing.texts import PADDING
from gru_training.language.batches import Chunk, DocumentChunks
from gru_training.language.config import LanguageConfig
from gru_training.language.model import (
    LanguageModel,
    build_language_model,
    full_cross_entropy,
    sampled_cross_entropy,
    target_log_probabilities,
)
from gru_training.language.reading import ReadDocuments
from gru_training.loop.checkpoint import Checkpoint
from gru_training.loop.fit import EpochFollower, FitResult, evaluate, fit, summed
from gru_training.loop.optimizers import SparseAdam, learning_rate_schedule
from gru_training.loop.progress import TrainingProgress
from gru_training.loop.workers import Workers

Step = Callable[[Chunk, Any], Mapping[str, Any]]


def carried_states(model: LanguageModel, batch_size: int) -> list[tf.Variable]:
    """Make variables of zeros, (B, U) each, that carry the state of each layer between steps."""
    return [
        tf.Variable(tf.zeros((batch_size, gru.units)), trainable=False, name=f"state_{number}")
        for number, gru in enumerate(model.grus, start=1)
    ]


def make_train_step(
    model: LanguageModel,
    optimizer: keras.optimizers.Optimizer,
    carried: Sequence[tf.Variable],
    *,
    clip_norm: float,
    samples: int,
    seed: int,
    workers: Workers | None = None,
) -> Step:
    """Make the function of one gradient step on the mean loss of a chunk, as a graph.

    Args:
        model: Model to train, which reads with dropout.
        optimizer: Optimizer of the trainable variables.
        carried: States from `carried_states`; the step leaves in them where the next chunk begins.
        clip_norm: The gradients' global norm is scaled down to this.
        samples: Tokens that each target is compared with; 0 for all.
        seed: Seed of the drawn tokens, which depend on it and on the number of the step.
        workers: Workers among which the rows are divided; one by default.

    Returns:
        Training step, which returns the sums over the targets of the loss and of its bits.
    """
    optimizer.build(model.trainable_variables)
    workers = workers or Workers()

    @tf.function(input_signature=_signature(carried), autograph=False)
    def train_step(chunk: Chunk, targets: tf.Tensor) -> Mapping[str, tf.Tensor]:
        count = tf.size(targets)
        chunk, targets, states = _own(workers, chunk, targets, carried)
        with tf.GradientTape() as tape:
            features, after = model.read(chunk.ids, states, training=True)
            features = tf.boolean_mask(features, chunk.ids != PADDING)  # (N, E)
            if samples:
                drawn = tf.stack(
                    [
                        tf.cast(seed, tf.int64),
                        tf.cast(tf.convert_to_tensor(optimizer.iterations), tf.int64),
                    ]
                )
                losses = sampled_cross_entropy(model, features, targets, samples, drawn)
            else:
                losses = full_cross_entropy(model, features, targets)
            loss = tf.reduce_sum(losses) / tf.cast(count, losses.dtype)
        gradients, sums = workers.summed(
            (tape.gradient(loss, model.trainable_variables), _sums(losses))
        )
        gradients, _ = tf.clip_by_global_norm(list(map(summed, gradients)), clip_norm)
        optimizer.apply(gradients)
        _carry(workers, carried, after)
        return cast(Mapping[str, Any], sums)

    return cast(Step, train_step)


def make_eval_step(
    model: LanguageModel, carried: Sequence[tf.Variable], workers: Workers | None = None
) -> Step:
    """Make the function of a chunk's loss over all tokens without dropout, as a graph.

    See `make_train_step`.

    Args:
        model: Model to evaluate.
        carried: States from `carried_states`, used by no other step.
        workers: Workers among which the rows are divided; one by default.
    """
    workers = workers or Workers()

    @tf.function(input_signature=_signature(carried), autograph=False)
    def eval_step(chunk: Chunk, targets: tf.Tensor) -> Mapping[str, tf.Tensor]:
        chunk, targets, states = _own(workers, chunk, targets, carried)
        features, after = model.read(chunk.ids, states)
        features = tf.boolean_mask(features, chunk.ids != PADDING)
        losses = -target_log_probabilities(model, features, targets)
        _carry(workers, carried, after)
        return cast(Mapping[str, Any], workers.summed(_sums(losses)))

    return cast(Step, eval_step)


def _signature(carried: Sequence[tf.Variable]) -> tuple[Chunk, tf.TensorSpec]:
    rows = carried[0].shape[0]
    ids = tf.TensorSpec((rows, None), tf.int32)
    return Chunk(ids, tf.TensorSpec((rows,), tf.bool)), tf.TensorSpec((None,), tf.int32)


def _own(
    workers: Workers, chunk: Chunk, targets: Any, carried: Sequence[tf.Variable]
) -> tuple[Chunk, Any, list[Any]]:
    """Return a worker's rows of a chunk, with their targets and the states with which they begin.

    At the beginning of a document the state is zero.
    """
    ids, goes_on, *before = workers.own(chunk.ids, chunk.goes_on, *carried)
    if workers.count > 1:
        rows = workers.rows(chunk.ids.shape[0])
        ends = tf.cumsum(tf.math.count_nonzero(chunk.ids, axis=1, dtype=tf.int32))  # of the targets
        ends = tf.pad(ends, [[1, 0]])
        targets = targets[ends[rows.start] : ends[rows.stop]]
    begun = goes_on[:, tf.newaxis]
    states = [tf.where(begun, state, tf.zeros_like(state)) for state in before]
    return Chunk(ids, goes_on), targets, states


def _carry(workers: Workers, carried: Sequence[tf.Variable], after: Sequence[Any]) -> None:
    """Store the states (B, U) after a chunk, of the rows of all workers."""
    for variable, state in zip(carried, after, strict=True):
        variable.assign(workers.joined(state, variable.shape[0]))


def _sums(losses: Any) -> Mapping[str, Any]:
    total = tf.reduce_sum(losses)
    return {"loss": total, "bits": total / math.log(2)}


METRIC_SHOWN = "bits"
"""The measure that is shown during training."""
_FULL_SOFTMAX_WORDS = 10_000
"""Number of tokens above which the loss is sampled by default."""
_SAMPLES = 1024


class TrainedModel(NamedTuple):
    """A model with the history of its training."""

    model: LanguageModel
    """Model with the weights of its best epoch."""
    result: FitResult
    samples: int
    """Number of tokens with which each target was compared; 0 for all."""


def sample_count(config: LanguageConfig, vocabulary_size: int) -> int:
    """Return the number of tokens with which each target is compared in training; 0 for all."""
    if config.training.sampled is not None:
        return config.training.sampled if config.training.sampled < vocabulary_size - 1 else 0
    return _SAMPLES if vocabulary_size > _FULL_SOFTMAX_WORDS else 0


def train_model(
    read: ReadDocuments,
    config: LanguageConfig,
    console: Console,
    *,
    workers: Workers | None = None,
    checkpoint: Callable[[Sequence[Any]], Checkpoint] | None = None,
    followers: Sequence[EpochFollower] = (),
) -> TrainedModel:
    """Train with Adam; the model ends with the weights of its best epoch.

    Args:
        read: The documents.
        config: Settings of the training.
        console: Console for progress.
        workers: Workers that train together; one by default. None needs the others afterwards.
        checkpoint: Function that makes the checkpoint of these variables; none is written by
            default.
        followers: Functions called after each epoch, beside the console.

    Raises:
        DivergenceError: A loss became infinite or not a number.
        CheckpointError: The checkpoint cannot be written or continued.
        LostWorkerError: Another worker has ended.
    """
    workers = workers or Workers()
    settings, size = config.training, len(read.vocabulary)
    batches = DocumentChunks(read.train.rows, settings.batch_size, settings.steps, settings.seed)
    samples = sample_count(config, size)
    model = build_language_model(config.model, size)
    # Moves only the rows of the table that a chunk uses, if these are few.
    optimizer = SparseAdam(learning_rate_schedule(settings, len(batches)))
    carried = carried_states(model, settings.batch_size)
    train_step = make_train_step(
        model,
        optimizer,
        carried,
        clip_norm=settings.clip_norm,
        samples=samples,
        seed=settings.seed,
        workers=workers,
    )
    measure = Evaluation(model, settings.batch_size, settings.steps, workers)
    validation = measure.batches(read.validation.rows)
    variables = [*model.variables, *optimizer.variables, *carried]
    with TrainingProgress(
        console, settings.epochs, len(batches), METRIC_SHOWN, ".4f", followers
    ) as progress:
        result = fit(
            model,
            train_step,
            measure.step,
            batches,
            lambda: validation,
            epochs=settings.epochs,
            patience=settings.patience,
            score=lambda means: (-means["loss"],),
            learning_rate=lambda: float(optimizer.learning_rate),
            progress=progress,
            checkpoint=checkpoint(variables) if checkpoint else None,
            workers=workers,
            variables=variables,
        )
    workers.finish()
    return TrainedModel(model, result, samples)


class Evaluation:
    """Measures a model over all tokens and without dropout.

    Args:
        model: Model to measure.
        batch_size: Documents read side by side.
        steps: Steps of a chunk.
        workers: Workers among which the rows are divided; one by default.
    """

    def __init__(
        self, model: LanguageModel, batch_size: int, steps: int, workers: Workers | None = None
    ):
        self._batch_size, self._steps = batch_size, steps
        self.step = make_eval_step(model, carried_states(model, batch_size), workers)

    def batches(self, rows: Sequence[Any]) -> DocumentChunks:
        """Batches of whole documents, in the order of length."""
        return DocumentChunks(rows, self._batch_size, self._steps)

    def nats(self, rows: Sequence[Any]) -> float:
        """Mean cost of a token, including the end of each document."""
        return evaluate(self.step, self.batches(rows))["loss"]
