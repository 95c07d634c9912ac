"""What the comparisons with other frameworks share."""

import numpy as np

from keras_gru.convert import (
    GRUWeights,
)
from tests.keras_gru.convert.random_weights import (
    U,
    arrays_of,
)

CLOSE = {"rtol": 1e-5, "atol": 2e-6}


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
