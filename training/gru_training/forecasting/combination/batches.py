"""What the networks of a combination are trained on."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from gru_training.forecasting.combination.plan import Plan
from gru_training.forecasting.network.objective import count_scale
from gru_training.forecasting.scores.forecast_errors import CHUNK
from gru_training.forecasting.windows import SeriesBatches, WindowBatches, Windows
from gru_training.loop.batches import Batch
from gru_training.loop.fit import TrainingBatches

LEAST_STEPS, MOST_STEPS = 50, 150
"""Of an epoch: below, windows are passed over again; above, only some are used."""
_SERIES_PER_WINDOW = 4
"""Rows of a batch of single series, for each window of `--batch-size`."""
_MOST_VALIDATION_ROWS = 4096


def window_batches(plan: Plan) -> tuple[TrainingBatches, Callable[[], Iterable[Batch]]]:
    """Windows of all columns together, to train on and to validate on."""
    settings, data = plan.config.training, plan.data
    windows = data.windows("train", plan.training_lookback)
    stride = settings.train_stride or max(1, len(windows) // (MOST_STEPS * settings.batch_size))
    scale = count_scale(plan.config.model.loss, data)
    batches = WindowBatches(
        windows,
        data.preprocessor,
        settings.batch_size,
        settings.seed,
        stride,
        LEAST_STEPS,
        scale,
    )
    validation = WindowBatches(compared(plan), data.preprocessor, CHUNK, scale=scale)
    return batches, validation.in_order


def series_batches(plan: Plan) -> tuple[TrainingBatches, Callable[[], Iterable[Batch]]]:
    """Windows of single columns, drawn over columns and times."""
    settings, data = plan.config.training, plan.data
    windows = data.windows("train", plan.training_lookback)
    size = _SERIES_PER_WINDOW * settings.batch_size
    pairs = len(windows) * len(data.shape.targets)
    rows = pairs // (settings.train_stride or 1)
    steps = min(MOST_STEPS, max(LEAST_STEPS, rows // size))
    scale = count_scale(plan.config.model.loss, data)
    ids = bool(plan.config.model.channel_embedding)
    parts = size, steps, settings.seed, scale, ids
    batches = SeriesBatches(windows, data.preprocessor, *parts)
    validation = SeriesBatches(
        compared(plan), data.preprocessor, size, 1, scale=scale, with_ids=ids
    )
    return batches, partial(validation.in_order, _MOST_VALIDATION_ROWS)


def compared(plan: Plan) -> Windows:
    """The validation windows, as long as training reads them."""
    return replace(plan.validation(), lookback=plan.training_lookback)
