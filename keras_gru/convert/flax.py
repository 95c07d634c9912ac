"""`flax.linen.GRUCell`.

Its parameters are one Dense layer per gate and matmul: `ir`, `iz`, `in` with kernel (D, U) and
bias, `hr`, `hz` with kernel (U, U) only, and `hn` with kernel and bias. The reset gate comes after
the matmul and the update gate keeps. A gate's two biases are only ever added, so the second one is
folded into the first on the way out; the candidate's two are separated by the reset gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_gru.convert.gru_weights import Array, GRUWeights, pack, split, take
from keras_gru.weights import Gates

INPUT = Gates("iz", "ir", "in")
RECURRENT = Gates("hz", "hr", "hn")


def from_flax(params: Mapping[str, Any]) -> GRUWeights:
    """The parameters of a linen GRUCell.

    Args:
        params: the cell's own dict, `{"ir": {"kernel": ..., "bias": ...}, ...}`, or the variables
            around it, `{"params": {...}}`.

    Raises:
        ValueError: A parameter is missing.
    """
    params = params.get("params", params)
    missing = [name for name in (*INPUT, *RECURRENT) if name not in params]
    if missing:
        raise ValueError(
            f"The parameters of a Flax GRUCell must have {[*INPUT, *RECURRENT]}; missing: "
            f"{missing}. Received: {sorted(map(str, params))}"
        )
    kernels, biases = zip(
        *(take("Flax", params[name], ("kernel", "bias")) for name in INPUT), strict=True
    )
    recurrent = [take("Flax", params[name], ("kernel",))[0] for name in RECURRENT]
    (candidate_bias,) = take("Flax", params[RECURRENT.g], ("bias",))
    zeros = np.zeros_like(candidate_bias)
    bias = np.stack([pack(Gates(*biases)), pack(Gates(zeros, zeros, candidate_bias))])
    return GRUWeights(pack(Gates(*kernels)), pack(Gates(*recurrent)), bias)


def to_flax(weights: GRUWeights) -> dict[str, dict[str, Array]]:
    """A linen GRUCell's parameters, the `"params"` of its variables.

    Args:
        weights: weights with the reset gate after the matmul. Missing biases become zeros, which
            Flax's cell always has.

    Raises:
        ValueError: Flax's GRU cannot be this one.
    """
    weights.require("Flax", reset_after=True)
    weights = weights.with_update_gate("keep")
    recurrent_bias = split(weights.recurrent_bias)
    input_bias = split(weights.input_bias)
    folded = Gates(input_bias.z + recurrent_bias.z, input_bias.r + recurrent_bias.r, input_bias.g)
    params: dict[str, dict[str, Array]] = {}
    for name, kernel, bias in zip(INPUT, split(weights.kernel), folded, strict=True):
        params[name] = {"kernel": kernel, "bias": bias}
    for name, kernel in zip(RECURRENT, split(weights.recurrent_kernel), strict=True):
        params[name] = {"kernel": kernel}
    params[RECURRENT.g]["bias"] = recurrent_bias.g
    return params
