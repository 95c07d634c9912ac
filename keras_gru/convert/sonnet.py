"""Sonnet 2's `snt.GRU`.

Its variables are packed as ours, z | r | a on the last axis: `w_i` (D, 3U), `w_h` (U, 3U), `b`
(3U,). The reset gate comes before the matmul and the update gate replaces (Chung et al. 2014).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_gru.convert.arrays import take
from keras_gru.convert.gru_weights import Array, GRUWeights

NAMES = ("w_i", "w_h", "b")


def from_sonnet(variables: Mapping[str, Any]) -> GRUWeights:
    """The variables of a `snt.GRU`.

    Args:
        variables: `{"w_i": core.input_to_hidden, "w_h": core.hidden_to_hidden, "b": core.b}`.

    Raises:
        ValueError: A variable is missing.
    """
    kernel, recurrent_kernel, bias = take("Sonnet", variables, NAMES)
    return GRUWeights(kernel, recurrent_kernel, bias, reset_after=False, update_gate="replace")


def to_sonnet(weights: GRUWeights) -> dict[str, Array]:
    """The values for a `snt.GRU`'s variables.

    Args:
        weights: Weights with the reset gate before the matmul. Missing biases become zeros, which
            Sonnet's core always has.

    Raises:
        ValueError: Sonnet's GRU cannot be this one.
    """
    weights.require("Sonnet", reset_after=False)
    weights = weights.with_update_gate("replace")
    arrays = (weights.kernel, weights.recurrent_kernel, weights.input_bias)
    return {name: np.asarray(array) for name, array in zip(NAMES, arrays, strict=True)}
