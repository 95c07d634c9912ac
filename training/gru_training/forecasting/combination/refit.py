"""A combination fitted on other rows: of the same parts, with the same weights."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import keras
import numpy as np
from rich.console import Console

from gru_training.forecasting.combination.components import refitted
from gru_training.forecasting.combination.linear import LinearForecaster, repeat_last, repeat_season
from gru_training.forecasting.combination.plan import Candidate, Plan, linear_data
from gru_training.forecasting.combination.training import (
    assembled,
    chosen_networks,
    fit_networks,
)
from gru_training.forecasting.config import ForecastingConfig
from gru_training.forecasting.data import ForecastingData
from gru_training.loop.replicas import Replicas


def refit_combination(
    plan: Plan,
    weights: Sequence[float],
    epochs: int,
    console: Console,
    initial: keras.Model | None = None,
) -> keras.Model | None:
    """Fit every part of a combination on the rows that the plan's borders say.

    Args:
        plan: Of which the simple forecasters need only be of the right kind and length.
        weights: Of the networks, then of the simple forecasters.
        epochs: For which the networks are trained.
        console: Where to show progress.
        initial: Combination of the same parts, with whose networks these begin.

    Returns:
        The model, as that of `train_combination`; None where it was interrupted.
    """
    series = linear_data(plan.data)
    linear = [refitted(each.forecaster, series) for each in plan.candidates]
    networks = chosen_networks(plan, linear)
    of_networks = np.array(weights[: len(networks)])
    used = of_networks > 0
    chosen = [each for each, wanted in zip(networks, used, strict=True) if wanted]
    models: list[keras.Model] = []
    if chosen:
        training = replace(plan.config.training, epochs=epochs)
        longer = replace(plan, config=replace(plan.config, training=training))
        models, _, result = fit_networks(
            longer, chosen, Replicas(), console, last_epoch=True, initial=initial
        )
        if result.interrupted:
            return None
    kept = np.concatenate([of_networks[used], np.array(weights[len(networks) :])])
    return assembled(plan.data.shape, chosen, models, linear, kept)


def stored_plan(
    config: ForecastingConfig, combination: Mapping[str, Any], data: ForecastingData
) -> Plan:
    """The plan of a run, for `refit_combination`.

    Args:
        config: Of the run.
        combination: Of the run.
        data: With its scale and look-back.
    """
    linear = [share for share in combination["shares"] if not share["network"]]
    candidates = [Candidate(_kind(share, data), float(share["validation_mse"])) for share in linear]
    return Plan(
        config,
        data,
        tuple(candidates),
        network_lookback=int(combination["network_lookback"]),
        training_lookback=int(combination["training_lookback"]),
        networks=tuple(share["network"] for share in combination["shares"] if share["network"]),
    )


def _kind(share: Mapping[str, Any], data: ForecastingData) -> LinearForecaster:
    """A forecaster of this kind and length, which is to be fitted."""
    horizon = data.shape.horizon
    simple = repeat_last(horizon), repeat_season(data.season, horizon)
    for each in simple:
        if each.name == share["name"]:
            return each
    of_each = (len(data.shape.targets),) if share["own"] else ()
    kernel = np.zeros((*of_each, share["lookback"], horizon))
    return LinearForecaster(
        share["name"], share["detail"], kernel, share["season"], share["penalty"]
    )
