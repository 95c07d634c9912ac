"""A random sequence: what the oracle computes for it, and what `functional.sequence` does."""

import functools
import itertools

import numpy as np
import tensorflow as tf

from keras_gru import functional
from keras_gru.functional import bias_shape
from tests import oracle

sequence = functools.partial(functional.sequence, training=True)

MASKS = {
    "none": None,
    "full": [[1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1]],
    "right-padded": [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]],
    "left-padded": [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]],
    "interior and empty": [[1, 0, 1, 0, 1], [0, 1, 1, 1, 0], [0, 0, 0, 0, 0]],
}
CONVENTIONS = list(itertools.product((True, False), ("keep", "replace")))


def problem(B=3, T=5, D=4, U=6, *, reset_after, use_bias=True, seed=0):
    """Asymmetric random inputs, weights and upstream gradients, float64."""
    rng = np.random.default_rng(seed)
    return {
        "x": rng.normal(size=(B, T, D)),
        "h0": rng.normal(size=(B, U)),
        "kernel": rng.normal(size=(D, 3 * U)),
        "recurrent_kernel": rng.normal(size=(U, 3 * U)),
        "bias": rng.normal(size=bias_shape(U, reset_after)) if use_bias else None,
    }, {"states": rng.normal(size=(B, T, U)), "final": rng.normal(size=(B, U))}


def expected(inputs, upstream, *, mask, go_backwards, **convention):
    """States, final state and gradients of a batch, computed by the oracle."""
    order = slice(None, None, -1 if go_backwards else 1)
    states, dx, dh0, shared = [], [], [], [0, 0, 0]
    for i, x in enumerate(inputs["x"]):
        row_mask = None if mask is None else mask[i][order]
        h, cache = oracle.forward(
            x[order],
            inputs["h0"][i],
            inputs["kernel"],
            inputs["recurrent_kernel"],
            inputs["bias"],
            mask=row_mask,
            **convention,
        )
        grads = oracle.backward(
            upstream["states"][i],
            upstream["final"][i],
            cache,
            x[order],
            inputs["kernel"],
            inputs["recurrent_kernel"],
            **convention,
        )
        states.append(h)
        dx.append(grads[0][order])
        dh0.append(grads[1])
        shared = [a + b for a, b in zip(shared, grads[2:], strict=True)]
    states = np.array(states)
    return states, states[:, -1], [np.array(dx), np.array(dh0), *shared]


def computed(inputs, upstream, convention, *, dtype=tf.float64, run=lambda f: f, **kwargs):
    """The same with `functional.sequence` under a GradientTape; `run` wraps the function."""
    sources = [tf.constant(v, dtype) for v in inputs.values() if v is not None]

    def function(*sources):
        with tf.GradientTape() as tape:
            tape.watch(sources)
            bias = sources[4] if len(sources) == 5 else None
            states, final, *_ = sequence(*sources[:4], bias, convention, **kwargs)
            loss = tf.reduce_sum(final * tf.constant(upstream["final"], dtype))
            if states is not None:
                loss += tf.reduce_sum(states * tf.constant(upstream["states"], dtype))
        return states, final, tape.gradient(loss, sources)

    return run(function)(*sources)


def assert_close(actual, wanted, tolerance):
    for a, b in zip(actual, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
