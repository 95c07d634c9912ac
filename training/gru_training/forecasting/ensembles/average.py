"""The average of combinations, which is a combination itself: of all their networks.

What is linear in them adds up to one matrix. So an average is what a run with as many networks of
each kind would be, and is exported, forecasts and is tested again as such a run is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import keras
import numpy as np

from gru_training.forecasting.combination.linear import LinearForecaster, weighted_sum
from gru_training.forecasting.combination.model import combined
from gru_training.forecasting.combination.share import Share
from gru_training.forecasting.network.config import ForecastShape


def average_shares(combinations: Sequence[Mapping[str, Any]]) -> list[Share]:
    """The parts of the average: the networks by kind, then the simple forecasters.

    Args:
        combinations: What each run records of its own.
    """
    count = len(combinations)
    networks, linear = list[Share](), dict[tuple[Any, ...], Share]()
    for residual in (False, True):
        of_kind = [
            Share(**share)
            for combination in combinations
            for share in combination["shares"]
            if share["network"] and share["residual"] == residual
        ]
        for number, share in enumerate(of_kind, 1):
            networks.append(
                replace(
                    share,
                    name=f"{'GRU on ridge' if residual else 'GRU'}, {number}",
                    weight=share.weight / count,
                    network=f"network_{len(networks) + 1}",
                )
            )
    for combination in combinations:
        for each in combination["shares"]:
            if each["network"]:
                continue
            share = Share(**each)
            key = (share.name, share.lookback, share.season, share.penalty, share.own)
            before = linear[key].weight if key in linear else 0.0
            linear[key] = replace(share, weight=before + share.weight / count)
    return [*networks, *linear.values()]


def average_model(
    models: Sequence[keras.Model],
    combinations: Sequence[Mapping[str, Any]],
    shape: ForecastShape,
) -> keras.Model:
    """One model of several that `gru_training.forecasting.combination.model.combined` made.

    Args:
        models: From standardised windows (B, L, C) to (B, H, K, 1).
        combinations: What their runs record of them.
        shape: Of all.
    """
    keys, shares = _network_keys(combinations), average_shares(combinations)
    names = {key: str(share.network) for key, share in zip(keys, shares, strict=False)}
    count = len(models)
    networks: dict[str, tuple[keras.Model, float]] = {}
    linear, levels = list[LinearForecaster](), list[float]()
    for number, (model, combination) in enumerate(zip(models, combinations, strict=True)):
        there = {layer.name for layer in model.layers}
        for share in combination["shares"]:
            if share["network"] in there:
                name = names[number, share["network"]]
                copy = _copy(model.get_layer(share["network"]), name)
                networks[name] = copy, float(share["weight"]) / count
        if "linear" in there:
            layer = model.get_layer("linear")
            kernel = np.asarray(layer.get_weights()[0], np.float64)
            linear.append(LinearForecaster("linear", "", kernel))
            levels.append(float(layer.share))
    total = weighted_sum(linear, np.full(len(linear), 1 / count)) if linear else None
    ordered = [networks[name] for name in names.values() if name in networks]
    return combined(shape, ordered, total, sum(levels) / count)


def _network_keys(combinations: Sequence[Mapping[str, Any]]) -> list[tuple[int, str]]:
    """The number of the run and the name in it of each network, as `average_shares` has them."""
    return [
        (number, str(share["network"]))
        for residual in (False, True)
        for number, combination in enumerate(combinations)
        for share in combination["shares"]
        if share["network"] and share["residual"] == residual
    ]


def _copy(network: keras.Model, name: str) -> keras.Model:
    """The same network with weights of its own, under another name."""
    copy = type(network).from_config({**network.get_config(), "name": name})
    copy.set_weights(network.get_weights())
    return copy
