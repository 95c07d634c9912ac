"""Activations of a traced network, and their slopes."""

from collections.abc import Callable

import numpy as np

from keras_gru.teaching.network_fields import Array


def sigmoid(a: Array) -> Array:
    """The logistic function, without overflow."""
    return np.asarray(np.exp(-np.logaddexp(0, -a)))


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "sigmoid": sigmoid,
    "tanh": lambda a: np.asarray(np.tanh(a)),
    "relu": lambda a: np.maximum(a, 0),
    "linear": lambda a: a,
}
# Each slope from the value of its function, as (9), (10) and (12) write it.
SLOPES: dict[str, Callable[[Array], Array]] = {
    "sigmoid": lambda value: value * (1 - value),
    "tanh": lambda value: 1 - value**2,
    "relu": lambda value: (value > 0).astype(np.float64),
    "linear": np.ones_like,
}
