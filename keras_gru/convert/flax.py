"""`flax.linen.GRUCell` and `flax.nnx.GRUCell`.

The reset gate comes after the matmul and the update gate keeps.

The parameters of linen's are one Dense layer per gate and matmul: `ir`, `iz`, `in` with kernel
(D, U) and bias, `hr`, `hz` with kernel (U, U) only, and `hn` with kernel and bias. A gate's two
biases are only ever added, so the second one is folded into the first on the way out; the
candidate's two are separated by the reset gate.

Those of nnx's are two Linear layers, `dense_i` with kernel (D, 3U) and bias (3U,), and `dense_h`
with kernel (U, 3U) only; the gates stand in the order r, z, candidate. It lacks the candidate's
second bias, and so cannot be every GRU.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_gru.convert.arrays import take
from keras_gru.convert.gru_weights import Array, GRUWeights, pack, split
from keras_gru.functional import Gates

INPUT = Gates("iz", "ir", "in")
RECURRENT = Gates("hz", "hr", "hn")
INPUTS, STATES = "dense_i", "dense_h"


def from_flax(params: Mapping[str, Any]) -> GRUWeights:
    """The parameters of a linen GRUCell.

    Args:
        params: The cell's own dict, `{"ir": {"kernel": ..., "bias": ...}, ...}`, or the variables
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
        weights: Weights with the reset gate after the matmul. Missing biases become zeros, which
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


def from_flax_nnx(params: Mapping[str, Any]) -> GRUWeights:
    """The parameters of an nnx GRUCell.

    Args:
        params: The cell's own, `{"dense_i": {"kernel": ..., "bias": ...}, "dense_h": ...}`, as
            `nnx.to_pure_dict(nnx.state(cell, nnx.Param))` or the state itself.

    Raises:
        ValueError: A parameter is missing.
    """
    if missing := [name for name in (INPUTS, STATES) if name not in params]:
        raise ValueError(
            f"The parameters of a Flax nnx GRUCell must have {[INPUTS, STATES]}; missing: "
            f"{missing}. Received: {sorted(map(str, params))}"
        )
    kernel, bias = take("Flax nnx", params[INPUTS], ("kernel", "bias"))
    (recurrent,) = take("Flax nnx", params[STATES], ("kernel",))
    return GRUWeights(
        _exchanged(kernel),
        _exchanged(recurrent),
        np.stack([_exchanged(bias), np.zeros_like(bias)]),
    )


def to_flax_nnx(weights: GRUWeights) -> dict[str, dict[str, Array]]:
    """The parameters of an nnx GRUCell, which `nnx.update` sets.

    Args:
        weights: Weights with the reset gate after the matmul, whose candidate has no recurrent
            bias. Missing biases become zeros, which Flax's cell always has.

    Raises:
        ValueError: Flax's GRU cannot be this one.
    """
    weights.require("Flax nnx", reset_after=True)
    weights = weights.with_update_gate("keep")
    recurrent_bias = split(weights.recurrent_bias)
    if np.any(recurrent_bias.g):
        raise ValueError(
            "Flax nnx's GRU has no recurrent bias of the candidate: it must be 0, as in a layer "
            f"that was never trained. Received: values up to {np.abs(recurrent_bias.g).max():.3g}"
        )
    return {
        INPUTS: {
            "kernel": _exchanged(weights.kernel),
            "bias": _exchanged(weights.input_bias + weights.recurrent_bias),
        },
        STATES: {"kernel": _exchanged(weights.recurrent_kernel)},
    }


def _exchanged(packed: Array) -> Array:
    """Gates (..., 3U) in nnx's order from ours, or the other way round."""
    z, r, g = split(packed)
    return pack(Gates(r, z, g))
