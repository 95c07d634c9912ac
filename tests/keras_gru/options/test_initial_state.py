"""A learned initial state."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU
from tests.keras_gru.options.problem import B, U, data, numpy_gru, randomized


@pytest.mark.parametrize("unroll", [False, True])
def test_learned_initial_state_is_used_and_trained(unroll):
    layer = randomized(GRU(U, learn_initial_state=True, unroll=unroll, dtype="float64"))
    learned = layer.get_weights()[-1]
    x, h0 = data()
    for i in range(B):
        np.testing.assert_allclose(
            layer(x)[i], numpy_gru(x[i], learned, layer)[-1], rtol=1e-10, atol=1e-12
        )
    np.testing.assert_allclose(
        layer(x, initial_state=h0)[0], numpy_gru(x[0], h0[0], layer)[-1], rtol=1e-10, atol=1e-12
    )
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(x) ** 2)
    assert np.abs(tape.gradient(loss, layer.cell.learned_state.value)).min() > 1e-4


def test_gains_and_the_learned_state_start_neutral():
    """At first nothing is scaled, and a learned initial state gives what Keras' zeros give."""
    x, _ = data(dtype="float32")
    layer = GRU(U, layer_norm=True)
    layer.build(x.shape)
    np.testing.assert_array_equal(layer.get_weights()[3], np.ones((2, 3 * U)))
    learning, keras_layer = GRU(U, learn_initial_state=True), keras.layers.GRU(U)
    wanted = keras_layer(x)
    learning.build(x.shape)
    learning.set_weights([*keras_layer.get_weights(), learning.get_weights()[3]])
    np.testing.assert_allclose(learning(x), wanted, rtol=1e-5, atol=1e-6)
