"""A model of many series as one of a single series, beside the model itself."""

import keras
import numpy as np

from gru_training.forecasting.combination import combined
from gru_training.forecasting.config import ForecasterConfig, ForecastShape
from gru_training.forecasting.export.one_series import one_series_model
from gru_training.forecasting.network import build_forecaster

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
    found = one_series_model(model, CONFIG, SHAPE, {"shares": shares, "network_lookback": 12}, True)
    windows = np.random.default_rng(3).normal(size=(6, 12, 4)).astype(np.float32)
    for column in range(4):
        np.testing.assert_allclose(
            found(windows[..., column : column + 1])[..., 0, :],
            model(windows)[..., column, :],
            atol=1e-5,
        )


def test_of_matrices_for_each_series_it_takes_the_mean():
    kernel = np.random.default_rng(1).normal(0, 0.2, (4, 12, 3)).astype(np.float32)
    model, record = combined(SHAPE, [], kernel, 1.0), {"shares": [], "network_lookback": 12}
    found = one_series_model(model, CONFIG, SHAPE, record, True)
    window = np.random.default_rng(3).normal(size=(6, 12, 1)).astype(np.float32)
    each = model(np.repeat(window, 4, axis=2)).numpy()
    np.testing.assert_allclose(found(window)[..., 0, :], each.mean(axis=2), atol=1e-5)
    assert one_series_model(model, CONFIG, SHAPE, record, False) is None


EMBEDDED = ForecasterConfig(units=6, segment=4, channel_embedding=True)


def varied(model, seed=2):
    """The model with weights that are all unlike."""
    rng = np.random.default_rng(seed)
    model.set_weights([rng.normal(0, 0.4, weight.shape) for weight in model.weights])
    return model


def test_a_series_told_by_its_number_is_the_column_of_that_number():
    """As training sees it and as it is delivered, with the same weights."""
    delivered = varied(build_forecaster(EMBEDDED, SHAPE, name="n", ids=4))
    of_one = ForecastShape(lookback=12, horizon=3, channels=2, targets=(0,))
    learnt = build_forecaster(EMBEDDED, of_one, name="n", ids=4)
    learnt.set_weights(delivered.get_weights())
    windows = np.random.default_rng(3).normal(size=(6, 12, 4)).astype(np.float32)
    expected = delivered(windows).numpy()
    assert np.abs(expected[:, :, 0] - delivered(windows[..., ::-1]).numpy()[:, :, 3]).max() > 0.01
    for column in (2, 0, 3):
        told = np.full((6, 12, 1), column, np.float32)
        read = np.concatenate([windows[..., column : column + 1], told], axis=-1)
        np.testing.assert_allclose(learnt(read)[:, :, 0], expected[:, :, column], atol=1e-5)


def test_an_unknown_series_has_the_vector_of_unknown_ones():
    """Beside the model of many, in which the vector of each column is replaced by that vector."""
    model = varied(build_forecaster(EMBEDDED, SHAPE, (0.5,), name="network_1", ids=4))
    shares = [{"network": "network_1", "weight": 1.0, "residual": False}]
    many = combined(SHAPE, [(model, 1.0)], None, 0.0)
    found = one_series_model(
        many, EMBEDDED, SHAPE, {"shares": shares, "network_lookback": 12}, True
    )
    vectors = model.get_layer("segment_gru").channel
    assert vectors.shape == (5, 3)
    vectors.assign(np.tile(vectors.numpy()[4], (5, 1)))
    windows = np.random.default_rng(3).normal(size=(6, 12, 4)).astype(np.float32)
    for column in range(4):
        np.testing.assert_allclose(
            found(windows[..., column : column + 1])[..., 0, :],
            many(windows)[..., column, :],
            atol=1e-5,
        )


def test_columns_of_one_table_have_no_vector_for_others():
    model = build_forecaster(EMBEDDED, SHAPE, name="network_1")
    shares = [{"network": "network_1", "weight": 1.0, "residual": False}]
    many = combined(SHAPE, [(model, 1.0)], None, 0.0)
    record = {"shares": shares, "network_lookback": 12}
    assert one_series_model(many, EMBEDDED, SHAPE, record, False) is None
