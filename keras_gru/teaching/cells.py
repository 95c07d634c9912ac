"""The recurrent cells that a trace goes through, equation by equation of DERIVATION.md.

Each cell computes one step forward and one step back in float64, and notes every quantity; those
that stand in a calculation on paper with their line of it, in its order. Vectors are rows: D
inputs, U units.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from keras_gru.teaching.network import Network
    from keras_gru.teaching.trace import Notebook

Array = NDArray[np.float64]
Values = dict[str, Array]


def sigmoid(a: Array) -> Array:
    """Compute the logistic function without overflow."""
    return np.asarray(np.exp(-np.logaddexp(0, -a)))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": lambda a: np.asarray(np.tanh(a)),
    "sigmoid": sigmoid,
    "relu": lambda a: np.maximum(a, 0),
    "linear": lambda a: a,
}
# Each slope is computed from the value of its function, as (9), (10) and (12) write it.
_SLOPES: dict[str, Callable[[Array], Array]] = {
    "tanh": lambda value: 1 - value**2,
    "sigmoid": lambda value: value * (1 - value),
    "relu": lambda value: (value > 0).astype(np.float64),
    "linear": np.ones_like,
}


@dataclass(frozen=True)
class Line:
    """One line of a calculation: a quantity of the trace and the equation that gives it."""

    equation: str
    """Number of the equation in DERIVATION.md; empty for a given quantity."""
    label: str
    """The equation in words and symbols."""
    name: str
    """The quantity's name in the trace."""
    kind: str = ""
    """`gate` for a value in [0, 1]; `result` for the conclusion of the lines before it."""
    formula: str = ""
    """The calculation, where the label does not contain it."""


class Cell(ABC):
    """A recurrent cell: one step forward and one step backward, line by line."""

    title: str
    blocks: ClassVar[Mapping[str, str]]
    """Display names of the gates and the candidate, in the order of `layer.get_weights()`."""
    weight_equation: ClassVar[str] = "15"
    """The equation of the weight gradients."""
    state_equation: str = "13"
    """The equation of the gradient of the state before a step."""
    options: ClassVar[frozenset[str]] = frozenset()
    """Fields of a network that this cell has and some other cells lack."""

    @abstractmethod
    def forward(self, network: Network, state: Values, note: Notebook) -> Values:
        """Advance by one step.

        Args:
            network: Weights and activations.
            state: `h`, (U,), and for an LSTM `c`, (U,).
            note: Notebook of the step. It holds `x`; the step records everything else in it, the
                new state as `h_new` and `c_new`, and the lines of a calculation on paper.

        Returns:
            The new state.
        """

    @abstractmethod
    def backward(self, network: Network, future: Values, note: Notebook) -> Values:
        """Propagate the gradients of one step to the step before.

        Args:
            network: Weights and activations.
            future: Gradients that later steps give to this step's new state, by its name.
            note: Notebook of the step's forward pass, with `dh_new`, the gradient of `h_new`.

        Returns:
            Gradients of the state before the step, by name.
        """

    @abstractmethod
    def convention(self, network: Network) -> str:
        """Describe the equations that distinguish this cell from its relatives."""

    def start(self, network: Network) -> Values:
        """Return the state before the first step, by name."""
        return {"h": network.initial_state}

    def symbol(self, weight: str) -> str:
        """Write a weight such as `W_z` as DERIVATION.md does."""
        return {"W_out": "V", "b_out": "b_y"}.get(weight, weight.replace("c_", "b′_"))


def _affine(network: Network, block: str, note: Notebook, equation: str) -> Array:
    """Record one block's x W + b + h U and its parts."""
    input_part = note(f"xW_{block}", note["x"] @ network.kernel[block])
    state_part = note(f"hU_{block}", note["h"] @ network.recurrent_kernel[block])
    total = input_part + (network.bias[block] + network.recurrent_bias[block]) + state_part
    return note(f"a_{block}", total, equation, f"a_{block} = xW_{block} + b_{block} + hU_{block}")


def _weight_shares(note: Notebook, block: str, h: Array, d_a: Array) -> None:
    """Record this step's share of the gradients of one block whose matrices read x and h."""
    note(f"dW_{block}", np.outer(note["x"], d_a))
    note(f"dU_{block}", np.outer(h, d_a))
    note(f"db_{block}", d_a)


def _mixture(network: Network, note: Notebook) -> Values:
    """Record the new state of a gated cell, (4a) or (4b), from `keep`, `add`, `h` and `g`."""
    keeps = network.update_gate == "keep"
    equation, keep, add = ("4a", "z", "(1−z)") if keeps else ("4b", "(1−z)", "z")
    kept = note("kept", note["keep"] * note["h"], equation, f"kept: {keep}⊙h")
    added = note("added", note["add"] * note["g"], equation, f"added: {add}⊙g")
    label, formula = "new state h′", "h′ = kept + added"
    return {"h": note("h_new", kept + added, equation, label, "result", formula)}


def _shares(network: Network, z: Array, note: Notebook) -> None:
    """Record the shares of the old state and of the candidate in the new state."""
    keeps = network.update_gate == "keep"
    note("keep", z if keeps else 1 - z)
    note("add", 1 - z if keeps else z)


def _update_equation(network: Network) -> str:
    if network.update_gate == "keep":
        return "h′ = z⊙h + (1−z)⊙g (4a, keep)"
    return "h′ = (1−z)⊙h + z⊙g (4b, replace)"


class _GRU(Cell):
    """The GRU, (1) to (15), with both reset placements and both update conventions."""

    title = "GRU"
    blocks: ClassVar = {"z": "update gate", "r": "reset gate", "g": "candidate"}
    options = frozenset(["update_gate", "reset_after", "recurrent_activation"])

    def forward(self, network: Network, state: Values, note: Notebook) -> Values:
        U, b, c = network.recurrent_kernel, network.bias, network.recurrent_bias
        gate_activation = ACTIVATIONS[network.recurrent_activation]
        h = note("h", state["h"], "", "previous state h")
        a_z = _affine(network, "z", note, "1")
        z = note("z", gate_activation(a_z), "1", "update gate z = σ(a_z)", "gate")
        a_r = _affine(network, "r", note, "2")
        r = note("r", gate_activation(a_r), "2", "reset gate r = σ(a_r)", "gate")
        input_part = note("xW_g", note["x"] @ network.kernel["g"])
        if network.reset_after:
            equation, term = "3a", "r⊙q"
            q = note("q", h @ U["g"] + c["g"], equation, "q = hU_g + b′_g")
            state_part = note("rq", r * q)
        else:
            equation, term = "3b", "(r⊙h)U_g"
            state_part = note("rhU_g", note("rh", r * h, equation, "r⊙h") @ U["g"])
        a_g = note("a_g", input_part + b["g"] + state_part, equation, f"a_g = xW_g + b_g + {term}")
        note("g", ACTIVATIONS[network.activation](a_g), equation, "candidate g = φ(a_g)")
        _shares(network, z, note)
        return _mixture(network, note)

    def backward(self, network: Network, future: Values, note: Notebook) -> Values:  # noqa: ARG002
        W, U = network.kernel, network.recurrent_kernel
        x, h, z, r, g, dh_new = (note[name] for name in ("x", "h", "z", "r", "g", "dh_new"))
        gate_slope, slope = _SLOPES[network.recurrent_activation], _SLOPES[network.activation]
        keeps = network.update_gate == "keep"

        difference = note("dz_factor", h - g if keeps else g - h)
        of_z = "(h−g)" if keeps else "(g−h)"
        d_z = note("d_z", dh_new * difference, "7", f"δz = δh′⊙{of_z}")
        d_a_z = note("d_a_z", d_z * note("slope_z", gate_slope(z)), "9", "δa_z = δz⊙σ′")
        d_g = note("d_g", dh_new * note["add"], "8", f"δg = δh′⊙{'(1−z)' if keeps else 'z'}")
        d_a_g = note("d_a_g", d_g * note("slope_g", slope(g)), "10", "δa_g = δg⊙φ′")

        if network.reset_after:
            d_q = note("d_q", d_a_g * r, "11a", "δq = δa_g⊙r")
            d_r = note("d_r", d_a_g * note["q"], "11a", "δr = δa_g⊙q")
            candidate_path, formula = d_q @ U["g"].T, "δq U_gᵀ"
        else:
            d_rh = note("d_rh", d_a_g @ U["g"].T, "11b", "δ(r⊙h) = δa_g U_gᵀ")
            d_r = note("d_r", d_rh * h, "11b", "δr = δ(r⊙h)⊙h")
            candidate_path, formula = d_rh * r, "δ(r⊙h)⊙r"
        d_a_r = note("d_a_r", d_r * note("slope_r", gate_slope(r)), "12", "δa_r = δr⊙σ′")

        def path(name: str, value: Array, label: str, formula: str) -> Array:
            return note(name, value, "13", f"δh, {label}", formula=formula)

        direct = "δh′⊙z" if keeps else "δh′⊙(1−z)"
        dh_direct = path("dh_direct", dh_new * note["keep"], "direct path", direct)
        dh_candidate = path("dh_candidate", candidate_path, "candidate path", formula)
        from_z, from_r = d_a_z @ U["z"].T, d_a_r @ U["r"].T
        through_z = path("dh_update_gate", from_z, "through the update gate", "δa_z U_zᵀ")
        through_r = path("dh_reset_gate", from_r, "through the reset gate", "δa_r U_rᵀ")
        dh_gates = note("dh_gates", through_z + through_r)
        total = dh_direct + dh_candidate + dh_gates
        dh = note("dh", total, "13", "δh = sum of the paths", "result")
        note("dx", d_a_z @ W["z"].T + d_a_r @ W["r"].T + d_a_g @ W["g"].T)  # (14)

        for gate, d_a in (("z", d_a_z), ("r", d_a_r), ("g", d_a_g)):  # (15), this step's share
            note(f"dW_{gate}", np.outer(x, d_a))
            note(f"db_{gate}", d_a)
        note("dU_z", np.outer(h, d_a_z))
        note("dU_r", np.outer(h, d_a_r))
        note("dU_g", np.outer(h, d_q) if network.reset_after else np.outer(note["rh"], d_a_g))
        if network.reset_after:
            note("dc_z", d_a_z)
            note("dc_r", d_a_r)
            note("dc_g", d_q)
        return {"h": dh}

    def convention(self, network: Network) -> str:
        place = "after the matmul (3a)" if network.reset_after else "before the matmul (3b)"
        return f"reset gate {place}; {_update_equation(network)}"


class _SingleGate(Cell):
    """A GRU with one gate, of which its reset factor r is a function: (31) to (34).

    Args:
        title: Name of the cell.
        added_in_reset: Derivative of r by the share of the candidate: 1 if r is that share, -1 if
            it is the share of the old state, 0 if there is no reset.
    """

    blocks: ClassVar = {"z": "gate", "g": "candidate"}
    options = frozenset(["update_gate", "recurrent_activation"])

    def __init__(self, title: str, added_in_reset: int) -> None:
        self.title, self.added_in_reset = title, added_in_reset
        coupled = added_in_reset < 0
        self.forward_equation, self.state_equation = ("33", "34") if coupled else ("31", "32")

    def forward(self, network: Network, state: Values, note: Notebook) -> Values:
        own, past = self.forward_equation, self._past(network)
        h = note("h", state["h"], "", "previous state h")
        a_z = _affine(network, "z", note, own)
        z = ACTIVATIONS[network.recurrent_activation](a_z)
        z = note("z", z, own, "gate z = σ(a_z)", "gate")
        _shares(network, z, note)
        resets = {1: note["add"], -1: note["keep"], 0: np.ones_like(z)}
        r = note("r", resets[self.added_in_reset])
        input_part = note("xW_g", note["x"] @ network.kernel["g"])
        read = note("rh", r * h, None if past == "h" else own, f"p = {past}")
        state_part = note("rhU_g", read @ network.recurrent_kernel["g"])
        label = f"a_g = xW_g + b_g + {'h' if past == 'h' else 'p'}U_g"
        a_g = note("a_g", input_part + network.bias["g"] + state_part, own, label)
        note("g", ACTIVATIONS[network.activation](a_g), own, "candidate g = φ(a_g)")
        return _mixture(network, note)

    def backward(self, network: Network, future: Values, note: Notebook) -> Values:  # noqa: ARG002
        W, U, own = network.kernel, network.recurrent_kernel, self.state_equation
        h, z, r, g, dh_new = (note[name] for name in ("h", "z", "r", "g", "dh_new"))
        gate_slope, slope = _SLOPES[network.recurrent_activation], _SLOPES[network.activation]
        keeps = network.update_gate == "keep"
        sign = -1 if keeps else 1  # of ∂add/∂z
        in_reset = sign * self.added_in_reset  # of ∂r/∂z
        past = {"h": "δp", "z⊙h": "δp⊙z"}.get(self._past(network), "δp⊙(1−z)")

        d_g = note("d_g", dh_new * note["add"], "8", f"δg = δh′⊙{'(1−z)' if keeps else 'z'}")
        d_a_g = note("d_a_g", d_g * note("slope_g", slope(g)), "10", "δa_g = δg⊙φ′")
        d_rh = note("d_rh", d_a_g @ U["g"].T, own, "δp = δa_g U_gᵀ")
        label = f"δz in h′: δh′⊙{'(h−g)' if keeps else '(g−h)'}"
        in_mixture = note("d_z_mixture", sign * dh_new * (g - h), "7", label)
        label = f"δz in p: {'−' if in_reset < 0 else ''}δp⊙h"
        in_candidate = note("d_z_candidate", in_reset * d_rh * h, own if in_reset else None, label)
        d_z = note("d_z", in_mixture + in_candidate, own, "δz = sum of the terms")
        d_a_z = note("d_a_z", d_z * note("slope_z", gate_slope(z)), "9", "δa_z = δz⊙σ′")

        direct = "δh′⊙z" if keeps else "δh′⊙(1−z)"
        dh_direct = dh_new * note["keep"]
        dh_direct = note("dh_direct", dh_direct, own, "δh, direct path", formula=direct)
        dh_candidate = note("dh_candidate", d_rh * r, own, f"δh, candidate path {past}")
        through_z, label = d_a_z @ U["z"].T, "δh, through the gate"
        through_z = note("dh_update_gate", through_z, own, label, formula="δa_z U_zᵀ")
        total = dh_direct + dh_candidate + through_z
        dh = note("dh", total, own, "δh = sum of the paths", "result")
        note("dx", d_a_z @ W["z"].T + d_a_g @ W["g"].T)
        _weight_shares(note, "z", h, d_a_z)
        _weight_shares(note, "g", note["rh"], d_a_g)
        return {"h": dh}

    def convention(self, network: Network) -> str:
        reads = f"the candidate reads {self._past(network)} ({self.forward_equation})"
        return f"{reads}; {_update_equation(network)}"

    def _past(self, network: Network) -> str:
        """Write r⊙h with the gate z."""
        sign = self.added_in_reset if network.update_gate == "keep" else -self.added_in_reset
        return {1: "(1−z)⊙h", 0: "h", -1: "z⊙h"}[sign]


class _VanillaRNN(Cell):
    """The vanilla RNN, (22) and (23). Its one block is called `h`."""

    title = "Vanilla RNN"
    blocks: ClassVar = {"h": "state"}
    weight_equation = state_equation = "23"

    def forward(self, network: Network, state: Values, note: Notebook) -> Values:
        h = note("h", state["h"], "", "previous state h")
        input_part = note("xW_h", note["x"] @ network.kernel["h"], "22", "xW")
        state_part = note("hU_h", h @ network.recurrent_kernel["h"], "22", "hU")
        total = input_part + (network.bias["h"] + network.recurrent_bias["h"]) + state_part
        h_new = ACTIVATIONS[network.activation](note("a_h", total, "22", "a = xW + b + hU"))
        return {"h": note("h_new", h_new, "22", "new state h′ = φ(a)", "result")}

    def backward(self, network: Network, future: Values, note: Notebook) -> Values:  # noqa: ARG002
        slope = note("slope_h", _SLOPES[network.activation](note["h_new"]), "23", "slope φ′")
        d_a = note("d_a_h", note["dh_new"] * slope, "23", "δa = δh′⊙φ′")
        dh = note("dh", d_a @ network.recurrent_kernel["h"].T, "23", "δh = δa Uᵀ", "result")
        note("dx", d_a @ network.kernel["h"].T)
        _weight_shares(note, "h", note["h"], d_a)
        return {"h": dh}

    def convention(self, network: Network) -> str:
        return f"h′ = φ(xW + b + hU) (22), φ is {network.activation}"

    def symbol(self, weight: str) -> str:
        return super().symbol(weight.removesuffix("_h"))


class _LSTM(Cell):
    """The LSTM, (27) to (30)."""

    title = "LSTM"
    blocks: ClassVar = {"i": "input gate", "f": "forget gate", "g": "candidate", "o": "output gate"}
    state_equation = "30"
    options = frozenset(["recurrent_activation", "initial_cell"])

    def start(self, network: Network) -> Values:
        assert network.initial_cell is not None
        return {"h": network.initial_state, "c": network.initial_cell}

    def forward(self, network: Network, state: Values, note: Notebook) -> Values:
        gate_activation = ACTIVATIONS[network.recurrent_activation]
        activation = ACTIVATIONS[network.activation]
        note("h", state["h"], "", "previous state h")
        c = note("c", state["c"], "", "previous cell c")
        for gate in "ifo":
            value = gate_activation(_affine(network, gate, note, "27"))
            note(gate, value, "27", f"{self.blocks[gate]} {gate} = σ(a_{gate})", "gate")
        note("g", activation(_affine(network, "g", note, "27")), "27", "candidate g = φ(a_g)")
        kept = note("kept", note["f"] * c, "28", "kept: f⊙c")
        added = note("added", note["i"] * note["g"], "28", "added: i⊙g")
        formula = "c′ = kept + added"
        c_new = note("c_new", kept + added, "28", "new cell c′", "result", formula)
        phi_c = note("phi_c", activation(c_new), "29", "φ(c′)")
        h_new = note("h_new", note["o"] * phi_c, "29", "new state h′ = o⊙φ(c′)", "result")
        return {"h": h_new, "c": c_new}

    def backward(self, network: Network, future: Values, note: Notebook) -> Values:
        W, U = network.kernel, network.recurrent_kernel
        gate_slope, slope = _SLOPES[network.recurrent_activation], _SLOPES[network.activation]

        def line(name: str, value: Array, label: str, kind: str = "", formula: str = "") -> Array:
            return note(name, value, "30", label, kind, formula)

        d = {"o": line("d_o", note["dh_new"] * note["phi_c"], "δo = δh′⊙φ(c′)")}
        of_state = note["dh_new"] * note["o"] * note("slope_c", slope(note["phi_c"]))
        of_state = line("dc_output", of_state, "δc′ from the state h′", formula="δh′⊙o⊙φ′")
        label, formula = "δc′ from the future", "δc of the next step"
        of_future = line("dc_future", future["c"], label, formula=formula)
        dc_new = line("dc_new", of_state + of_future, "δc′ = sum of both", "result")
        d["f"] = line("d_f", dc_new * note["c"], "δf = δc′⊙c")
        d["i"] = line("d_i", dc_new * note["g"], "δi = δc′⊙g")
        d["g"] = line("d_g", dc_new * note["i"], "δg = δc′⊙i")
        d_a: Values = {}
        for block in "ifog":
            own_slope, symbol = (slope, "φ′") if block == "g" else (gate_slope, "σ′")
            value = d[block] * note(f"slope_{block}", own_slope(note[block]))
            d_a[block] = line(f"d_a_{block}", value, f"δa_{block} = δ{block}⊙{symbol}")
        dc = line("dc", dc_new * note["f"], "δc = δc′⊙f, direct path", "result")
        names = {"i": "input gate", "f": "forget gate", "o": "output gate", "g": "candidate"}
        paths: Values = {}
        for block, name in names.items():
            label = "δh, candidate path" if block == "g" else f"δh, through the {name}"
            quantity, formula = f"dh_{name.replace(' ', '_')}", f"δa_{block} U_{block}ᵀ"
            paths[block] = line(quantity, d_a[block] @ U[block].T, label, formula=formula)
        total: Any = sum(paths[block] for block in self.blocks)
        dh = line("dh", total, "δh = sum of the paths", "result")
        note("dx", sum(d_a[block] @ W[block].T for block in self.blocks))
        for block in self.blocks:
            _weight_shares(note, block, note["h"], d_a[block])
        return {"h": dh, "c": dc}

    def convention(self, network: Network) -> str:
        return f"c′ = f⊙c + i⊙g (28), h′ = o⊙φ(c′) (29), φ is {network.activation}, also of g"


CELLS: dict[str, Cell] = {
    "gru": _GRU(),
    "rnn": _VanillaRNN(),
    "lstm": _LSTM(),
    "mgu": _SingleGate("Minimal gated unit", 1),
    "minimal_gru": _SingleGate("Minimal GRU without a reset", 0),
    "coupled_gru": _SingleGate("GRU with coupled gates", -1),
}
"""The cells by the names that a network file gives them."""
