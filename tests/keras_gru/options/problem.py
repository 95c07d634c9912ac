"""Random data and weights, one sequence in NumPy, and finite differences."""

import itertools

import numpy as np
import tensorflow as tf

from tests import oracle
from tests.differences import derivative

B, T, D, U = 3, 5, 4, 6
MASK = np.array([[0, 1, 1, 0, 1], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0]], bool)
CONVENTIONS = list(itertools.product((True, False), ("keep", "replace")))


def data(seed=0, dtype="float64"):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(B, T, D)).astype(dtype), rng.normal(size=(B, U)).astype(dtype)


def randomized(layer, seed=1):
    """Build the layer and set asymmetric weights."""
    layer.build((B, T, D))
    rng = np.random.default_rng(seed)
    layer.set_weights([rng.normal(size=w.shape) for w in layer.get_weights()])
    return layer


def numpy_gru(x, h0, layer, *, mask=None, keep_share=0.0, gain=None):
    """One sequence with the expected value of zoneout and layer normalisation, in plain NumPy."""

    def normalized(a, g):
        if gain is None:
            return a
        return (a - a.mean()) / np.sqrt(a.var() + 1e-3) * g

    kernel, recurrent, bias = (w.astype(np.float64) for w in layer.get_weights()[:3])
    W, R = np.split(kernel, 3, 1), np.split(recurrent, 3, 1)
    g_in, g_rec = (np.split(v, 3) for v in (gain if gain is not None else np.ones((2, 3 * U))))
    b_in, b_rec = (np.split(v, 3) for v in (bias if layer.reset_after else (bias, 0 * bias)))
    h, states = h0, []
    for t in range(len(x)):
        if mask is None or mask[t]:
            a = [normalized(x[t] @ W[i], g_in[i]) + b_in[i] for i in range(3)]
            z, r = (
                oracle.sigmoid(a[i] + normalized(h @ R[i], g_rec[i]) + b_rec[i]) for i in (0, 1)
            )
            if layer.reset_after:
                g = np.tanh(a[2] + r * (normalized(h @ R[2], g_rec[2]) + b_rec[2]))
            else:
                g = np.tanh(a[2] + normalized((r * h) @ R[2], g_rec[2]))
            new = z * h + (1 - z) * g if layer.update_gate == "keep" else (1 - z) * h + z * g
            h = keep_share * h + (1 - keep_share) * new
        states.append(h)
    return np.array(states)


def assert_gradients_by_finite_differences(loss, values):
    """Central differences of a compiled scalar function, for every element."""
    loss = tf.function(loss)
    tensors = [tf.constant(v) for v in values]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        total = loss(*tensors)
    for i, grad in enumerate(tape.gradient(total, tensors)):

        def moved(value, i=i):
            return loss(*tensors[:i], tf.constant(value), *tensors[i + 1 :])

        numeric = derivative(moved, values[i], 1e-3)
        np.testing.assert_allclose(grad, numeric, rtol=1e-7, atol=1e-8, err_msg=f"argument {i}")
