"""Every intermediate of a small network's forward pass, loss, backward pass and update.

Float64 NumPy, one sequence, one equation of DERIVATION.md per line: made to be read and to be
compared with a calculation on paper, not to be fast.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_gru.teaching.network import GATES, Network
from keras_gru.teaching.network_fields import Array, NetworkError

Values = dict[str, Array]
Substitutes = Mapping[tuple[int | None, str], Array]


@dataclass(frozen=True)
class Trace:
    """What `trace` found.

    Names of a step's quantities: x, h (previous state), a_z, z, a_r, r, q or rh, a_g, g, kept,
    added, h_new, logits, y, loss; backward d_logits, dh_output, dh_future, dh_new, d_z, d_g,
    d_a_z, d_a_g, d_q or d_rh, d_r, d_a_r, the three paths dh_direct, dh_candidate, dh_gates,
    their sum dh, dx; and the step's share of each weight gradient, dW_z … db_out.
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


class _Notebook:
    """Records values under their names; returns a substitute where one is given."""

    def __init__(self, step: int | None, substitutes: Substitutes) -> None:
        self.computed: Values = {}
        self.handed_on: Values = {}
        self._step = step
        self._substitutes = substitutes

    def __call__(self, name: str, value: Any) -> Array:
        array = np.asarray(value, dtype=np.float64)
        if not np.all(np.isfinite(array)):
            place = "totals" if self._step is None else f"step {self._step}"
            raise NetworkError(
                f"{place}, {name}: expected finite values, got {array.tolist()}; "
                "the weights or inputs are too large"
            )
        self.computed[name] = array
        substitute = self._substitutes.get((self._step, name))
        if substitute is not None:
            array = np.where(np.isnan(substitute), array, substitute)
        self.handed_on[name] = array
        return array


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
    notes = [_Notebook(t, substitutes or {}) for t in range(len(network.inputs))]
    totals = _Notebook(None, substitutes or {})
    h = network.initial_state
    with np.errstate(over="ignore", invalid="ignore"):
        for t, note in enumerate(notes):
            h = _forward(network, t, h, note)
        if network.targets:
            _losses(network, notes, totals)
            dh = np.zeros(network.units)
            for note in reversed(notes):
                dh = _backward(network, dh, note)
            _accumulate(network, notes, totals)
    return Trace(network, tuple(note.computed for note in notes), totals.computed)


def _forward(network: Network, t: int, h: Array, note: _Notebook) -> Array:
    W, U = network.kernel, network.recurrent_kernel
    b, c = network.bias, network.recurrent_bias
    gate_activation = FUNCTIONS[network.recurrent_activation]
    x, h = note("x", network.inputs[t]), note("h", h)

    for gate in ("z", "r"):  # (1), (2)
        input_part = note(f"xW_{gate}", x @ W[gate])
        state_part = note(f"hU_{gate}", h @ U[gate])
        a = note(f"a_{gate}", input_part + b[gate] + state_part + c[gate])
        note(gate, gate_activation(a))
    z, r = note.handed_on["z"], note.handed_on["r"]

    input_part = note("xW_g", x @ W["g"])
    if network.reset_after:  # (3a)
        q = note("q", h @ U["g"] + c["g"])
        state_part = note("rq", r * q)
    else:  # (3b)
        rh = note("rh", r * h)
        state_part = note("rhU_g", rh @ U["g"])
    a_g = note("a_g", input_part + b["g"] + state_part)
    g = note("g", FUNCTIONS[network.activation](a_g))

    keep = note("keep", z if network.update_gate == "keep" else 1 - z)
    add = note("add", 1 - z if network.update_gate == "keep" else z)
    h_new = note("h_new", note("kept", keep * h) + note("added", add * g))  # (4a), (4b)

    if network.output_kernel is not None and network.output_bias is not None:  # (16)
        logits = note("logits", note("hV", h_new @ network.output_kernel) + network.output_bias)
        note("y", _predict(network.loss, logits))
        if network.targets and (target := network.targets[t]) is not None:  # (17)
            note("target", target)
            note("loss", _loss(network.loss, logits, target))
    return h_new


def _losses(network: Network, notes: Sequence[_Notebook], total: _Notebook) -> None:
    losses = [note.handed_on["loss"] for note in notes if "loss" in note.handed_on]
    summed = total("loss_sum", np.sum(losses))
    mean = total("loss_mean", np.mean(losses))
    total("loss", mean if network.reduction == "mean" else summed)


def _backward(network: Network, future: Array, note: _Notebook) -> Array:
    """Gradients of the whole loss at step t; returns the gradient for the state before it."""
    W, U = network.kernel, network.recurrent_kernel
    seen = note.handed_on
    x, h, z, r, g = (seen[name] for name in ("x", "h", "z", "r", "g"))
    gate_slope, slope = SLOPES[network.recurrent_activation], SLOPES[network.activation]
    with_loss = sum(target is not None for target in network.targets)

    dh_output = np.zeros(network.units)
    if network.output_kernel is not None and "target" in seen:
        scale = 1.0 / with_loss if network.reduction == "mean" else 1.0
        d_logits = note("d_logits", scale * (seen["y"] - seen["target"]))  # (18)
        note("dW_out", np.outer(seen["h_new"], d_logits))  # (19)
        note("db_out", d_logits)
        dh_output = d_logits @ network.output_kernel.T  # (20)
    dh_new = note("dh_new", note("dh_output", dh_output) + note("dh_future", future))  # (6)

    difference = note("dz_factor", h - g if network.update_gate == "keep" else g - h)
    d_z = note("d_z", dh_new * difference)  # (7)
    d_g = note("d_g", dh_new * seen["add"])  # (8)
    d_a_z = note("d_a_z", d_z * note("slope_z", gate_slope(z)))  # (9)
    d_a_g = note("d_a_g", d_g * note("slope_g", slope(g)))  # (10)

    if network.reset_after:  # (11a)
        d_q = note("d_q", d_a_g * r)
        d_r = note("d_r", d_a_g * seen["q"])
        dh_candidate = note("dh_candidate", d_q @ U["g"].T)
    else:  # (11b)
        d_rh = note("d_rh", d_a_g @ U["g"].T)
        d_r = note("d_r", d_rh * h)
        dh_candidate = note("dh_candidate", d_rh * r)
    d_a_r = note("d_a_r", d_r * note("slope_r", gate_slope(r)))  # (12)

    dh_direct = note("dh_direct", dh_new * seen["keep"])  # (13)
    through_z = note("dh_update_gate", d_a_z @ U["z"].T)
    through_r = note("dh_reset_gate", d_a_r @ U["r"].T)
    dh_gates = note("dh_gates", through_z + through_r)
    dh = note("dh", dh_direct + dh_candidate + dh_gates)
    note("dx", d_a_z @ W["z"].T + d_a_r @ W["r"].T + d_a_g @ W["g"].T)  # (14)

    for gate, d_a in zip(GATES, (d_a_z, d_a_r, d_a_g), strict=True):  # (15), this step's share
        note(f"dW_{gate}", np.outer(x, d_a))
        note(f"db_{gate}", d_a)
    note("dU_z", np.outer(h, d_a_z))
    note("dU_r", np.outer(h, d_a_r))
    note("dU_g", np.outer(h, d_q) if network.reset_after else np.outer(seen["rh"], d_a_g))
    if network.reset_after:
        note("dc_z", d_a_z)
        note("dc_r", d_a_r)
        note("dc_g", d_q)
    return dh


def _accumulate(network: Network, notes: Sequence[_Notebook], total: _Notebook) -> None:
    for name, weight in _weights(network).items():
        shares = [note.handed_on[f"d{name}"] for note in notes if f"d{name}" in note.handed_on]
        gradient = total(f"d{name}", np.sum(shares, axis=0))  # (15)
        if network.learning_rate is not None:
            total(f"new_{name}", weight - network.learning_rate * gradient)  # (21)


def _weights(network: Network) -> Values:
    """Every trained array under the name its gradient carries behind the d."""
    weights: Values = {}
    for gate in GATES:
        weights[f"W_{gate}"] = network.kernel[gate]
        weights[f"U_{gate}"] = network.recurrent_kernel[gate]
        weights[f"b_{gate}"] = network.bias[gate]
        if network.reset_after:
            weights[f"c_{gate}"] = network.recurrent_bias[gate]
    if network.output_kernel is not None and network.output_bias is not None:
        weights["W_out"] = network.output_kernel
        weights["b_out"] = network.output_bias
    return weights


def _predict(loss: str, logits: Array) -> Array:
    if loss == "cross_entropy":
        powers = np.exp(logits - logits.max())
        return np.asarray(powers / powers.sum())
    return _sigmoid(logits) if loss == "binary_cross_entropy" else logits


def _loss(loss: str, logits: Array, target: Array) -> float:
    if loss == "cross_entropy":
        shifted = logits - logits.max()
        return float(np.sum(target * (np.log(np.exp(shifted).sum()) - shifted)))
    if loss == "binary_cross_entropy":
        return float(np.sum(np.logaddexp(0, logits) - target * logits))
    return float(0.5 * np.sum((logits - target) ** 2))


def _sigmoid(a: Array) -> Array:
    return np.asarray(np.exp(-np.logaddexp(0, -a)))


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "sigmoid": _sigmoid,
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
