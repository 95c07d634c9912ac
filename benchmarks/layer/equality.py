"""All contenders compute the same: the weights in each framework's layout, and the comparison."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.layer.contest import Array, Contest
from benchmarks.layer.worker import Key, UnequalError
from keras_gru.convert import GRUWeights, from_flax, from_pytorch, to_flax, to_pytorch

# Largest difference as a share of the largest value; float32 sums are taken in different orders.
TOLERANCE = {"inference": 2e-5, "training": 2e-4, "fit": 1e-3, "tape": 1e-3}
_OTHERWISE = 2e-5


def weights_for(framework: str, contest: Contest) -> Any:
    """A contest's weights, as a framework's worker takes them."""
    forward = contest.weights()
    if framework == "torch":
        return to_pytorch(GRUWeights(*forward))
    if framework == "flax":
        return to_flax(GRUWeights(*forward))
    if contest.table == "bidirectional":
        return [*forward, *contest.weights(1)]
    return [*forward]


def assert_equal(framework_of: dict[Key, str], results: dict[Key, Any]) -> dict[Key, float]:
    """Compare every contender with the first one of its measure.

    Args:
        framework_of: the framework of each contender.
        results: what each computed: one array, or the gradients of its weights.

    Returns:
        Per contender the largest difference found, as a share of the largest value.

    Raises:
        UnequalError: One is above `TOLERANCE`, or not a number.
    """
    found: dict[Key, float] = {}
    references: dict[str, tuple[str, list[Array]]] = {}
    for (measure, name), result in results.items():
        arrays = _in_our_layout(framework_of[measure, name], result)
        reference, wanted = references.setdefault(measure, (name, arrays))
        for array, other in zip(arrays, wanted, strict=True):
            if array.shape != other.shape or not np.isfinite(array).all() or not array.any():
                raise UnequalError(
                    f"{name} must give finite values of shape {other.shape}, not all zero, in "
                    f"{measure}. Received: shape {array.shape}, {array.min()} to {array.max()}"
                )
        pairs = zip(arrays, wanted, strict=True)
        found[measure, name] = float(np.max([_difference(*pair) for pair in pairs]))
        limit = TOLERANCE.get(measure, _OTHERWISE)
        if not found[measure, name] <= limit:
            raise UnequalError(
                f"{name} and {reference} differ in {measure} by {found[measure, name]:.1e} of the "
                f"largest value; at most {limit:.0e} is rounding"
            )
    return found


def _in_our_layout(framework: str, result: Any) -> list[Array]:
    """Arrays in the layout of Keras, whatever the framework's."""
    if framework == "torch" and isinstance(result, dict):
        weights = from_pytorch(result)
        return [weights.kernel, weights.recurrent_kernel, np.asarray(weights.bias)]
    if framework == "flax" and isinstance(result, dict):
        weights = from_flax(result)
        bias = np.array(weights.bias)
        gates = 2 * weights.units
        # One bias per gate instead of two whose gradients are the same.
        bias[1, :gates] = bias[0, :gates]
        return [weights.kernel, weights.recurrent_kernel, bias]
    return [np.asarray(one) for one in (result if isinstance(result, list) else [result])]


def _difference(array: Array, wanted: Array) -> float:
    return float(np.abs(array - wanted).max() / np.abs(wanted).max())
