"""Random weights of one layer, what the oracle computes from them, and what tests share."""

import itertools

import numpy as np

from keras_gru.convert import (
    GRUWeights,
)
from tests import oracle

D, U = 4, 5
CLOSE = {"rtol": 1e-5, "atol": 2e-6}
CONVENTIONS = list(itertools.product((True, False), ("keep", "replace")))


def random_weights(reset_after=True, update_gate="keep", use_bias=True, seed=0, **activations):
    rng = np.random.default_rng(seed)
    shapes = [(D, 3 * U), (U, 3 * U), (2, 3 * U) if reset_after else (3 * U,)]
    kernel, recurrent, bias = (rng.normal(size=s).astype("float32") for s in shapes)
    return GRUWeights(
        kernel, recurrent, bias if use_bias else None, reset_after, update_gate, **activations
    )


def sequences(seed=1):
    return np.random.default_rng(seed).normal(size=(3, 7, D)).astype("float32")


def oracle_states(weights, x, reverse=False):
    """(B, T, U) in float64, computed by the oracle; in input order."""
    order = slice(None, None, -1 if reverse else 1)
    states = [
        oracle.forward(
            row[order].astype("float64"),
            np.zeros(U),
            *(None if w is None else w.astype("float64") for w in arrays_of(weights)),
            reset_after=weights.reset_after,
            update_gate=weights.update_gate,
        )[0][order]
        for row in x
    ]
    return np.array(states)


def arrays_of(weights):
    return weights.kernel, weights.recurrent_kernel, weights.bias


def swap_z_and_r(weights):
    order = [*range(U, 2 * U), *range(U), *range(2 * U, 3 * U)]
    return GRUWeights(*(w[..., order] for w in arrays_of(weights)), weights.reset_after)


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def unroll(step, x):
    h, states = np.zeros((len(x), U), "float32"), []
    for t in range(x.shape[1]):
        h = np.asarray(step(x[:, t], h))
        states.append(h)
    return np.stack(states, 1)
