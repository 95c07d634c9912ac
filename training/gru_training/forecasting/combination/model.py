"""Networks and simple forecasters as one Keras model."""

from collections.abc import Sequence
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from gru_training.forecasting.combination.linear import LinearForecaster
from gru_training.forecasting.network.config import ForecasterConfig, ForecastShape
from gru_training.forecasting.network.model import build_forecaster
from gru_training.forecasting.network.tensor_sum import TensorSum
from gru_training.forecasting.network.window_linear import WindowLinear


class Network(NamedTuple):
    """A network to train."""

    name: str
    """What people call it."""
    model: str
    """What its model is called within the delivered one."""
    config: ForecasterConfig
    residual_of: LinearForecaster | None
    """What it learns the errors of; None: it forecasts by itself."""


def networks_of(
    config: ForecasterConfig, ridge: LinearForecaster, count: int
) -> tuple[Network, ...]:
    """The networks that settings ask for: by themselves and on the ridge regression.

    Args:
        config: With `linear_skip` only the latter; with the loss `quantile` only one.
        ridge: For all columns together.
        count: Of each kind.
    """
    plain = ForecasterConfig(**{**vars(config), "linear_skip": False})
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
    return tuple(found)


def build_networks(
    networks: Sequence[Network],
    shape: ForecastShape,
    levels: Sequence[float],
    ids: int | None = None,
) -> list[keras.Model]:
    """A model of each, from standardised windows to its forecast, or to what it adds to one.

    Args:
        networks: What they are.
        shape: Of all.
        levels: Of the quantiles.
        ids: As of `build_forecaster`.
    """
    return [
        build_forecaster(each.config, shape, levels, each.residual_of is not None, each.model, ids)
        for each in networks
    ]


def side_by_side(
    networks: Sequence[Network], models: Sequence[keras.Model], shape: ForecastShape
) -> keras.Model:
    """All networks on one window, for training: (B, L, C) to (B, H, K, M), M forecasts.

    They share no weight, so that each learns as if it were alone, but for the clipping.

    Args:
        networks: What they are.
        models: Of `build_networks`, which may read less.
        shape: With the L of the longest, regressions under networks included.
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


def combined(
    shape: ForecastShape,
    networks: Sequence[tuple[keras.Model, float]],
    kernel: np.ndarray | None,
    share: float,
) -> keras.Model:
    """The weighted sum as one model, from `history` (B, L, C) to (B, H, K, Q or 1).

    Args:
        shape: Of all.
        networks: Each with its weight.
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
