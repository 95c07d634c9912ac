"""Training a language model, with nothing written."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rich.console import Console

from gru_training.language.batches import DocumentChunks
from gru_training.language.config import LanguageConfig
from gru_training.language.network.average import MovingAverage
from gru_training.language.network.model import LanguageModel, build_language_model
from gru_training.language.network.steps import carried_states, make_eval_step, make_train_step
from gru_training.language.reading import ReadDocuments
from gru_training.loop.checkpoint import Checkpoint
from gru_training.loop.evaluation import evaluate
from gru_training.loop.fit import FitResult, Progress, fit
from gru_training.loop.learning_rate import learning_rate_schedule
from gru_training.loop.progress import ProgressGroup, TrainingProgress
from gru_training.loop.sparse_adam import SparseAdam

SHOWN = "bits"
"""The measure that is shown while training."""
_LARGE = 10_000
"""More tokens than this are sampled by default."""
_SAMPLES = 1024


class TrainedModel(NamedTuple):
    """A model, and how it was trained."""

    model: LanguageModel
    """With the weights of its best epoch."""
    result: FitResult
    samples: int
    """Tokens that each target was compared with; 0 for all."""


def sample_count(config: LanguageConfig, vocabulary_size: int) -> int:
    """Tokens that each target is compared with while training; 0 for all."""
    if config.training.sampled is not None:
        return config.training.sampled if config.training.sampled < vocabulary_size - 1 else 0
    return _SAMPLES if vocabulary_size > _LARGE else 0


def train_model(
    read: ReadDocuments,
    config: LanguageConfig,
    console: Console,
    *,
    checkpoint: Callable[[Sequence[Any]], Checkpoint] | None = None,
    followers: Sequence[Progress] = (),
) -> TrainedModel:
    """Train with Adam; the model keeps its best epoch.

    Args:
        read: The documents.
        config: Every setting.
        console: Where to show progress.
        checkpoint: Makes the checkpoint of these variables; none is written by default.
        followers: Told of steps and epochs, beside the console; may end the training by an error.

    Raises:
        DivergenceError: A loss became infinite or not a number.
        CheckpointError: The checkpoint cannot be written or continued.
    """
    settings, size = config.training, len(read.vocabulary)
    batches = DocumentChunks(read.train.rows, settings.batch_size, settings.steps, settings.seed)
    samples = sample_count(config, size)
    model = build_language_model(config.model, size)
    delivered, average = model, None
    if settings.average:
        delivered = build_language_model(config.model, size)
        average = MovingAverage(model, delivered, settings.average)
    optimizer = make_optimizer(config, len(batches))
    carried = carried_states(model, settings.batch_size)
    train_step = make_train_step(
        model,
        optimizer,
        carried,
        clip_norm=settings.clip_norm,
        samples=samples,
        seed=settings.seed,
        average=average,
    )
    measure = Evaluation(delivered, settings.batch_size, settings.steps)
    validation = measure.batches(read.validation.rows)
    variables = [*model.variables, *optimizer.variables, *carried]
    if delivered is not model:
        variables += delivered.variables
    with TrainingProgress(console, settings.epochs, len(batches), SHOWN, ".4f") as progress:
        result = fit(
            delivered,
            train_step,
            measure.step,
            batches,
            lambda: validation,
            epochs=settings.epochs,
            patience=settings.patience,
            score=lambda means: (-means["loss"],),
            learning_rate=lambda: float(optimizer.learning_rate),
            progress=ProgressGroup((progress, *followers)),
            checkpoint=checkpoint(variables) if checkpoint else None,
        )
    return TrainedModel(delivered, result, samples)


def make_optimizer(config: LanguageConfig, steps: int) -> SparseAdam:
    """Adam that moves only the rows of the table that a chunk has used, where it uses few.

    Args:
        config: Every setting.
        steps: Of an epoch.
    """
    settings = config.training
    optimizer = SparseAdam(
        learning_rate_schedule(settings, steps), weight_decay=settings.weight_decay or None
    )
    if settings.weight_decay:
        optimizer.exclude_from_weight_decay(var_names=["embedding", "bias"])
    return optimizer


class Evaluation:
    """Measures a model over all tokens and without dropout.

    Args:
        model: To measure.
        batch_size: Documents read side by side.
        steps: Steps of a chunk.
    """

    def __init__(self, model: LanguageModel, batch_size: int, steps: int):
        self._batch_size, self._steps = batch_size, steps
        self.step = make_eval_step(model, carried_states(model, batch_size))

    def batches(self, rows: Sequence[Any]) -> DocumentChunks:
        """Documents as the step reads them, whole and in the order of length."""
        return DocumentChunks(rows, self._batch_size, self._steps)

    def nats(self, rows: Sequence[Any]) -> float:
        """Mean of what each token costs, the end of each document among them."""
        return evaluate(self.step, self.batches(rows))["loss"]
