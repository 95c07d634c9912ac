"""A model of many series as one of a single series, beside the model itself."""

import keras
import numpy as np

from training.forecasting.combination.model import combined
from training.forecasting.combination.one_series import one_series_model
from training.forecasting.network.config import ForecasterConfig, ForecastShape
from training.forecasting.network.model import build_forecaster

SHAPE = ForecastShape(lookback=12, horizon=3, channels=4, targets=(0, 1, 2, 3))
CONFIG = ForecasterConfig(units=6, segment=4, channel_embedding=False)


def test_of_several_networks():
    keras.utils.set_random_seed(5)
    shares = [
        {"network": "network_1", "weight": 0.3, "residual": False},
        {"network": "network_2", "weight": 0.5, "residual": True},
    ]
    networks = [
        (build_forecaster(CONFIG, SHAPE, (0.5,), each["residual"], each["network"]), each["weight"])
        for each in shares
    ]
    kernel = np.random.default_rng(1).normal(0, 0.2, (12, 3)).astype(np.float32)
    model = combined(SHAPE, networks, kernel, 0.2)
    for weight in model.trainable_weights:  # heads on top of a regression begin with zeros
        weight.assign(np.random.default_rng(2).normal(0, 0.3, weight.shape))
    found = one_series_model(model, CONFIG, SHAPE, {"shares": shares, "network_lookback": 12})
    windows = np.random.default_rng(3).normal(size=(6, 12, 4)).astype(np.float32)
    for column in range(4):
        np.testing.assert_allclose(
            found(windows[..., column : column + 1])[..., 0, :],
            model(windows)[..., column, :],
            atol=1e-5,
        )
