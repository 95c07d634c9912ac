"""Adam with a share of the learning rate for each variable, beside Adam in NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from training.loop.layer_rates import LayerAdam, SparseLayerAdam

RATE, SHARES = 0.1, (1.0, 0.25, 0.04)


def adam(gradients, rate, b1=0.9, b2=0.999, eps=1e-7):
    """What a value has moved by after these gradients (Kingma and Ba, 2015, algorithm 1)."""
    m, v, moved = 0.0, 0.0, 0.0
    for t, g in enumerate(gradients, start=1):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        moved -= rate * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)
    return moved


@pytest.mark.parametrize("kind", [LayerAdam, SparseLayerAdam])
def test_each_variable_moves_by_its_share(kind):
    variables = [keras.Variable(np.zeros(3, np.float32)) for _ in SHARES]
    optimizer = kind(RATE, shares=SHARES)
    optimizer.build(variables)
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(4, 3)).astype(np.float32)

    @tf.function
    def step(gradient):
        optimizer.apply([gradient] * 3)

    for gradient in gradients:
        step(tf.constant(gradient))
    for variable, share in zip(variables, SHARES, strict=True):
        np.testing.assert_allclose(variable.numpy(), adam(gradients, RATE * share), rtol=1e-4)


def test_rows_that_a_batch_has_not_used_stay():
    table = keras.Variable(np.zeros((4, 2), np.float32))
    optimizer = SparseLayerAdam(RATE, shares=(0.5,))
    optimizer.build([table])
    used = tf.IndexedSlices(tf.constant([[1.0, -2.0]]), tf.constant([2]), tf.constant([4, 2]))
    optimizer.apply([used])
    optimizer.apply([tf.IndexedSlices(used.values, tf.constant([0]), used.dense_shape)])
    assert not table.numpy()[[1, 3]].any()
    np.testing.assert_allclose(table.numpy()[2], [-0.05, 0.05], rtol=1e-4)


def test_it_can_be_written_and_read():
    again = LayerAdam.from_config(LayerAdam(RATE, shares=SHARES).get_config())
    assert tuple(again.shares) == SHARES
