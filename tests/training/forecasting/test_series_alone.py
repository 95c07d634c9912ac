"""Sums between Keras tensors, and series that do not see each other, whatever the sizes."""

import ast
import itertools
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest
from keras.src.layers.merging.base_merge import Merge
from keras.src.ops.numpy import Add

import gru_serving
import gru_training
import keras_gru
from gru_training import Forecaster
from gru_training.forecasting.combination import Network, build_networks, combined, side_by_side
from gru_training.forecasting.config import ForecasterConfig, ForecastShape
from gru_training.forecasting.layers import TensorSum
from gru_training.forecasting.linear import LinearForecaster
from gru_training.forecasting.network import build_forecaster
from gru_training.sentiment.served.keras_model import build_text_model

ARCHITECTURES = ("segment", "one_shot")
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
LOOKBACK = 8
PACKAGES = (gru_training, keras_gru, gru_serving)


def unequal(operation):
    return len({tuple(x.shape) for x in operation.input}) > 1


def sums_by_keras(model):
    """Names of what adds as `keras.ops.add` does, where its shapes could be taken for a bias."""
    found = []
    for operation in model.operations:
        if isinstance(operation, keras.Model):
            found += sums_by_keras(operation)
        elif isinstance(operation, Add) or (
            isinstance(operation, Merge) and len({tuple(x.shape) for x in operation.input}) > 1
        ):
            found.append(operation.name)
    return found


def randomised(model):
    rng = np.random.default_rng(6)
    for weight in model.weights:
        weight.assign(rng.normal(0, 0.4, weight.shape))
    return model


def forecaster(architecture, series, horizon, loss="mse", residual=False, **options):
    config = ForecasterConfig(architecture=architecture, units=4, segment=2, loss=loss, **options)
    shape = ForecastShape(LOOKBACK, horizon, series, tuple(range(series)))
    return randomised(build_forecaster(config, shape, LEVELS, residual))


def combination(architecture, series, horizon, own):
    """Two networks, one of them on a regression, and regressions beside them."""
    rng = np.random.default_rng(7)
    shape = ForecastShape(LOOKBACK, horizon, series, tuple(range(series)))
    config = ForecasterConfig(architecture=architecture, units=4, segment=2)
    kernel = rng.normal(size=(LOOKBACK, horizon))
    ridge = LinearForecaster("ridge", "", kernel)
    parts = (
        Network("GRU", "network_1", config, None),
        Network("GRU on ridge", "network_2", config, ridge),
    )
    models = [randomised(model) for model in build_networks(parts, shape, LEVELS)]
    whole = rng.normal(size=(series, LOOKBACK, horizon)) if own else kernel
    return (
        combined(shape, [(models[0], 0.3), (models[1], 0.4)], whole, 0.7),
        side_by_side(parts, models, shape),
    )


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ((1, 4, 4, 1), (1, 1, 4, 1)),
        ((4, 4), (4, 1)),
        ((1, 3, 2, 3), (1, 3, 1, 1)),
        ((2, 3), (3,)),
        ((3,), (2, 1, 3)),
    ],
)
def test_a_sum_is_that_of_numpy(x, y):
    rng = np.random.default_rng(0)
    left, right = (rng.normal(size=shape).astype(np.float32) for shape in (x, y))
    np.testing.assert_array_equal(TensorSum()(left, right), left + right)
    a, b = (keras.Input(batch_shape=shape) for shape in (x, y))
    whole = keras.Model((a, b), TensorSum()(a, b))
    assert whole.output_shape == (left + right).shape
    np.testing.assert_array_equal(whole((left, right)), left + right)


@pytest.mark.slow_cases
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_no_forecaster_adds_as_keras_does(architecture):
    for independent, skip, residual, loss, layers in itertools.product(
        (True, False), (True, False), (True, False), ("mse", "quantile"), (1, 2)
    ):
        model = forecaster(
            architecture,
            3,
            5,
            loss,
            residual,
            channel_independent=independent,
            linear_skip=skip,
            layers=layers,
        )
        assert not sums_by_keras(model)
    for model in combination(architecture, 3, 5, own=True):
        assert not sums_by_keras(model)


def test_no_text_model_adds_as_keras_does(tiny_run):
    model = tiny_run.load_model()
    for each in (model, build_text_model(tiny_run)):
        assert not sums_by_keras(each)


@pytest.mark.slow
def test_no_module_calls_the_sum_of_keras():
    """`ops.add` and `layers.add`, under whatever name Keras is imported; `keras.layers.Add` in a
    model is found above."""
    found = []
    for package in PACKAGES:
        for path in Path(package.__file__).parent.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                of_keras = isinstance(node, ast.Attribute) and node.attr == "add"
                owner = ast.unparse(node.value) if of_keras else ""
                if owner.split(".")[-1] in ("ops", "layers", "numpy", "backend"):
                    found.append(f"{path}:{node.lineno}")
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("keras."):
                    found += [f"{path}:{node.lineno}" for a in node.names if a.name == "add"]
    assert not found


SIZES = [(4, 4, 1), (5, 5, 5), (3, 5, 5), (5, 3, 5), (4, 6, 1), (1, 1, 1), (8, 8, 1)]
"""K, H and Q: some alike, all alike, none alike; K as the look-back, too."""


@pytest.mark.slow_cases
@pytest.mark.parametrize(("series", "horizon", "outputs"), SIZES)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_batch_of_one_gets_what_it_gets_among_others(architecture, series, horizon, outputs):
    loss = "mse" if outputs == 1 else "quantile"
    models = [
        forecaster(
            architecture, series, horizon, loss, channel_independent=independent, linear_skip=skip
        )
        for independent, skip in itertools.product((True, False), (True, False))
    ]
    if outputs == 1:
        models += [
            m for own in (True, False) for m in combination(architecture, series, horizon, own)
        ]
    rng = np.random.default_rng(8)
    levels = np.linspace(-30, 30, series)
    windows = (levels + rng.normal(size=(2, LOOKBACK, series))).astype(np.float32)
    for model in models:
        together = np.asarray(model(windows))
        assert together.shape[:3] == (2, horizon, series)
        alone = np.asarray(model(windows[1:]))
        np.testing.assert_allclose(alone[0], together[1], rtol=1e-4, atol=1e-4)


@pytest.mark.slow_cases
@pytest.mark.parametrize(("series", "horizon", "outputs"), SIZES)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_series_by_itself_gets_what_it_gets_among_others(architecture, series, horizon, outputs):
    """A model of one series with the same weights answers what the model of all does."""
    loss = "mse" if outputs == 1 else "quantile"
    rng = np.random.default_rng(9)
    for rows, skip in itertools.product((1, 2), (True, False)):
        options = {"channel_independent": True, "channel_embedding": False, "linear_skip": skip}
        model = forecaster(architecture, series, horizon, loss, **options)
        single = forecaster(architecture, 1, horizon, loss, **options)
        single.set_weights(model.get_weights())
        levels = np.linspace(-30, 30, series)
        windows = (levels + rng.normal(size=(rows, LOOKBACK, series))).astype(np.float32)
        answers = np.asarray(model(windows))
        for number in range(series):
            alone = np.asarray(single(windows[..., number : number + 1]))
            np.testing.assert_allclose(alone[:, :, 0], answers[:, :, number], rtol=1e-4, atol=1e-4)


NAMES = ("a", "b", "c", "d")
TINY = {"lookback": 8, "horizon": 4, "units": 4, "epochs": 1, "validation_fraction": 0.25}


def four_series(rows=120):
    """Four quarterly series at levels of their own, as many as steps are forecast."""
    rng = np.random.default_rng(3)
    t = np.arange(rows)[:, np.newaxis]
    values = 100.0 * (1 + np.arange(4)) + 8 * np.sin(np.pi * t / 2) + rng.normal(size=(rows, 4))
    times = pd.period_range("1990Q1", periods=rows, freq="Q").to_timestamp()
    return pd.DataFrame(values, columns=NAMES).assign(time=times)


def long_form(wide):
    return wide.melt("time", var_name="unique_id", value_name="y")


@pytest.mark.long
@pytest.mark.parametrize("form", ["wide", "long"])
def test_forecasts_of_a_series_do_not_follow_from_the_others(tmp_path, form):
    """As many series as steps: each forecast stays near the level of its own series."""
    wide = four_series()
    table = wide if form == "wide" else long_form(wide)
    forecaster = Forecaster(**TINY, runs_dir=tmp_path, name=form).fit(table)
    answers = forecaster.predict().pivot(index="ds", columns="unique_id", values="forecast")
    for name, level in zip(NAMES, (100, 200, 300, 400), strict=True):
        np.testing.assert_allclose(answers[name], level, atol=40)
    others = wide.copy()
    others[["b", "d"]] *= 1.5
    changed = forecaster.predict(data=others if form == "wide" else long_form(others))
    changed = changed.pivot(index="ds", columns="unique_id", values="forecast")
    np.testing.assert_allclose(changed[["a", "c"]], answers[["a", "c"]], rtol=1e-5)
    assert not np.allclose(changed[["b", "d"]], answers[["b", "d"]], rtol=0.2)
