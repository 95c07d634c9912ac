"""The model of many series as one of a single series, for series that it never saw.

It exists where all series share every weight: the networks know none by name, and no matrix is for
one column alone.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import keras
import numpy as np

from training.forecasting.combination.model import combined
from training.forecasting.network.config import ForecasterConfig, ForecastShape
from training.forecasting.network.model import build_forecaster


def one_series_model(
    model: keras.Model,
    config: ForecasterConfig,
    shape: ForecastShape,
    combination: Mapping[str, Any] | None,
) -> keras.Model | None:
    """From standardised windows of one series (B, L, 1) to (B, H, 1, Q or 1), or None.

    Args:
        model: Delivered by `training.forecasting.combination.training`.
        config: Of its networks.
        shape: Of it.
        combination: What the run records of it; None: a network stands alone.
    """
    shared = config.channel_independent and not config.channel_embedding
    if combination is None or not shared or len(shape.targets) < 2:
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
            network.set_weights(model.get_layer(each["network"]).get_weights())
            networks.append((network, float(each["weight"])))
    return combined(single, networks, kernel, share)
