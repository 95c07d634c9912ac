"""With the same seed, Keras' layer and ours drop the same units, so trainings can be compared."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU, GRUCell
from tests.sequences_with_gaps import sequences_with_gaps

D, U = 5, 4
RATES = [{"dropout": 0.4}, {"recurrent_dropout": 0.4}, {"dropout": 0.4, "recurrent_dropout": 0.3}]


def pair(ours, theirs, **options):
    layers = ours(U, seed=7, **options), theirs(U, seed=7, **options)
    rng = np.random.default_rng(0)
    for layer in layers:
        layer.build((None, D) if ours is GRUCell else (None, None, D))
    values = [rng.normal(size=w.shape) / 2 for w in layers[0].get_weights()]
    for layer in layers:
        layer.set_weights(values)
    return layers


def losses_and_gradients(layer, x, mask, wrap):
    """Two calls, because the second one must draw new masks."""

    @wrap
    def step():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, mask=mask, training=True)
            loss = tf.reduce_sum(y * tf.cast(tf.range(1, tf.size(y) + 1), y.dtype)[0] + y**2)
        weights = [w.value for w in layer.trainable_weights]
        return y, *tape.gradient(loss, [x, *weights])

    return [*step(), *step()]


@pytest.mark.slow_cases
@pytest.mark.parametrize("path", ["plain", "xla", "loop"])
@pytest.mark.parametrize(("rates", "reset_after"), list(itertools.product(RATES, [True, False])))
def test_outputs_and_gradients(rates, reset_after, path):
    x, mask = sequences_with_gaps()
    options = {"reset_after": reset_after, "return_sequences": True, **rates}
    ours, theirs = pair(lambda *a, **k: GRU(*a, path=path, **k), keras.layers.GRU, **options)
    x = tf.constant(x)
    wrap = tf.function if path == "xla" else lambda function: function
    got = losses_and_gradients(ours, x, mask, wrap)
    wanted = losses_and_gradients(theirs, x, mask, lambda function: function)
    assert ours.last_path == path
    for mine, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=2e-6)


@pytest.mark.slow_cases
@pytest.mark.parametrize("rates", RATES)
def test_several_blocks_of_rows(rates, monkeypatch):
    """Enough rows and steps for the batch to be split into blocks; the masks are split, too."""
    ours, theirs = pair(GRU, keras.layers.GRU, **rates)
    monkeypatch.setattr("keras_gru.kernel.execution.SMALL_WORK", 1)
    monkeypatch.setattr("keras_gru.kernel.execution.cores", lambda: 2)
    x = tf.constant(np.random.default_rng(3).normal(size=(7, 9, D)).astype("float32"))
    got = losses_and_gradients(ours, x, None, tf.function)
    wanted = losses_and_gradients(theirs, x, None, lambda function: function)
    for mine, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("rates", RATES)
def test_cells(rates):
    ours, theirs = pair(GRUCell, keras.layers.GRUCell, **rates)
    x = np.random.default_rng(4).normal(size=(3, 6, D)).astype("float32")
    got, wanted = (keras.layers.RNN(cell)(x, training=True) for cell in (ours, theirs))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=2e-6)


def test_bidirectional():
    layers = [
        keras.layers.Bidirectional(gru(U, dropout=0.3, recurrent_dropout=0.3, seed=5))
        for gru in (GRU, keras.layers.GRU)
    ]
    x = sequences_with_gaps()[0]
    for layer in layers:
        layer.build(x.shape)
    layers[1].set_weights(layers[0].get_weights())
    got, wanted = (layer(x, training=True) for layer in layers)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=2e-6)
