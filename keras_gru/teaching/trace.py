"""Every intermediate of a small network's forward pass, loss, backward pass and update.

Float64 NumPy, one sequence, one equation of DERIVATION.md per line, so that it can be read and
compared with a calculation on paper; it is not fast.

A weight acts at every step. Its effect at step k reaches the state after step t through the states
between: such a path is ∂h_t/∂h_k, a product of one-step Jacobians, times the explicit derivative
at step k, which holds the state before step k fixed. The total derivative is the sum over k
(equation 24 and the text above it in DERIVATION.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_gru.teaching.cells import Array, Line, Values, sigmoid
from keras_gru.teaching.network import Network, NetworkError

Substitutes = Mapping[tuple[int | None, str], Array]
"""Values by (step, name), to continue with in place of computed ones; NaN where those stay."""

_MAX_PATH_NUMBERS = 10_000_000
"""Numbers in the derivatives of all paths above which no paths are computed."""


class Notebook:
    """Quantities of one step under their names, each replaced by its substitute if it has one.

    Args:
        step: Step of the sequence, None for its totals.
        substitutes: Values to hand on in place of computed ones.
        known: Values that are known before the calculation.
    """

    def __init__(
        self, step: int | None, substitutes: Substitutes, known: Values | None = None
    ) -> None:
        self.computed: Values = {}
        self.lines: list[Line] = []
        self._handed_on: Values = dict(known or {})
        self._step = step
        self._substitutes = substitutes

    def __call__(
        self,
        name: str,
        value: Any,
        equation: str | None = None,
        label: str = "",
        kind: str = "",
        formula: str = "",
    ) -> Array:
        """Record a computed value; returns it, or its substitute.

        With an equation the value has a line in a calculation on paper, see `Line`.

        Raises:
            NetworkError: The value is not finite.
        """
        array = np.asarray(value, dtype=np.float64)
        if not np.all(np.isfinite(array)):
            place = "totals" if self._step is None else f"step {self._step}"
            raise NetworkError(
                f"{place}, {name}: expected finite values, got {array.tolist()}; "
                "the weights or inputs are too large"
            )
        self.computed[name] = array
        if equation is not None:
            self.lines.append(Line(equation, label, name, kind, formula))
        substitute = self._substitutes.get((self._step, name))
        if substitute is not None:
            array = np.where(np.isnan(substitute), array, substitute)
        self._handed_on[name] = array
        return array

    def __getitem__(self, name: str) -> Array:
        return self._handed_on[name]

    def __contains__(self, name: str) -> bool:
        return name in self._handed_on


@dataclass(frozen=True)
class Trace:
    """Every quantity of a network's calculation, by step and name.

    Names of a step's quantities: x, h (previous state), those of the cell's own lines, h_new,
    logits, y, loss; backward d_logits, dh_output, dh_future, dh_new, those of the cell, dh, dx;
    and the step's share of each weight gradient, dW_z … db_out. docs/trace.md lists them all.
    """

    network: Network
    steps: tuple[Values, ...]
    totals: Values
    """loss_sum, loss_mean, loss, the weight gradients summed over steps (dW_z …), the updated
    weights (new_W_z …)."""
    forward_lines: tuple[Line, ...]
    """Lines of a step's forward calculation, in the order of a calculation on paper."""
    backward_lines: tuple[Line, ...]
    """Lines of a step's backward calculation; none without targets."""

    def to_json(self) -> dict[str, Any]:
        """Convert to plain lists and numbers, for `json.dump`."""
        return {
            "steps": [
                {name: value.tolist() for name, value in step.items()} for step in self.steps
            ],
            "totals": {name: value.tolist() for name, value in self.totals.items()},
        }


def trace(network: Network, substitutes: Substitutes | None = None) -> Trace:
    """Run a network forward and, where it has targets, backward; update where it has a rate.

    Args:
        network: Weights, conventions, inputs and targets.
        substitutes: Values by (step, name) to continue with in place of computed ones, NaN where
            the computed one stays. The trace still holds the computed value: so each line of a
            printed calculation can be checked from the lines above it.

    Raises:
        NetworkError: A quantity overflows.
    """
    notes = [Notebook(t, substitutes or {}) for t in range(len(network.inputs))]
    totals = Notebook(None, substitutes or {})
    state = network.cell.start(network)
    with np.errstate(over="ignore", invalid="ignore"):
        for t, note in enumerate(notes):
            state = _forward(network, t, state, note)
        forward_lines = tuple(notes[0].lines)
        if network.targets:
            _losses(network, notes, totals)
            future = {name: np.zeros(network.units) for name in state}
            for note in reversed(notes):
                future = _backward(network, future, note)
            _accumulate(network, notes, totals)
    backward_lines = tuple(notes[0].lines[len(forward_lines) :])
    steps = tuple(note.computed for note in notes)
    return Trace(network, steps, totals.computed, forward_lines, backward_lines)


def _forward(network: Network, t: int, state: Values, note: Notebook) -> Values:
    note("x", network.inputs[t])
    state = network.cell.forward(network, state, note)
    if network.output_kernel is not None and network.output_bias is not None:  # (16)
        product = note("hV", state["h"] @ network.output_kernel)
        logits = note("logits", product + network.output_bias)
        note("y", _predict(network.loss, logits))
        if network.targets and (target := network.targets[t]) is not None:  # (17)
            note("target", target)
            note("loss", _loss(network.loss, logits, target))
    return state


def _losses(network: Network, notes: Sequence[Notebook], total: Notebook) -> None:
    losses = [note["loss"] for note in notes if "loss" in note]
    summed = total("loss_sum", np.sum(losses))
    mean = total("loss_mean", np.mean(losses))
    total("loss", mean if network.reduction == "mean" else summed)


def _backward(network: Network, future: Values, note: Notebook) -> Values:
    """Record the gradients of the whole loss at one step; returns those of the state before it."""
    with_loss = sum(target is not None for target in network.targets)
    dh_output = np.zeros(network.units)
    if network.output_kernel is not None and "target" in note:
        scale = 1.0 / with_loss if network.reduction == "mean" else 1.0
        d_logits = note("d_logits", scale * (note["y"] - note["target"]))  # (18)
        note("dW_out", np.outer(note["h_new"], d_logits))  # (19)
        note("db_out", d_logits)
        dh_output = d_logits @ network.output_kernel.T  # (20)
    of_output = note("dh_output", dh_output, "20", "δh′ from this step's output", formula="δo Vᵀ")
    equation, label = network.cell.state_equation, "δh′ from the future"
    of_future = note("dh_future", future["h"], equation, label, formula="δh of the next step")
    note("dh_new", of_output + of_future, "6", "δh′ = sum of both", "result")
    return network.cell.backward(network, future, note)


def _accumulate(network: Network, notes: Sequence[Notebook], total: Notebook) -> None:
    for name, weight in network.weights.items():
        shares = [note[f"d{name}"] for note in notes if f"d{name}" in note]
        gradient = total(f"d{name}", np.sum(shares, axis=0))  # (15)
        if network.learning_rate is not None:
            total(f"new_{name}", weight - network.learning_rate * gradient)  # (21)


def _predict(loss: str, logits: Array) -> Array:
    if loss == "cross_entropy":
        powers = np.exp(logits - logits.max())
        return np.asarray(powers / powers.sum())
    return sigmoid(logits) if loss == "binary_cross_entropy" else logits


def _loss(loss: str, logits: Array, target: Array) -> float:
    if loss == "cross_entropy":
        shifted = logits - logits.max()
        return float(np.sum(target * (np.log(np.exp(shifted).sum()) - shifted)))
    if loss == "binary_cross_entropy":
        return float(np.sum(np.logaddexp(0, logits) - target * logits))
    return float(0.5 * np.sum((logits - target) ** 2))


@dataclass(frozen=True)
class Path:
    """One path from the weights at one step to a later state."""

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
    """Step t of the state."""
    paths: tuple[Path, ...]
    """Paths from step k to step t, from k = t, the direct one, back to k = 0."""
    delta: Array | None
    """The gradient (U,) that the loss of step t gives to h_t; None at a step without a loss."""

    def total(self, weight: str) -> Array:
        """Compute ∂h_t/∂w, (U, ...), the sum of all paths."""
        return np.asarray(sum(path.derivatives[weight] for path in self.paths))

    def shares(self, weight: str) -> list[Array]:
        """Compute each path's part of the gradient of the loss of step t by a weight.

        Raises:
            ValueError: Step t has no loss.
        """
        if self.delta is None:
            raise ValueError(f"step: expected one with a loss, got {self.step}")
        return [np.tensordot(self.delta, path.derivatives[weight], 1) for path in self.paths]

    def to_json(self) -> dict[str, Any]:
        """Convert to plain lists and numbers, for `json.dump`."""
        found: dict[str, Any] = {"step": self.step, "paths": []}
        for index, path in enumerate(self.paths):
            entry: dict[str, Any] = {"from": path.step, "jacobian": path.jacobian.tolist()}
            if self.delta is not None:
                entry |= {f"d{w}": self.shares(w)[index].tolist() for w in path.derivatives}
            found["paths"].append(entry)
        return found


def last_paths(found: Trace) -> Paths | None:
    """Split the derivative of the last state with a loss of its own, or of the last state of all.

    Returns:
        The paths; None for networks that are not small, for which the derivative of every unit by
        every weight over every path would fill the memory.
    """
    with_loss = [t for t, step in enumerate(found.steps) if "loss" in step]
    step = with_loss[-1] if with_loss else len(found.steps) - 1
    network = found.network
    if (step + 1) * network.units * network.parameter_count() > _MAX_PATH_NUMBERS:
        return None
    return state_paths(found, step)


def state_paths(found: Trace, step: int) -> Paths:
    """Split ∂h_t/∂w by the step at which the weight acts.

    Args:
        found: A trace.
        step: The step t, counted from 0.
    """
    network = found.network
    by_unit = [_from_unit(found, step, unit) for unit in range(network.units)]
    weights = [name for name in network.weights if not name.endswith("_out")]
    paths = []
    for index, k in enumerate(range(step, -1, -1)):
        arriving = [unit[index] for unit in by_unit]
        derivatives = {w: np.array([values[f"d{w}"] for values in arriving]) for w in weights}
        paths.append(Path(k, np.array([values["dh_new"] for values in arriving]), derivatives))
    delta = found.steps[step].get("dh_output") if "loss" in found.steps[step] else None
    return Paths(step, tuple(paths), delta)


def _from_unit(found: Trace, step: int, unit: int) -> list[Values]:
    """Go backward from one element of h_t; returns the gradients at each step, from t to 0."""
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
