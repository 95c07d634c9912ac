"""The derivative of one state by the weights, path by path.

A weight acts at every step. What it does at step k reaches the state after step t through the
states between: the path is ∂h_t/∂h_k, a product of one-step Jacobians, times the explicit
derivative at step k, which holds the state before step k fixed. The total derivative is the sum
over k (equation 24 and the text above it in DERIVATION.md).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_gru.teaching.cells.notebook import Notebook, Values
from keras_gru.teaching.network_fields import Array
from keras_gru.teaching.trace import Trace

_MOST_NUMBERS = 10_000_000


@dataclass(frozen=True)
class Path:
    """From the weights at one step to a later state."""

    step: int
    """k, at which the weights act."""
    jacobian: Array
    """∂h_t/∂h_k, (U, U): element (p, i) is ∂h_t[p]/∂h_k[i], an LSTM's cell held fixed."""
    derivatives: Values
    """The path's part of ∂h_t/∂w by the name of w, (U, ...): element (p, ...) is of h_t[p]."""


@dataclass(frozen=True)
class Paths:
    """Every path to the state after one step."""

    step: int
    """t."""
    paths: tuple[Path, ...]
    """From k = t, the direct one, back to k = 0."""
    delta: Array | None
    """The gradient (U,) that the loss of step t gives to h_t; None at a step without a loss."""

    def total(self, weight: str) -> Array:
        """∂h_t/∂w, (U, ...), the sum of all paths."""
        return np.asarray(sum(path.derivatives[weight] for path in self.paths))

    def shares(self, weight: str) -> list[Array]:
        """What each path gives to the gradient of the loss of step t by a weight.

        Raises:
            ValueError: Step t has no loss.
        """
        if self.delta is None:
            raise ValueError(f"step: expected one with a loss, got {self.step}")
        return [np.tensordot(self.delta, path.derivatives[weight], 1) for path in self.paths]

    def to_json(self) -> dict[str, Any]:
        """Plain lists and numbers, for `json.dump`."""
        found: dict[str, Any] = {"step": self.step, "paths": []}
        for index, path in enumerate(self.paths):
            entry: dict[str, Any] = {"from": path.step, "jacobian": path.jacobian.tolist()}
            if self.delta is not None:
                entry |= {f"d{w}": self.shares(w)[index].tolist() for w in path.derivatives}
            found["paths"].append(entry)
        return found


def last_paths(found: Trace) -> Paths | None:
    """Paths to the last state with a loss of its own, or to the last state of all.

    None for networks that are not small: the derivative of every unit by every weight over every
    path would fill the memory.
    """
    with_loss = [t for t, step in enumerate(found.steps) if "loss" in step]
    step = with_loss[-1] if with_loss else len(found.steps) - 1
    network = found.network
    if (step + 1) * network.units * network.parameter_count() > _MOST_NUMBERS:
        return None
    return state_paths(found, step)


def state_paths(found: Trace, step: int) -> Paths:
    """Split ∂h_t/∂w by the step at which the weight acts.

    Args:
        found: A trace.
        step: t, from 0.
    """
    network = found.network
    by_unit = [_from_unit(found, step, unit) for unit in range(network.units)]
    paths = []
    for index, k in enumerate(range(step, -1, -1)):
        arriving = [unit[index] for unit in by_unit]
        weights = [name[1:] for name in arriving[0] if name[:2] in ("dW", "dU", "db", "dc")]
        paths.append(
            Path(
                k,
                np.array([values["dh_new"] for values in arriving]),
                {
                    w: np.array([values[f"d{w}"] for values in arriving])
                    for w in weights
                    if w.split("_")[-1] in network.blocks
                },
            )
        )
    delta = found.steps[step].get("dh_output") if "loss" in found.steps[step] else None
    return Paths(step, tuple(paths), delta)


def _from_unit(found: Trace, step: int, unit: int) -> list[Values]:
    """Backward from one element of h_t: what arrives at each step, from t back to 0."""
    network = found.network
    future = {name: np.zeros(network.units) for name in network.cell.start(network)}
    future["h"][unit] = 1.0
    arriving = []
    for k in range(step, -1, -1):
        note = Notebook(k, {}, found.steps[k])
        note("dh_new", future["h"])
        future = network.cell.backward(network, {**future, "h": np.zeros(network.units)}, note)
        arriving.append(note.computed)
    return arriving
