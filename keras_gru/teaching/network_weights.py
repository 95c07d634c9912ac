"""The weights of a network's file: by block as texts write them, or as Keras stacks them."""

from typing import NamedTuple

import numpy as np

from keras_gru.teaching.network_fields import Array, NetworkError, array, mapping, required

ByBlock = dict[str, Array]


class Weights(NamedTuple):
    """Arrays by block, for row vectors: D inputs, U units."""

    kernel: ByBlock
    """(D, U)."""
    recurrent_kernel: ByBlock
    """(U, U)."""
    bias: ByBlock
    """(U,)."""
    recurrent_bias: ByBlock
    """(U,); zeros without a second bias."""


def read_weights(
    content: object, blocks: tuple[str, ...], features: int, second_bias: bool
) -> Weights:
    """Weights from a network's JSON.

    Args:
        content: An object with an object `W`, `U`, `b` per block, for column vectors, or with
            `kernel`, `recurrent_kernel` and `bias` as `layer.get_weights()` gives them.
        blocks: Names of the cell's blocks, in Keras' order.
        features: D.
        second_bias: Whether there is a recurrent bias.

    Raises:
        NetworkError: Naming the field, what was expected and what came.
    """
    if isinstance(content, dict) and "kernel" in content:
        return _stacked(content, blocks, features, second_bias)
    parts_of = mapping(content, "weights", blocks)
    found = Weights({}, {}, {}, {})
    units: int | None = None
    for block in blocks:
        at = f"weights.{block}"
        known = ("W", "U", "b", "b_recurrent") if second_bias else ("W", "U", "b")
        given = required(parts_of, block, "an object with W, U, b", "weights.")
        parts = mapping(given, at, known)
        U = array(
            required(parts, "U", "a (units, units) matrix", f"{at}."), f"{at}.U", (units, units)
        )
        if U.shape[0] != U.shape[1]:
            raise NetworkError(f"{at}.U: expected a square (units, units) matrix, got {U.shape}")
        units = U.shape[0]
        W = required(parts, "W", "a (units, inputs) matrix", f"{at}.")
        found.kernel[block] = array(W, f"{at}.W", (units, features)).T
        found.recurrent_kernel[block] = U.T
        zeros = [0.0] * units
        found.bias[block] = array(parts.get("b", zeros), f"{at}.b", (units,))
        recurrent = parts.get("b_recurrent", zeros)
        found.recurrent_bias[block] = array(recurrent, f"{at}.b_recurrent", (units,))
    return found


def _stacked(content: object, blocks: tuple[str, ...], features: int, second_bias: bool) -> Weights:
    stacked = mapping(content, "weights", ("kernel", "recurrent_kernel", "bias"))
    count = len(blocks)
    columns = "units" if count == 1 else f"{count} * units"
    what = f"a (units, {columns}) matrix"
    recurrent = required(stacked, "recurrent_kernel", what, "weights.")
    U = array(recurrent, "weights.recurrent_kernel", (None, None))
    units = U.shape[0]
    if U.shape != (units, count * units) or units == 0:
        raise NetworkError(f"weights.recurrent_kernel: expected {what}, got {U.shape}")
    W = array(stacked["kernel"], "weights.kernel", (features, count * units))
    shape = (2, count * units) if second_bias else (count * units,)
    b = array(stacked.get("bias", np.zeros(shape).tolist()), "weights.bias", shape)
    rows = b.reshape(-1, count * units)
    recurrent_row = rows[1] if second_bias else np.zeros(count * units)
    return Weights(
        *(
            dict(zip(blocks, np.split(part, count, axis=-1), strict=True))
            for part in (W, U, rows[0], recurrent_row)
        )
    )
