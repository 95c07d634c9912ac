"""Training the networks of a plan, and weighing them against the simple forecasters."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from rich.console import Console

from gru_training.forecasting.combination.batches import compared, series_batches, window_batches
from gru_training.forecasting.combination.components import RIDGE
from gru_training.forecasting.combination.criterion import Criterion, criterion_of
from gru_training.forecasting.combination.linear import LinearForecaster, weighted_sum
from gru_training.forecasting.combination.model import (
    Network,
    build_networks,
    combined,
    networks_of,
    side_by_side,
)
from gru_training.forecasting.combination.plan import (
    Plan,
    independent_windows,
    measured_errors,
)
from gru_training.forecasting.combination.share import Combination, Share
from gru_training.forecasting.combination.weights import stacking_weights
from gru_training.forecasting.count_losses import COUNT_LOSSES
from gru_training.forecasting.losses import forecast_loss
from gru_training.forecasting.network.config import ForecastShape
from gru_training.forecasting.network.objective import compared_steps, objective_of
from gru_training.forecasting.network.training import train_network
from gru_training.forecasting.predictor import make_predictor
from gru_training.forecasting.scores.conformal import MEDIAN
from gru_training.forecasting.scores.forecast_errors import CHUNK
from gru_training.forecasting.windows import Windows
from gru_training.loop.checkpoint import Checkpoint
from gru_training.loop.fit import FitResult, Progress
from gru_training.loop.replicas import Replicas
from gru_training.loop.train import Objective, train
from gru_training.runs.writer import TrainingRunWriter


def train_plan(
    plan: Plan,
    replicas: Replicas,
    writer: TrainingRunWriter | None,
    console: Console,
    followers: Sequence[Progress] = (),
) -> Combination:
    """Train what a plan says: a combination, or a network that stands alone and has no shares.

    Args:
        plan: What to train.
        replicas: Of the networks.
        writer: Keeps checkpoints.
        console: Where to show progress.
        followers: Told of steps and epochs, beside the console.
    """
    if plan.combines:
        return train_combination(plan, replicas, writer, console, followers)
    model, result = train_network(
        plan.data,
        plan.config,
        replicas,
        writer,
        console,
        initial=plan.initial,
        followers=followers,
    )
    best = next(each for each in result.epochs if each.epoch == result.best_epoch)
    return Combination(model, result, (), best.validation)


def train_combination(
    plan: Plan,
    replicas: Replicas,
    writer: TrainingRunWriter | None,
    console: Console,
    followers: Sequence[Progress] = (),
) -> Combination:
    """Train the networks of a plan and combine them with its simple forecasters."""
    checkpoint = None  # of several replicas each would have random numbers of its own to keep
    if writer is not None and replicas.count == 1:
        checkpoint = partial(writer.checkpoint, data=plan.data.digest)
    linear = [each.forecaster for each in plan.candidates]
    networks = chosen_networks(plan, linear)
    models, joined, result = fit_networks(
        plan, networks, replicas, console, checkpoint, initial=plan.initial, followers=followers
    )
    weights, errors, criterion = _weigh(plan, linear, joined)
    each_mse = (errors**2).mean(axis=0).tolist()
    each_loss = [criterion.loss(of_one) for of_one in errors.T]
    shares = [
        Share(
            each.name,
            _network_detail(plan, each),
            float(w),
            mse,
            loss,
            each.model,
            each.residual_of is not None,
        )
        for each, w, mse, loss in zip(networks, weights, each_mse, each_loss, strict=False)
    ]
    count = len(networks)
    shares += [
        Share(
            each.name,
            each.detail,
            float(w),
            mse,
            loss,
            lookback=each.lookback,
            season=each.season,
            penalty=each.penalty,
            own=each.own,
        )
        for each, w, mse, loss in zip(
            linear, weights[count:], each_mse[count:], each_loss[count:], strict=True
        )
    ]
    model = assembled(plan.data.shape, networks, models, linear, weights)
    joint = errors @ weights
    validation = {"mse": float((joint**2).mean()), "mae": float(np.abs(joint).mean())}
    return Combination(model, result, tuple(shares), validation, criterion.name)


def chosen_networks(plan: Plan, linear: Sequence[LinearForecaster]) -> tuple[Network, ...]:
    """The networks of a plan, over the ridge regression among these."""
    ridge = next(each for each in linear if each.name == RIDGE)
    found = networks_of(plan.config.model, ridge, plan.config.combination.networks)
    if plan.networks is None:
        return found
    return tuple(each for each in found if each.model in plan.networks)


def fit_networks(
    plan: Plan,
    networks: Sequence[Network],
    replicas: Replicas,
    console: Console,
    checkpoint: Callable[[Sequence[Any]], Checkpoint] | None = None,
    last_epoch: bool = False,
    initial: keras.Model | None = None,
    followers: Sequence[Progress] = (),
) -> tuple[list[keras.Model], keras.Model, FitResult]:
    """The trained networks, all of them side by side, and how it went.

    Args:
        plan: What to train on.
        networks: Which.
        replicas: Of the networks.
        console: Where to show progress.
        checkpoint: Makes what keeps checkpoints.
        last_epoch: Keep the last epoch in place of the one that validates best.
        initial: Combination whose networks these begin with; one that it does not hold begins with
            weights that are drawn.
        followers: Told of steps and epochs, beside the console.
    """
    config, data, settings = plan.config, plan.data, plan.config.training
    keras.utils.set_random_seed(settings.seed)
    shape = replace(data.shape, lookback=plan.network_lookback)
    told_apart = bool(config.model.channel_embedding)
    pooled = len(shape.targets) > 1 and config.model.channel_independent
    pooled &= not told_apart or data.series.panel
    ids = len(shape.targets) if pooled and told_apart else None
    learnt = shape
    if pooled:
        learnt = ForecastShape(shape.lookback, shape.horizon, 1 if ids is None else 2, (0,))
    batches, validation = (series_batches if pooled else window_batches)(plan)
    with replicas.scope():
        models = build_networks(networks, learnt, config.model.levels, ids)
        joined = side_by_side(networks, models, replace(learnt, lookback=plan.training_lookback))
    held = {} if initial is None else {layer.name: layer for layer in initial.layers}
    for each, model in zip(networks, models, strict=True):
        if each.model in held:
            model.set_weights(held[each.model].get_weights())
    result = train(
        joined,
        batches,
        validation,
        _objective(plan, last_epoch),
        settings,
        signature=(
            tf.TensorSpec((None, plan.training_lookback, learnt.channels), tf.float32),
            tf.TensorSpec(
                (None, compared_steps(config.model.loss, shape), len(learnt.targets)), tf.float32
            ),
        ),
        console=console,
        checkpoint=checkpoint,
        replicas=replicas,
        followers=followers,
    )
    if pooled:
        single = models
        models = build_networks(networks, shape, config.model.levels, ids)
        for each, of_one in zip(models, single, strict=True):
            each.set_weights(of_one.get_weights())
        joined = side_by_side(networks, models, replace(shape, lookback=plan.training_lookback))
    return models, joined, result


def _objective(plan: Plan, last_epoch: bool) -> Objective:
    epochs = itertools.count()
    loss = plan.config.model.loss
    levels = plan.config.model.levels
    minimised, measures = objective_of(loss, levels, plan.data)
    if loss not in ("quantile", *COUNT_LOSSES):  # several networks side by side: their mean
        measures = {"mse": forecast_loss("mse", levels), "mae": forecast_loss("mae", levels)}
    return Objective(
        minimised,
        measures,
        score=lambda means: (next(epochs) if last_epoch else -means["loss"],),
        shown="mse",
        style=".4f",
    )


def _weigh(
    plan: Plan, linear: Sequence[LinearForecaster], joined: keras.Model
) -> tuple[np.ndarray, np.ndarray, Criterion]:
    """The weights of networks and simple forecasters, their errors (n, M), and what is least."""
    data, windows = plan.data, compared(plan)
    answers = _forecasts(joined, windows, data.preprocessor)  # (N, H, K, M)
    if plan.config.model.loss == "quantile":
        answers = answers[..., [plan.config.model.levels.index(MEDIAN)]]
    whole = plan.validation().histories()
    read = np.asarray(data.preprocessor.standardise(whole))[..., list(data.shape.targets)]
    forecasts = [
        *np.moveaxis(answers, -1, 0),
        *(each(read.astype(np.float64)) for each in linear),
    ]
    errors = measured_errors(forecasts, windows, data)
    criterion = criterion_of(plan.config.model.loss, data, windows)
    weights = stacking_weights(errors, independent_windows(data), criterion)
    return weights, errors, criterion


def validation_errors(plan: Plan, model: keras.Model) -> np.ndarray:
    """(n,) forecast minus truth on the validation windows, in order, where there is a truth."""
    answers = _forecasts(model, plan.validation(), plan.data.preprocessor)  # (N, H, K, Q or 1)
    # A combination delivers its median alone.
    level = plan.config.model.levels.index(MEDIAN) if answers.shape[-1] > 1 else 0
    return measured_errors([answers[..., level]], compared(plan), plan.data)[:, 0]


def assembled(
    shape: ForecastShape,
    networks: Sequence[Network],
    models: Sequence[keras.Model],
    linear: Sequence[LinearForecaster],
    weights: np.ndarray,
) -> keras.Model:
    """The parts that have a weight, as one model."""
    summed = [*zip(linear, weights[len(networks) :].tolist(), strict=True)]
    summed += [
        (each.residual_of, float(weight))
        for each, weight in zip(networks, weights, strict=False)
        if each.residual_of is not None
    ]
    summed = [(forecaster, weight) for forecaster, weight in summed if weight > 0]
    kernel, share = None, 0.0
    if summed:
        kernel = weighted_sum([each for each, _ in summed], np.array([w for _, w in summed]))
        share = float(sum(weight for _, weight in summed))
    used = [(model, float(w)) for model, w in zip(models, weights, strict=False) if w > 0]
    return combined(shape, used, kernel, share)


def _network_detail(plan: Plan, network: Network) -> str:
    config = network.config
    reads = f"{config.architecture}, look-back {plan.network_lookback}"
    return f"{reads}, segments of {config.segment}" if config.architecture == "segment" else reads


def _forecasts(model: keras.Model, windows: Windows, preprocessor: Any) -> np.ndarray:
    predict = make_predictor(model, preprocessor)
    return np.concatenate([predict(windows.histories(rows)) for rows in windows.chunks(CHUNK)])
