"""The model of many series as one of a single series, for series that it never saw.

It exists where no matrix is for one column alone, and the networks know no series by name, or have
a learned vector for those that they do not know.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import keras
import numpy as np

from gru_training.forecasting.combination.model import combined
from gru_training.forecasting.network.config import ForecasterConfig, ForecastShape
from gru_training.forecasting.network.model import build_forecaster


def one_series_model(
    model: keras.Model,
    config: ForecasterConfig,
    shape: ForecastShape,
    combination: Mapping[str, Any] | None,
) -> keras.Model | None:
    """From standardised windows of one series (B, L, 1) to (B, H, 1, Q or 1), or None.

    Args:
        model: Delivered by `gru_training.forecasting.combination.training`.
        config: Of its networks.
        shape: Of it.
        combination: What the run records of it; None: a network stands alone.
    """
    if combination is None or not config.channel_independent or len(shape.targets) < 2:
        return None
    names = {layer.name for layer in model.layers}
    kernel, share = None, 0.0
    if "linear" in names:
        linear = model.get_layer("linear")
        if linear.own:
            return None
        kernel, share = np.asarray(linear.get_weights()[0]), float(linear.share)
    single = ForecastShape(shape.lookback, shape.horizon, 1, (0,))
    reads = replace(single, lookback=int(combination["network_lookback"]))
    plain = replace(config, linear_skip=False)
    networks = []
    for each in combination["shares"]:
        if each["network"] in names:
            network = build_forecaster(
                plain, reads, config.levels, each["residual"], each["network"]
            )
            if not _take_weights(network, model.get_layer(each["network"]), config):
                return None
            networks.append((network, float(each["weight"])))
    return combined(single, networks, kernel, share)


def _take_weights(network: keras.Model, of_many: keras.Model, config: ForecasterConfig) -> bool:
    """Whether the network of one series could be given the weights of that of many."""
    if not config.channel_embedding or config.architecture != "segment":
        network.set_weights(of_many.get_weights())
        return True
    many = of_many.get_layer("segment_gru")
    if not many.unknown:
        return False
    for layer in network.layers:
        if layer.weights and layer.name != "segment_gru":
            layer.set_weights(of_many.get_layer(layer.name).get_weights())
    one = network.get_layer("segment_gru")
    one.encoder.set_weights(many.encoder.get_weights())
    one.position.assign(many.unknown_query())
    return True
