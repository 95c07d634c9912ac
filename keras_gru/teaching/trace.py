"""Every intermediate of a small network's forward pass, loss, backward pass and update.

Float64 NumPy, one sequence, one equation of DERIVATION.md per line: made to be read and to be
compared with a calculation on paper, not to be fast.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_gru.teaching.cells.activations import sigmoid
from keras_gru.teaching.cells.notebook import Notebook, Substitutes, Values
from keras_gru.teaching.network import Network
from keras_gru.teaching.network_fields import Array


@dataclass(frozen=True)
class Trace:
    """What `trace` found.

    Names of a step's quantities: x, h (previous state), those of the cell's own lines, h_new,
    logits, y, loss; backward d_logits, dh_output, dh_future, dh_new, those of the cell, dh, dx;
    and the step's share of each weight gradient, dW_z … db_out. docs/trace.md lists them all.
    """

    network: Network
    steps: tuple[Values, ...]
    totals: Values
    """loss_sum, loss_mean, loss, the weight gradients summed over steps (dW_z …), the updated
    weights (new_W_z …)."""

    def to_json(self) -> dict[str, Any]:
        """Plain lists and numbers, for `json.dump`."""
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
        substitutes: Values to continue with in place of computed ones, by (step, name), NaN
            where the computed one stays. The trace still holds the computed value: so each
            line of a printed calculation can be checked from the lines above it.

    Raises:
        NetworkError: A quantity overflows.
    """
    notes = [Notebook(t, substitutes or {}) for t in range(len(network.inputs))]
    totals = Notebook(None, substitutes or {})
    state = network.cell.start(network)
    with np.errstate(over="ignore", invalid="ignore"):
        for t, note in enumerate(notes):
            state = _forward(network, t, state, note)
        if network.targets:
            _losses(network, notes, totals)
            future = {name: np.zeros(network.units) for name in state}
            for note in reversed(notes):
                future = _backward(network, future, note)
            _accumulate(network, notes, totals)
    return Trace(network, tuple(note.computed for note in notes), totals.computed)


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
    losses = [note.handed_on["loss"] for note in notes if "loss" in note.handed_on]
    summed = total("loss_sum", np.sum(losses))
    mean = total("loss_mean", np.mean(losses))
    total("loss", mean if network.reduction == "mean" else summed)


def _backward(network: Network, future: Values, note: Notebook) -> Values:
    """Gradients of the whole loss at step t; returns those for the state before it."""
    seen = note.handed_on
    with_loss = sum(target is not None for target in network.targets)
    dh_output = np.zeros(network.units)
    if network.output_kernel is not None and "target" in seen:
        scale = 1.0 / with_loss if network.reduction == "mean" else 1.0
        d_logits = note("d_logits", scale * (seen["y"] - seen["target"]))  # (18)
        note("dW_out", np.outer(seen["h_new"], d_logits))  # (19)
        note("db_out", d_logits)
        dh_output = d_logits @ network.output_kernel.T  # (20)
    note("dh_new", note("dh_output", dh_output) + note("dh_future", future["h"]))  # (6)
    return network.cell.backward(network, future, note)


def _accumulate(network: Network, notes: Sequence[Notebook], total: Notebook) -> None:
    for name, weight in _weights(network).items():
        shares = [note.handed_on[f"d{name}"] for note in notes if f"d{name}" in note.handed_on]
        gradient = total(f"d{name}", np.sum(shares, axis=0))  # (15)
        if network.learning_rate is not None:
            total(f"new_{name}", weight - network.learning_rate * gradient)  # (21)


def _weights(network: Network) -> Values:
    """Every trained array under the name of its gradient without the d."""
    weights: Values = {}
    for block in network.blocks:
        weights[f"W_{block}"] = network.kernel[block]
        weights[f"U_{block}"] = network.recurrent_kernel[block]
        weights[f"b_{block}"] = network.bias[block]
        if network.reset_after:
            weights[f"c_{block}"] = network.recurrent_bias[block]
    if network.output_kernel is not None and network.output_bias is not None:
        weights["W_out"] = network.output_kernel
        weights["b_out"] = network.output_bias
    return weights


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
