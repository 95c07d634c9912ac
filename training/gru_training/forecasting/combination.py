"""The delivered forecast: a weighted mean of networks and of simple forecasters.

The networks are trained side by side, weighed against the simple forecasters on validation windows,
and joined with them in one Keras model. For deliveries and backtests the parts are refitted on
other rows, with the same weights. A network may also be used alone.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from keras import ops
from rich.console import Console

from gru_serving.preprocessing.series import MEDIAN
from gru_training.forecasting.config import ForecasterConfig, ForecastingConfig, ForecastShape
from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.layers import TensorSum, WindowLinear
from gru_training.forecasting.linear import (
    RIDGE,
    LinearForecaster,
    refitted,
    repeat_last,
    repeat_season,
    weighted_sum,
)
from gru_training.forecasting.losses import (
    COUNT_LOSSES,
    Criterion,
    compared_steps,
    count_scale,
    criterion_of,
    forecast_loss,
    objective_of,
)
from gru_training.forecasting.network import build_forecaster, initialise_linear
from gru_training.forecasting.plan import (
    InitialWeights,
    Plan,
    few_windows,
    independent_windows,
    linear_data,
    measured_errors,
    networks_count,
    stacking_weights,
)
from gru_training.forecasting.preprocessor import make_predictor
from gru_training.forecasting.simple import ridge_of
from gru_training.forecasting.windows import SeriesBatches, WindowBatches, Windows
from gru_training.loop.batches import Batch
from gru_training.loop.checkpoint import Checkpoint
from gru_training.loop.fit import EpochFollower, FitResult, TrainingBatches
from gru_training.loop.train import Objective, train
from gru_training.loop.workers import Workers

LEAST_STEPS, MOST_STEPS = 50, 150
"""Fewest and most steps of an epoch: with fewer, the windows are repeated; with more, only some are
used.
"""
_SERIES_PER_WINDOW = 4
"""Rows of a batch of single series per window of `batch_size`."""
_MOST_VALIDATION_ROWS = 4096
_CONTINUED_EPOCHS, _CONTINUED_RATE = 0.5, 0.3
"""Shares of the epochs and of the learning rate with which trained networks learn further rows."""

MakeCheckpoint = Callable[[Sequence[Any]], Checkpoint]
"""Function that makes the checkpoint keeper for given variables."""


@dataclass(frozen=True)
class Share:
    """A part of the delivered forecast."""

    name: str
    detail: str
    weight: float
    validation_mse: float
    validation_loss: float
    """Loss that the weights minimise, `Trained.criterion`."""
    network: str | None = None
    """Name of the network's model within the delivered one; None for a linear part."""
    residual: bool = False
    """Whether the network adds to the ridge regression."""
    lookback: int = 0
    """Steps that a linear part reads, as in `LinearForecaster`, like the next three fields."""
    season: int = 1
    penalty: float = 0.0
    own: bool = False


@dataclass(frozen=True)
class Trained:
    """Result of a training: a combination, or a network alone, which has no shares."""

    model: keras.Model
    """Model from standardised windows (B, L, C) to forecasts (B, H, K, Q or 1)."""
    result: FitResult
    """Epochs and best epoch of the networks' training."""
    shares: tuple[Share, ...] = ()
    """Parts of the combination, including those without weight: networks, then simple
    forecasters.
    """
    criterion: str = ""
    """Name of the loss that the weights minimise, for display."""

    @property
    def weights(self) -> list[float]:
        """The weights of the shares."""
        return [share.weight for share in self.shares]


def as_record(plan: Plan, trained: Trained) -> dict[str, Any]:
    """Describe a combination for `combination.json`."""
    return {
        "network_lookback": plan.network_lookback,
        "training_lookback": plan.training_lookback,
        "criterion": trained.criterion,
        "deliver": plan.config.combination.deliver,
        "few_windows": few_windows(plan.data),
        "earlier_windows": 0 if plan.earlier is None else len(plan.earlier[0]),
        "shares": [asdict(share) for share in trained.shares],
        "transforms": dict(plan.transforms),
    }


def stored_plan(
    config: ForecastingConfig, combination: Mapping[str, Any] | None, data: ForecastingData
) -> tuple[Plan, list[float]]:
    """Return plan and weights of a run, for `refit`.

    Args:
        config: Settings of the run.
        combination: Content of its `combination.json`; None: a network stands alone.
        data: Series with the scale and the look-back of the run.
    """
    initial = InitialWeights(config)
    if combination is None:
        steps = data.shape.lookback
        return Plan(config, data, initial, network_lookback=steps, training_lookback=steps), []
    shares = combination["shares"]
    plan = Plan(
        config,
        data,
        initial,
        tuple(_unfitted(share, data) for share in shares if not share["network"]),
        network_lookback=int(combination["network_lookback"]),
        training_lookback=int(combination["training_lookback"]),
        networks=tuple(share["network"] for share in shares if share["network"]),
    )
    return plan, [float(share["weight"]) for share in shares]


def _unfitted(share: Mapping[str, Any], data: ForecastingData) -> LinearForecaster:
    """Make an unfitted forecaster of the kind and length of a share."""
    horizon = data.shape.horizon
    for each in repeat_last(horizon), repeat_season(data.season, horizon):
        if each.name == share["name"]:
            return each
    of_each = (len(data.shape.targets),) if share["own"] else ()
    kernel = np.zeros((*of_each, share["lookback"], horizon))
    return LinearForecaster(
        share["name"], share["detail"], kernel, share["season"], share["penalty"]
    )


def train_plan(
    plan: Plan,
    console: Console,
    workers: Workers | None = None,
    checkpoint: MakeCheckpoint | None = None,
    followers: Sequence[EpochFollower] = (),
) -> Trained:
    """Train the networks of a plan, and weigh them against its simple forecasters.

    Args:
        plan: Plan of the training.
        console: Console that shows progress.
        workers: Workers that train together; one by default.
        checkpoint: Function that makes the keeper of checkpoints; none are kept by default.
        followers: Functions called after each epoch, beside the console.
    """
    how = workers, checkpoint, followers
    if not plan.combines:
        return Trained(*fit_alone(plan, console, *how, initial=plan.initial.model))
    linear = list(plan.candidates)
    networks = chosen_networks(plan, linear)
    models, joined, result = fit_networks(plan, networks, console, *how, initial=plan.initial.model)
    weights, errors, criterion = _weigh(plan, linear, joined)
    model = assembled(plan.data.shape, networks, models, linear, weights)
    shares = _shares(plan, networks, linear, weights, errors, criterion)
    return Trained(model, result, shares, criterion.name)


def continued_epochs(epochs: int) -> int:
    """Return how many epochs trained networks need on further rows.

    Args:
        epochs: Number of epochs of the training before.
    """
    return math.ceil(_CONTINUED_EPOCHS * epochs)


def refit(
    plan: Plan,
    weights: Sequence[float],
    epochs: int,
    console: Console,
    initial: keras.Model | None = None,
    workers: Workers | None = None,
) -> keras.Model | None:
    """Refit every part of a model on the rows within the plan's borders, with the same weights.

    Args:
        plan: Plan of which the simple forecasters need only be of the right kind and length.
        weights: Weights of the networks, then of the simple forecasters.
        epochs: Epochs for which the networks are trained.
        console: Console that shows progress.
        initial: Model of the same parts, whose networks are trained further, at a lower rate.
        workers: Workers that train together, with the same weights; one by default.

    Returns:
        Model like that of `train_plan`; None if it was interrupted.
    """
    training = replace(plan.config.training, epochs=epochs)
    if initial is not None:
        training = replace(training, learning_rate=_CONTINUED_RATE * training.learning_rate)
    plan = replace(plan, config=replace(plan.config, training=training))
    if not plan.combines:
        model, result = fit_alone(plan, console, workers, last_epoch=True, initial=initial)
        return None if result.interrupted else model
    series = linear_data(plan.data)
    linear = [refitted(each, series) for each in plan.candidates]
    networks = chosen_networks(plan, linear)
    of_networks = np.array(weights[: len(networks)])
    used = of_networks > 0
    chosen = [each for each, wanted in zip(networks, used, strict=True) if wanted]
    models: list[keras.Model] = []
    if chosen:
        models, _, result = fit_networks(
            plan, chosen, console, workers, last_epoch=True, initial=initial
        )
        if result.interrupted:
            return None
    kept = np.concatenate([of_networks[used], np.array(weights[len(networks) :])])
    return assembled(plan.data.shape, chosen, models, linear, kept)


class Network(NamedTuple):
    """A network to train."""

    name: str
    """Name for display."""
    model: str
    """Name of the network's model within the delivered one."""
    config: ForecasterConfig
    residual_of: LinearForecaster | None
    """Forecaster whose errors the network learns; None if the network forecasts alone."""


def chosen_networks(plan: Plan, linear: Sequence[LinearForecaster]) -> tuple[Network, ...]:
    """List the networks of a plan: alone, and on its ridge regression."""
    config, count = plan.config.model, plan.config.combination.networks
    ridge = next(each for each in linear if each.name == RIDGE)
    plain = replace(config, linear_skip=False)
    kinds: list[tuple[str, LinearForecaster | None]] = [("GRU", None), ("GRU on ridge", ridge)]
    if config.linear_skip:
        kinds = kinds[1:]
    if config.loss == "quantile":
        kinds, count = kinds[:1], 1
    found = list[Network]()
    for name, residual_of in kinds:
        for number in range(1, count + 1):
            called = name if count == 1 else f"{name}, {number}"
            found.append(Network(called, f"network_{len(found) + 1}", plain, residual_of))
    return tuple(each for each in found if plan.networks is None or each.model in plan.networks)


def fit_networks(
    plan: Plan,
    networks: Sequence[Network],
    console: Console,
    workers: Workers | None = None,
    checkpoint: MakeCheckpoint | None = None,
    followers: Sequence[EpochFollower] = (),
    last_epoch: bool = False,
    initial: keras.Model | None = None,
) -> tuple[list[keras.Model], keras.Model, FitResult]:
    """Train networks side by side.

    Args:
        plan: Plan of the training.
        networks: Networks to train.
        console: Console that shows progress.
        workers: Workers that train together; one by default.
        checkpoint: Function that makes the keeper of checkpoints.
        followers: Functions called after each epoch, beside the console.
        last_epoch: Whether to keep the last epoch in place of the one that validates best.
        initial: Combination whose networks these begin with; one that it does not hold begins with
            weights that are drawn.

    Returns:
        Trained networks side by side, and the history of their training.
    """
    config = plan.config
    keras.utils.set_random_seed(config.training.seed)
    shape = replace(plan.data.shape, lookback=plan.network_lookback)
    learnt, ids = _learnt(plan, shape)
    rows = window_batches(plan) if learnt == shape else series_batches(plan)
    models = build_networks(networks, learnt, config.model.levels, ids)
    joined = side_by_side(networks, models, replace(learnt, lookback=plan.training_lookback))
    held = {} if initial is None else {layer.name: layer for layer in initial.layers}
    for each, model in zip(networks, models, strict=True):
        if each.model in held:
            model.set_weights(held[each.model].get_weights())
    result = _train(plan, joined, rows, console, workers, checkpoint, followers, last_epoch)
    if learnt == shape:
        return models, joined, result
    whole = build_networks(networks, shape, config.model.levels, ids)
    for model, of_one in zip(whole, models, strict=True):
        model.set_weights(of_one.get_weights())
    joined = side_by_side(networks, whole, replace(shape, lookback=plan.training_lookback))
    return whole, joined, result


def fit_alone(
    plan: Plan,
    console: Console,
    workers: Workers | None = None,
    checkpoint: MakeCheckpoint | None = None,
    followers: Sequence[EpochFollower] = (),
    last_epoch: bool = False,
    initial: keras.Model | None = None,
) -> tuple[keras.Model, FitResult]:
    """Train the network of a plan without a combination, on windows of all columns.

    Args:
        plan: Plan of the training.
        console: Console that shows progress.
        workers: Workers that train together; one by default.
        checkpoint: Function that makes the keeper of checkpoints.
        followers: Functions called after each epoch, beside the console.
        last_epoch: Whether to keep the last epoch in place of the one that validates best.
        initial: Model of the same settings, with whose weights it begins; drawn by default.

    Returns:
        Network from standardised windows (B, L, C) to (B, H, K, Q or 1), and the history of its
        training.
    """
    data, config = plan.data, plan.config
    settings, scale = config.training, count_scale(config.model.loss, data)
    keras.utils.set_random_seed(settings.seed)
    training = WindowBatches(
        data.windows("train"),
        data.preprocessor,
        settings.batch_size,
        settings.seed,
        settings.train_stride or 1,
        scale=scale,
    )
    windows = data.windows("validation")
    validation = WindowBatches(windows, data.preprocessor, windows.at_once, scale=scale)
    model = build_forecaster(config.model, data.shape, config.model.levels)
    if config.model.linear_skip:
        ridge = ridge_of(data, data.shape.lookback, data.borders.trained)
        initialise_linear(model, ridge.kernel)
    if initial is not None:
        model.set_weights(initial.get_weights())
    rows = training, validation.in_order
    result = _train(plan, model, rows, console, workers, checkpoint, followers, last_epoch)
    return model, result


Rows = tuple[TrainingBatches, Callable[[], Iterable[Batch]]]
"""Training batches, and a function that returns the validation batches."""


def _train(
    plan: Plan,
    model: keras.Model,
    rows: Rows,
    console: Console,
    workers: Workers | None,
    checkpoint: MakeCheckpoint | None,
    followers: Sequence[EpochFollower],
    last_epoch: bool,
) -> FitResult:
    """Minimise the loss of the settings."""
    loss, levels = plan.config.model.loss, plan.config.model.levels
    minimised, measures = objective_of(loss, levels, plan.data)
    if loss not in ("quantile", *COUNT_LOSSES):  # several networks side by side: their mean
        measures = {"mse": forecast_loss("mse", levels), "mae": forecast_loss("mae", levels)}
    epochs = itertools.count()
    steps = compared_steps(loss, plan.data.shape)
    return train(
        model,
        *rows,
        Objective(
            minimised,
            measures,
            score=lambda means: (next(epochs) if last_epoch else -means["loss"],),
            shown="mse",
            style=".4f",
        ),
        plan.config.training,
        signature=(
            tf.TensorSpec((None, *model.input_shape[1:]), tf.float32),
            tf.TensorSpec((None, steps, model.output_shape[2]), tf.float32),
        ),
        console=console,
        checkpoint=checkpoint,
        workers=workers,
        followers=followers,
    )


def _learnt(plan: Plan, shape: ForecastShape) -> tuple[ForecastShape, int | None]:
    """Choose what networks learn from: windows of single columns if these are alike, or of all.

    Returns:
        Shape of a window, and the number of columns that networks know by number.
    """
    config, targets = plan.config.model, len(shape.targets)
    told_apart = bool(config.channel_embedding)
    alike = not told_apart or plan.data.series.panel
    if targets < 2 or not config.channel_independent or not alike:
        return shape, None
    ids = targets if told_apart else None
    return ForecastShape(shape.lookback, shape.horizon, 1 if ids is None else 2, (0,)), ids


def window_batches(plan: Plan) -> Rows:
    """Make batches of windows of all columns together."""
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
    held_out = compared(plan)
    validation = WindowBatches(held_out, data.preprocessor, held_out.at_once, scale=scale)
    return batches, validation.in_order


def series_batches(plan: Plan) -> Rows:
    """Make batches of windows of single columns, drawn over columns and times."""
    settings, data = plan.config.training, plan.data
    windows = data.windows("train", plan.training_lookback)
    size = _SERIES_PER_WINDOW * settings.batch_size
    pairs = len(windows) * len(data.shape.targets)
    rows = pairs // (settings.train_stride or 1)
    steps = min(MOST_STEPS, max(LEAST_STEPS, rows // size))
    scale = count_scale(plan.config.model.loss, data)
    ids = bool(plan.config.model.channel_embedding)
    batches = SeriesBatches(windows, data.preprocessor, size, steps, settings.seed, scale, ids)
    validation = SeriesBatches(
        compared(plan), data.preprocessor, size, 1, scale=scale, with_ids=ids
    )
    return batches, partial(validation.in_order, _MOST_VALIDATION_ROWS)


def compared(plan: Plan) -> Windows:
    """Return the validation windows in the length that training reads."""
    return replace(plan.validation(), lookback=plan.training_lookback)


def _weigh(
    plan: Plan, linear: Sequence[LinearForecaster], joined: keras.Model
) -> tuple[np.ndarray, np.ndarray, Criterion]:
    """Weigh networks and simple forecasters; returns weights, errors (n, M), and the least loss."""
    data, windows = plan.data, compared(plan)
    answers = _forecasts(joined, windows, data)  # (N, H, K, M)
    if plan.config.model.loss == "quantile":
        answers = answers[..., [plan.config.model.levels.index(MEDIAN)]]
    whole = plan.validation().histories()
    read = np.asarray(data.preprocessor.standardise(whole))[..., list(data.shape.targets)]
    forecasts = [
        *np.moveaxis(answers, -1, 0),
        *(each(read.astype(np.float64)) for each in linear),
    ]
    errors = measured_errors(forecasts, windows, data)
    criterion, independent = (
        criterion_of(plan.config.model.loss, data, windows),
        independent_windows(data),
    )
    alone, networks = np.array(plan.weights), answers.shape[-1]
    deliver = plan.config.combination.deliver
    if deliver == "network":
        only = stacking_weights(errors[:, :networks], independent, criterion)
        return np.append(only, np.zeros(len(alone))), errors, criterion
    if not networks_count(data, plan.config):
        return np.append(np.zeros(networks), alone), errors, criterion
    if plan.folds == 1:
        return stacking_weights(errors, independent, criterion), errors, criterion
    # Simple forecasters are weighed by more windows than these, and stay as they are to each other.
    both = np.column_stack([errors[:, :networks], errors[:, networks:] @ alone])
    weights = stacking_weights(both, independent, criterion)
    return np.append(weights[:-1], weights[-1] * alone), errors, criterion


def _shares(
    plan: Plan,
    networks: Sequence[Network],
    linear: Sequence[LinearForecaster],
    weights: np.ndarray,
    errors: np.ndarray,
    criterion: Criterion,
) -> tuple[Share, ...]:
    """List each part with its weight and its errors, the columns of (n, M)."""
    parts: list[dict[str, Any]] = [
        {
            "name": each.name,
            "detail": _network_detail(plan, each),
            "network": each.model,
            "residual": each.residual_of is not None,
        }
        for each in networks
    ]
    kept = "name", "detail", "lookback", "season", "penalty", "own"
    parts += [{name: getattr(each, name) for name in kept} for each in linear]
    measured = zip(weights.tolist(), (errors**2).mean(axis=0).tolist(), errors.T, strict=True)
    return tuple(
        Share(
            weight=weight,
            validation_mse=mse,
            validation_loss=criterion.loss(of_part),
            **part,
        )
        for part, (weight, mse, of_part) in zip(parts, measured, strict=True)
    )


def _network_detail(plan: Plan, network: Network) -> str:
    config = network.config
    reads = f"{config.architecture}, look-back {plan.network_lookback}"
    return f"{reads}, segments of {config.segment}" if config.architecture == "segment" else reads


def validation_errors(plan: Plan, model: keras.Model) -> np.ndarray:
    """Compute forecast minus truth (n,) on the validation windows, wherever the truth is known."""
    answers = _forecasts(model, plan.validation(), plan.data)  # (N, H, K, Q or 1)
    # A combination delivers only its median.
    level = plan.config.model.levels.index(MEDIAN) if answers.shape[-1] > 1 else 0
    return measured_errors([answers[..., level]], plan.validation(), plan.data)[:, 0]


def _forecasts(model: keras.Model, windows: Windows, data: ForecastingData) -> np.ndarray:
    predict = make_predictor(model, data.preprocessor)
    return np.concatenate([predict(windows.histories(rows)) for rows in windows.chunks()])


def build_networks(
    networks: Sequence[Network],
    shape: ForecastShape,
    levels: Sequence[float],
    ids: int | None = None,
) -> list[keras.Model]:
    """Build a model of each network: from standardised windows to its forecast or its addition.

    Args:
        networks: Networks to build.
        shape: Shape of the windows of all.
        levels: Levels of the quantiles.
        ids: Number of known columns, as in `build_forecaster`.
    """
    return [
        build_forecaster(each.config, shape, levels, each.residual_of is not None, each.model, ids)
        for each in networks
    ]


def side_by_side(
    networks: Sequence[Network], models: Sequence[keras.Model], shape: ForecastShape
) -> keras.Model:
    """Build all networks on one window, for training: (B, L, C) to (B, H, K, M), M forecasts.

    They share no weight, so each learns as if it were alone, except for the clipping.

    Args:
        networks: Networks to build.
        models: Models of `build_networks`, which may read less.
        shape: Shape with the L of the longest, regressions under networks included.
    """
    history = keras.Input((shape.lookback, shape.channels), dtype="float32", name="history")
    answers = []
    for number, (each, model) in enumerate(zip(networks, models, strict=True), start=1):
        answer = model(history[:, -model.input_shape[1] :])
        if each.residual_of is not None:
            linear = _linear(each.residual_of.kernel, 1.0, shape, f"linear_{number}")
            answer = TensorSum(name=f"sum_{number}")(answer, linear(history))
        answers.append(answer)
    joined = answers[0] if len(answers) == 1 else ops.concatenate(answers, axis=-1)
    return keras.Model(history, joined, name="networks")


def assembled(
    shape: ForecastShape,
    networks: Sequence[Network],
    models: Sequence[keras.Model],
    linear: Sequence[LinearForecaster],
    weights: np.ndarray,
) -> keras.Model:
    """Assemble the parts that have a weight as one model."""
    of_networks = list(zip(networks, weights[: len(networks)].tolist(), strict=True))
    summed = [*zip(linear, weights[len(networks) :].tolist(), strict=True)]
    summed += [(each.residual_of, w) for each, w in of_networks if each.residual_of is not None]
    summed = [(forecaster, weight) for forecaster, weight in summed if weight > 0]
    kernel, share = None, 0.0
    if summed:
        kernel = weighted_sum([each for each, _ in summed], np.array([w for _, w in summed]))
        share = float(sum(weight for _, weight in summed))
    used = [(model, w) for model, (_, w) in zip(models, of_networks, strict=True) if w > 0]
    return combined(shape, used, kernel, share)


def combined(
    shape: ForecastShape,
    networks: Sequence[tuple[keras.Model, float]],
    kernel: np.ndarray | None,
    share: float,
) -> keras.Model:
    """Build the weighted sum as one model, from `history` (B, L, C) to (B, H, K, Q or 1).

    Args:
        shape: Shape of the model.
        networks: Networks, each with its weight.
        kernel: (L', H) or (K, L', H), the weighted sum of what is linear; None: nothing is.
        share: The weight of all that is linear together.
    """
    history = keras.Input((shape.lookback, shape.channels), dtype="float32", name="history")
    parts = [model(history[:, -model.input_shape[1] :]) * weight for model, weight in networks]
    if kernel is not None:
        parts.append(_linear(kernel, share, shape, "linear")(history))
    answers = parts[0]
    for number, part in enumerate(parts[1:], start=1):
        answers = TensorSum(name=f"sum_{number}")(answers, part)
    return keras.Model(history, answers, name="combination")


def _linear(kernel: np.ndarray, share: float, shape: ForecastShape, name: str) -> WindowLinear:
    lookback, horizon = kernel.shape[-2:]
    layer = WindowLinear(lookback, horizon, shape.targets, kernel.ndim == 3, share, name=name)
    layer.build((None, shape.lookback, shape.channels))
    layer.set_weights([kernel])
    return layer
