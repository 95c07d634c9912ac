import keras
import numpy as np
import pytest
import tensorflow as tf
from training.lazy_adam import LazyAdam


def adam(table, steps, rate=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-7):
    """Kingma and Ba's algorithm 1 in float64, row by row: only rows with a gradient move."""
    table, m, v = table.astype(np.float64), np.zeros(table.shape), np.zeros(table.shape)
    for t, (rows, gradients) in enumerate(steps, 1):
        for row, gradient in zip(rows, gradients.astype(np.float64), strict=True):
            m[row] = beta_1 * m[row] + (1 - beta_1) * gradient
            v[row] = beta_2 * v[row] + (1 - beta_2) * gradient**2
            m_hat, v_hat = m[row] / (1 - beta_1**t), v[row] / (1 - beta_2**t)
            # Keras adds epsilon before it corrects the second moment, as in the paper's section 2.
            corrected = epsilon / np.sqrt(1 - beta_2**t)
            table[row] -= rate * m_hat / (np.sqrt(v_hat) + corrected)
    return table


def updated(optimizer, table, steps, dense=False):
    variable = keras.Variable(table)
    optimizer.build([variable])

    @tf.function
    def apply(rows, gradients):
        gradient = tf.IndexedSlices(gradients, rows, table.shape)
        optimizer.apply([tf.convert_to_tensor(gradient) if dense else gradient])

    for rows, gradients in steps:
        apply(tf.constant(rows), tf.constant(gradients))
    return variable.numpy()


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def table(rng):
    return rng.normal(size=(7, 3)).astype(np.float32)


def steps_of(rng, choices):
    return [(rows, rng.normal(size=(len(rows), 3)).astype(np.float32)) for rows in choices]


def test_rows_follow_the_paper(rng, table):
    steps = steps_of(rng, [[0, 3], [3], [5, 0, 1], [3, 5], [0]])
    after = updated(LazyAdam(0.01), table, steps)
    np.testing.assert_allclose(after, adam(table, steps), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(after[[2, 4, 6]], table[[2, 4, 6]])


def test_with_all_rows_in_every_batch_it_is_keras_adam(rng, table):
    steps = steps_of(rng, [rng.permutation(7).tolist() for _ in range(5)])
    expected = updated(keras.optimizers.Adam(0.01), table, steps)
    np.testing.assert_allclose(updated(LazyAdam(0.01), table, steps), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("dense", "amsgrad"), [(True, False), (False, True)])
def test_elsewhere_it_is_keras_adam(rng, table, dense, amsgrad):
    steps = steps_of(rng, [[0, 3], [3], [5, 0, 1]])
    expected = updated(keras.optimizers.Adam(0.01, amsgrad=amsgrad), table, steps, dense)
    after = updated(LazyAdam(0.01, amsgrad=amsgrad), table, steps, dense)
    np.testing.assert_array_equal(after, expected)


def test_learning_rate_schedule_and_config(rng, table):
    schedule = keras.optimizers.schedules.CosineDecay(0.01, 4)
    optimizer = keras.optimizers.deserialize(keras.optimizers.serialize(LazyAdam(schedule)))
    steps = steps_of(rng, [[2], [2]])
    once = adam(table, steps[:1])
    after = updated(optimizer, table, steps)
    assert isinstance(optimizer, LazyAdam)
    assert not np.allclose(after[2], once[2])
    rate = 0.01 * (1 + np.cos(np.pi / 4)) / 2
    slower = adam(table, steps) - once
    np.testing.assert_allclose(after - once, slower * rate / 0.01, rtol=0, atol=1e-6)
