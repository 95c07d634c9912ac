import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from gru_training.errors import ConfigError
from gru_training.forecasting.config import ForecasterConfig, ForecastShape
from gru_training.forecasting.layers import SegmentGRU, WindowNormalisation
from gru_training.forecasting.network import build_forecaster, initialise_linear
from keras_gru import GRUCell

RNG = np.random.default_rng(11)
SHAPE = ForecastShape(lookback=26, horizon=11, channels=3, targets=(2, 0))
HISTORY = RNG.normal(3, 2, (5, 26, 3)).astype(np.float32)
ARCHITECTURES = ("segment", "one_shot")
LEVELS = (0.1, 0.5, 0.8)


def build(shape=SHAPE, levels=LEVELS, **options):
    keras.utils.set_random_seed(5)
    model = build_forecaster(
        ForecasterConfig(**{"units": 6, "segment": 4, **options}), shape, levels
    )
    rng = np.random.default_rng(6)
    for weight in model.weights:
        weight.assign(rng.normal(0, 0.4, weight.shape))
    return model


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru_step(x, h, kernel, recurrent, bias):
    z_x, r_x, g_x = np.split(x @ kernel + bias[0], 3)
    z_h, r_h, g_h = np.split(h @ recurrent + bias[1], 3)
    z = sigmoid(z_x + z_h)
    return z * h + (1 - z) * np.tanh(g_x + sigmoid(r_x + r_h) * g_h)


def weights_of(layer):
    """By the last part of their path, in float64."""
    return {w.path.split("/", 1)[1]: w.numpy().astype(np.float64) for w in layer.weights}


def test_segment_forecaster_equals_a_hand_written_one():
    """SegRNN written out: segments, GRU, one step per output segment, last value added back."""
    model = build(dropout=0.5)
    embed_kernel, embed_bias = model.get_layer("embedding").get_weights()
    head_kernel, head_bias = model.get_layer("head").get_weights()
    own = weights_of(model.get_layer("segment_gru"))
    gru = [own[f"encoder/gru_cell/{name}"] for name in ("kernel", "recurrent_kernel", "bias")]
    for row, (place, channel) in itertools.product(range(2), enumerate((2, 0))):
        series = HISTORY[row, :, channel].astype(np.float64)
        x, h = series - series[-1], np.zeros(6)
        for segment in x[2:].reshape(6, 4):  # 26 = 2 + 6 · 4: the two oldest steps are not read
            h = gru_step(np.maximum(segment @ embed_kernel + embed_bias, 0), h, *gru)
        made = []
        for position in range(3):  # 11 steps need 3 segments of 4
            query = np.concatenate([own["position"][position], own["channel"][place]])
            made.append(gru_step(query, h, *gru) @ head_kernel + head_bias)
        expected = np.concatenate(made)[:11] + series[-1]
        np.testing.assert_allclose(model(HISTORY)[row, :, place, 0], expected, rtol=1e-4, atol=1e-4)


def test_decoding_is_one_step_of_the_cell():
    layer = SegmentGRU(6, output_segments=4, channels=3)
    layer.build((None, 5, 6))
    for weight in layer.weights:
        weight.assign(RNG.normal(0, 0.7, weight.shape))
    h = RNG.normal(size=(2 * 3, 6)).astype(np.float32)
    states = layer.decode(tf.constant(h)).numpy()
    cell = GRUCell(6)
    cell.build((None, 6))
    cell.set_weights(layer.encoder.cell.get_weights())
    for row, position in itertools.product(range(6), range(4)):
        query = np.concatenate([layer.position[position], layer.channel[row % 3]])
        expected, _ = cell(query[np.newaxis], h[row : row + 1])
        np.testing.assert_allclose(states[row, position], expected[0], rtol=1e-5, atol=1e-6)


def test_gradients_of_the_segment_gru_are_those_of_finite_differences():
    layer = SegmentGRU(4, output_segments=2, channels=2, dtype="float64")
    x = tf.constant(RNG.normal(size=(4, 3, 4)))
    layer(x)
    for weight in layer.weights:
        weight.assign(RNG.normal(0, 0.7, weight.shape))
    mix = RNG.normal(size=(4, 2, 4))

    def loss():
        return tf.reduce_sum(layer(x) * mix)

    with tf.GradientTape() as tape:
        value = loss()
    gradients = tape.gradient(value, layer.trainable_weights)
    for weight, gradient in zip(layer.trainable_weights, gradients, strict=True):
        start = weight.numpy()
        direction = RNG.normal(size=start.shape)
        around = []
        for step in (-2e-4, -1e-4, 1e-4, 2e-4):
            weight.assign(start + step * direction)
            around.append(float(loss()))
        weight.assign(start)
        slope = (around[0] - 8 * around[1] + 8 * around[2] - around[3]) / 12e-4
        assert float(tf.reduce_sum(gradient * direction)) == pytest.approx(slope, rel=1e-8)


@pytest.mark.parametrize("kind", ["none", "last", "reversible", "difference"])
def test_normalisation_by_numpy(kind):
    normalised, level, spread = (np.asarray(v) for v in WindowNormalisation(kind)(HISTORY))
    x = HISTORY.astype(np.float64)
    expected = {
        "none": (x, 0, 1),
        "last": (x - x[:, -1:], x[:, -1:], 1),
        "reversible": (
            (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True),
            x.mean(1, keepdims=True),
            x.std(1, keepdims=True),
        ),
        "difference": (np.diff(x, axis=1, prepend=x[:, :1]), x[:, -1:], 1),
    }[kind]
    for got, wanted in zip((normalised, level, spread), expected, strict=True):
        np.testing.assert_allclose(got, np.broadcast_to(wanted, got.shape), rtol=1e-4, atol=1e-4)


def test_stacked_forecaster_equals_a_hand_written_one():
    model = build(architecture="one_shot", normalisation="none", layers=2, dropout=0.3)
    layers = [model.get_layer(name).get_weights() for name in ("gru_1", "gru")]
    kernel, bias = model.get_layer("head").get_weights()
    for row, (place, channel) in itertools.product(range(2), enumerate((2, 0))):
        states = [np.zeros(6), np.zeros(6)]
        for value in HISTORY[row, :, channel : channel + 1].astype(np.float64):
            states[0] = gru_step(value, states[0], *layers[0])
            states[1] = gru_step(states[0], states[1], *layers[1])
        expected = states[1] @ kernel + bias
        np.testing.assert_allclose(model(HISTORY)[row, :, place, 0], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_dropout_acts_between_stacked_layers(architecture):
    model = build(architecture=architecture, layers=3, dropout=0.5)
    between = [model.get_layer(f"dropout_{number}") for number in (1, 2)]
    assert [layer.rate for layer in between] == [0.5, 0.5]
    top = "segment_gru" if architecture == "segment" else "gru"
    reads = model.get_layer(top).input
    below = keras.Model(model.input, reads)
    drawn = below(HISTORY, training=True).numpy()
    assert 0.4 < np.mean(drawn == 0) < 0.6
    assert np.count_nonzero(below(HISTORY, training=False)) == drawn.size


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("independent", [True, False])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_is_saved_whole(tmp_path, architecture, independent, layers):
    model = build(
        architecture=architecture,
        channel_independent=independent,
        layers=layers,
        loss="quantile",
        dropout=0.2,
    )
    assert model(HISTORY).shape == (5, 11, 2, 3)
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(loaded(HISTORY), model(HISTORY))
    assert loaded.inputs[0].name == "history"
    assert loaded.inputs[0].shape == (None, 26, 3)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_compiles_and_fits(architecture):
    model = build(architecture=architecture, channel_independent=False)
    model.compile(keras.optimizers.Adam(0.02), "mse")
    targets = HISTORY[:, :11, [2, 0], np.newaxis]
    losses = model.fit(HISTORY, targets, epochs=15, verbose=0).history["loss"]
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("normalisation", ["last", "reversible", "difference"])
def test_forecasts_follow_the_level(architecture, normalisation):
    model = build(architecture=architecture, normalisation=normalisation)
    np.testing.assert_allclose(
        model(HISTORY + 7), np.asarray(model(HISTORY)) + 7, rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_independent_channels_do_not_see_each_other_and_joint_ones_do(architecture):
    changed = HISTORY.copy()
    changed[:, 3:, 1] += 1.5  # an exogenous column
    for independent in (True, False):
        model = build(architecture=architecture, channel_independent=independent)
        same = np.array_equal(model(changed), model(HISTORY))
        assert same == independent


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_rows_do_not_see_each_other(architecture):
    model = build(architecture=architecture)
    alone = np.concatenate([model(HISTORY[i : i + 1]) for i in range(5)])
    np.testing.assert_allclose(model(HISTORY), alone, rtol=1e-4, atol=1e-5)


def test_the_linear_skip_starts_as_the_linear_map_alone():
    keras.utils.set_random_seed(1)
    model = build_forecaster(ForecasterConfig(units=6, segment=4, linear_skip=True), SHAPE)
    coefficients = RNG.normal(0, 0.3, (26, 11))
    initialise_linear(model, coefficients)
    windows = HISTORY[:, :, [2, 0]].astype(np.float64)
    last = windows[:, -1:]
    expected = np.einsum("blk,lh->bhk", windows - last, coefficients) + last
    np.testing.assert_allclose(model(HISTORY)[..., 0], expected, rtol=1e-3, atol=1e-3)
    with pytest.raises(
        ValueError, match=r"coefficients must have shape \(26, 11\), got \(11, 26\)"
    ):
        initialise_linear(model, coefficients.T)


def test_arguments_that_do_not_fit():
    with pytest.raises(
        ConfigError, match="--segment must be at most the look-back of 26 steps, got 30"
    ):
        build(segment=30)
    with pytest.raises(ConfigError, match="--units must be even"):
        ForecasterConfig(units=5)
    with pytest.raises(ConfigError, match="--layers must be at least 1, got 0"):
        ForecasterConfig(layers=0)
    with pytest.raises(ConfigError, match=r"--dropout must be at least 0 and below 1, got 1\.0"):
        ForecasterConfig(dropout=1.0)
    with pytest.raises(ValueError, match=r"targets must lie in 0 to 2 \(channels 3\), got \(3,\)"):
        ForecastShape(9, 2, 3, (3,))
    for levels in ((0.1, 0.9), (0.5, 0.2), (0.0, 0.5)):
        with pytest.raises(
            ValueError, match=r"levels must ascend, lie between 0 and 1 and contain 0\.5"
        ):
            build(levels=levels, loss="quantile")
