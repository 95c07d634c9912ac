"""Inputs, a state and weights for the public functions."""

import numpy as np

from keras_gru import functional

B, T, D, U = 3, 5, 4, 6


def arrays(reset_after=True, use_bias=True, seed=0):
    """Asymmetric random inputs, a state and weights, float64."""
    rng = np.random.default_rng(seed)
    bias = rng.normal(size=functional.bias_shape(U, reset_after))
    return {
        "x": rng.normal(size=(B, T, D)),
        "h": rng.normal(size=(B, U)),
        "kernel": rng.normal(size=functional.kernel_shape(D, U)),
        "recurrent_kernel": rng.normal(size=functional.recurrent_kernel_shape(U)),
        "bias": bias if use_bias else None,
    }
