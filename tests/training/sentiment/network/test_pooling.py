"""Poolings, compared with plain loops over the rows."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from gru_training.sentiment.network.pooling import LastPooling, MaskedMaxPooling, pooling_layer

RNG = np.random.default_rng(2)
X = RNG.normal(-5, 3, (4, 5, 6)).astype(np.float32)
MASK = np.array([[1, 1, 1, 1, 1], [0, 1, 0, 1, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]], bool)
KINDS = ("max", "mean", "attention", "last")


def plain(kind, steps, layer):
    """The pooled steps (n, D) of one row, in float64."""
    steps = steps.astype(np.float64)
    if not len(steps):
        return np.zeros(steps.shape[1])
    if kind == "attention":
        scores = steps @ layer.score.numpy()[:, 0].astype(np.float64)
        weights = np.exp(scores - scores.max())
        return weights @ steps / weights.sum()
    return {"max": steps.max(0), "mean": steps.mean(0), "last": steps[-1]}[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_alone(kind):
    layer = pooling_layer(kind, False)
    pooled = layer(X, mask=MASK)
    everything = layer(X)
    for row in range(4):
        np.testing.assert_allclose(pooled[row], plain(kind, X[row, MASK[row]], layer), atol=1e-5)
        np.testing.assert_allclose(everything[row], plain(kind, X[row], layer), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cuts", [(5,), (1, 2, 3, 4, 5), (3, 4, 5)])
def test_piece_by_piece(kind, cuts):
    layer = pooling_layer(kind, False)
    expected = layer(X, mask=MASK)
    carry = tf.zeros((4, layer.carry_size(6)))
    start = 0
    for end in cuts:
        pooled, carry = layer.resume(tf.constant(X[:, start:end]), MASK[:, start:end], carry)
        start = end
    np.testing.assert_allclose(pooled, expected, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_so_far(kind):
    layer = pooling_layer(kind, False)
    layer(X)
    states = X.copy()  # like a GRU, whose masked steps repeat the state
    for row, step in np.argwhere(~MASK):
        states[row, step] = states[row, step - 1] if step else 0.0
    shown = layer.so_far(tf.constant(states), tf.constant(MASK))
    for row in range(4):
        for step in range(5):
            seen = states[row, : step + 1][MASK[row, : step + 1]]
            expected = plain(kind, seen, layer)
            np.testing.assert_allclose(shown[row, step], expected, atol=1e-5)


def test_last_of_two_directions():
    pooled = LastPooling(bidirectional=True)(X, mask=MASK)
    np.testing.assert_array_equal(pooled[0], [*X[0, 4, :3], *X[0, 0, 3:]])
    np.testing.assert_array_equal(pooled[1], [*X[1, 3, :3], *X[1, 1, 3:]])
    np.testing.assert_array_equal(pooled[3], np.zeros(6))


def test_gradient_reaches_only_the_greatest_unmasked_step():
    x = tf.constant([[[1.0], [9.0], [3.0]], [[1.0], [2.0], [3.0]]])
    mask = tf.constant([[True, False, True], [False, False, False]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(MaskedMaxPooling()(x, mask=mask))
    np.testing.assert_array_equal(tape.gradient(y, x), [[[0], [0], [1]], [[0], [0], [0]]])


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_finite_differences(kind):
    keras.utils.set_random_seed(0)
    layer = pooling_layer(kind, True)
    layer(X)
    weights = RNG.normal(size=(4, 6))

    def value(x):
        return float(np.sum(np.asarray(layer(x.astype(np.float32), mask=MASK)) * weights))

    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(layer(x, mask=MASK) * tf.constant(weights, tf.float32))
    gradient = tape.gradient(y, x).numpy()
    for index in [(0, 1, 2), (1, 3, 4), (1, 1, 4), (2, 0, 0), (2, 3, 1), (3, 2, 2)]:
        up, down = X.copy(), X.copy()
        up[index] += 0.01
        down[index] -= 0.01
        assert gradient[index] == pytest.approx((value(up) - value(down)) / 0.02, abs=2e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded(kind, tmp_path):
    inputs = keras.Input((None, 6))
    model = keras.Model(inputs, pooling_layer(kind, True)(inputs))
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(loaded(X), model(X))
