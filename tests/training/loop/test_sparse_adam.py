"""Sparse updates against Adam in NumPy float64, row by row."""

import keras
import numpy as np
import tensorflow as tf

from gru_training.loop.optimizers import SparseAdam

RNG = np.random.default_rng(2)
ROWS, WIDTH, STEPS, RATE = 6, 3, 5, 0.1


def lazy_adam(table, batches):
    """Kingma and Ba (2015), algorithm 1, of the rows that a batch names only."""
    first, second = np.zeros_like(table), np.zeros_like(table)
    for step, (rows, gradients) in enumerate(batches, start=1):
        for row, gradient in zip(rows, gradients, strict=True):
            first[row] = 0.9 * first[row] + 0.1 * gradient
            second[row] = 0.999 * second[row] + 0.001 * gradient**2
            scale = np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
            table[row] -= RATE * scale * first[row] / (np.sqrt(second[row]) + 1e-7)
    return table


def drawn(rows):
    return [(rows[step], RNG.normal(size=(len(rows[step]), WIDTH))) for step in range(STEPS)]


def trained(optimizer, start, batches):
    table = keras.Variable(start, dtype="float32")
    optimizer.build([table])

    @tf.function
    def step(rows, values):
        optimizer.apply([tf.IndexedSlices(values, rows, (ROWS, WIDTH))])

    for rows, gradients in batches:
        step(tf.constant(rows, tf.int64), tf.constant(gradients, tf.float32))
    return table.numpy()


def test_rows_of_a_batch_move_as_in_adam_and_others_stay():
    start = RNG.normal(size=(ROWS, WIDTH))
    batches = drawn([[0, 2], [2, 5], [1], [0, 1, 2], [5]])
    moved = trained(SparseAdam(RATE), start, batches)
    np.testing.assert_allclose(moved, lazy_adam(start.copy(), batches), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(moved[[3, 4]], start[[3, 4]].astype(np.float32))


def test_where_every_batch_has_all_rows_it_is_adam():
    start = RNG.normal(size=(ROWS, WIDTH))
    batches = drawn([list(RNG.permutation(ROWS)) for _ in range(STEPS)])
    sparse, dense = (
        trained(kind(RATE), start, batches) for kind in (SparseAdam, keras.optimizers.Adam)
    )
    np.testing.assert_allclose(sparse, dense, rtol=1e-5, atol=1e-6)


def test_dense_gradients_are_adam_s():
    start, gradient = RNG.normal(size=(2, 4)), RNG.normal(size=(2, 4))
    moved = []
    for kind in (SparseAdam, keras.optimizers.Adam):
        weight, optimizer = keras.Variable(start, dtype="float32"), kind(RATE)
        optimizer.build([weight])
        optimizer.apply([tf.constant(gradient, tf.float32)])
        moved.append(weight.numpy())
    np.testing.assert_array_equal(*moved)
