"""The recurrent cells that a trace goes through, equation by equation of DERIVATION.md.

Each cell computes one step forward and one step back in float64, and lists the lines of both
calculations as they are done on paper. Vectors are rows: D inputs, U units.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

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

    title: ClassVar[str]
    blocks: ClassVar[Mapping[str, str]]
    """Display names of the gates and the candidate, in the order of `layer.get_weights()`."""
    weight_equation: ClassVar[str] = "15"
    """The equation of the weight gradients."""
    options: ClassVar[frozenset[str]] = frozenset()
    """Fields of a network that this cell has and some other cells lack."""

    @abstractmethod
    def forward(self, network: Network, state: Values, note: Notebook) -> Values:
        """Advance by one step.

        Args:
            network: Weights and activations.
            state: `h`, (U,), and for an LSTM `c`, (U,).
            note: Notebook of the step. It holds `x`; the step records everything else in it, the
                new state as `h_new` and `c_new`.

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

    @abstractmethod
    def forward_lines(self, network: Network) -> list[Line]:
        """List the lines of the forward calculation in the order of a calculation on paper."""

    @abstractmethod
    def backward_lines(self, network: Network) -> list[Line]:
        """List the lines of the backward calculation, from the gradient of the new state."""

    def start(self, network: Network) -> Values:
        """Return the state before the first step, by name."""
        return {"h": network.initial_state}

    def symbol(self, weight: str) -> str:
        """Write a weight such as `W_z` as DERIVATION.md does."""
        return {"W_out": "V", "b_out": "b_y"}.get(weight, weight.replace("c_", "b′_"))


def _affine(network: Network, block: str, note: Notebook) -> Array:
    """Record one block's x W + b + h U in its parts."""
    input_part = note(f"xW_{block}", note["x"] @ network.kernel[block])
    state_part = note(f"hU_{block}", note["h"] @ network.recurrent_kernel[block])
    biases = network.bias[block] + network.recurrent_bias[block]
    return note(f"a_{block}", input_part + biases + state_part)


def _weight_shares(note: Notebook, block: str, h: Array, d_a: Array) -> None:
    """Record this step's share of the gradients of one block whose matrices read x and h."""
    note(f"dW_{block}", np.outer(note["x"], d_a))
    note(f"dU_{block}", np.outer(h, d_a))
    note(f"db_{block}", d_a)


def _mixture(note: Notebook) -> Values:
    """Record the new state of a gated cell, (4a) or (4b), from `keep`, `add`, `h` and `g`."""
    mixed = note("kept", note["keep"] * note["h"]) + note("added", note["add"] * note["g"])
    return {"h": note("h_new", mixed)}


def _shares(network: Network, z: Array, note: Notebook) -> None:
    """Record the shares of the old state and of the candidate in the new state."""
    keeps = network.update_gate == "keep"
    note("keep", z if keeps else 1 - z)
    note("add", 1 - z if keeps else z)


def _update_equation(network: Network) -> str:
    if network.update_gate == "keep":
        return "h′ = z⊙h + (1−z)⊙g (4a, keep)"
    return "h′ = (1−z)⊙h + z⊙g (4b, replace)"


def _mixture_lines(network: Network) -> list[Line]:
    keeps = network.update_gate == "keep"
    equation = "4a" if keeps else "4b"
    return [
        Line(equation, "kept: z⊙h" if keeps else "kept: (1−z)⊙h", "kept"),
        Line(equation, "added: (1−z)⊙g" if keeps else "added: z⊙g", "added"),
        Line(equation, "new state h′", "h_new", "result", "h′ = kept + added"),
    ]


def _incoming_lines(future: str) -> list[Line]:
    """Lines of the gradient of a new state; `future` is the equation of the next step."""
    return [
        Line("20", "δh′ from this step's output", "dh_output", formula="δo Vᵀ"),
        Line(future, "δh′ from the future", "dh_future", formula="δh of the next step"),
        Line("6", "δh′ = sum of both", "dh_new", "result"),
    ]


class _GRU(Cell):
    """The GRU, (1) to (15), with both reset placements and both update conventions."""

    title = "GRU"
    blocks: ClassVar = {"z": "update gate", "r": "reset gate", "g": "candidate"}
    options = frozenset(["update_gate", "reset_after", "recurrent_activation"])

    def forward(self, network: Network, state: Values, note: Notebook) -> Values:
        U, b, c = network.recurrent_kernel, network.bias, network.recurrent_bias
        gate_activation = ACTIVATIONS[network.recurrent_activation]
        h = note("h", state["h"])
        z = note("z", gate_activation(_affine(network, "z", note)))  # (1)
        r = note("r", gate_activation(_affine(network, "r", note)))  # (2)
        input_part = note("xW_g", note["x"] @ network.kernel["g"])
        if network.reset_after:  # (3a)
            state_part = note("rq", r * note("q", h @ U["g"] + c["g"]))
        else:  # (3b)
            state_part = note("rhU_g", note("rh", r * h) @ U["g"])
        a_g = note("a_g", input_part + b["g"] + state_part)
        note("g", ACTIVATIONS[network.activation](a_g))
        _shares(network, z, note)
        return _mixture(note)  # (4a), (4b)

    def backward(self, network: Network, future: Values, note: Notebook) -> Values:  # noqa: ARG002
        W, U = network.kernel, network.recurrent_kernel
        x, h, z, r, g, dh_new = (note[name] for name in ("x", "h", "z", "r", "g", "dh_new"))
        gate_slope, slope = _SLOPES[network.recurrent_activation], _SLOPES[network.activation]

        difference = note("dz_factor", h - g if network.update_gate == "keep" else g - h)
        d_z = note("d_z", dh_new * difference)  # (7)
        d_g = note("d_g", dh_new * note["add"])  # (8)
        d_a_z = note("d_a_z", d_z * note("slope_z", gate_slope(z)))  # (9)
        d_a_g = note("d_a_g", d_g * note("slope_g", slope(g)))  # (10)

        if network.reset_after:  # (11a)
            d_q = note("d_q", d_a_g * r)
            d_r = note("d_r", d_a_g * note["q"])
            dh_candidate = note("dh_candidate", d_q @ U["g"].T)
        else:  # (11b)
            d_rh = note("d_rh", d_a_g @ U["g"].T)
            d_r = note("d_r", d_rh * h)
            dh_candidate = note("dh_candidate", d_rh * r)
        d_a_r = note("d_a_r", d_r * note("slope_r", gate_slope(r)))  # (12)

        dh_direct = note("dh_direct", dh_new * note["keep"])  # (13)
        through_z = note("dh_update_gate", d_a_z @ U["z"].T)
        through_r = note("dh_reset_gate", d_a_r @ U["r"].T)
        dh_gates = note("dh_gates", through_z + through_r)
        dh = note("dh", dh_direct + dh_candidate + dh_gates)
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

    def forward_lines(self, network: Network) -> list[Line]:
        if network.reset_after:
            candidate = [
                Line("3a", "q = hU_g + b′_g", "q"),
                Line("3a", "a_g = xW_g + b_g + r⊙q", "a_g"),
                Line("3a", "candidate g = φ(a_g)", "g"),
            ]
        else:
            candidate = [
                Line("3b", "r⊙h", "rh"),
                Line("3b", "a_g = xW_g + b_g + (r⊙h)U_g", "a_g"),
                Line("3b", "candidate g = φ(a_g)", "g"),
            ]
        return [
            Line("", "previous state h", "h"),
            Line("1", "a_z = xW_z + b_z + hU_z", "a_z"),
            Line("1", "update gate z = σ(a_z)", "z", "gate"),
            Line("2", "a_r = xW_r + b_r + hU_r", "a_r"),
            Line("2", "reset gate r = σ(a_r)", "r", "gate"),
            *candidate,
            *_mixture_lines(network),
        ]

    def backward_lines(self, network: Network) -> list[Line]:
        keeps, after = network.update_gate == "keep", network.reset_after
        if after:
            reset = [
                Line("11a", "δq = δa_g⊙r", "d_q"),
                Line("11a", "δr = δa_g⊙q", "d_r"),
            ]
        else:
            reset = [
                Line("11b", "δ(r⊙h) = δa_g U_gᵀ", "d_rh"),
                Line("11b", "δr = δ(r⊙h)⊙h", "d_r"),
            ]
        candidate_path = "δq U_gᵀ" if after else "δ(r⊙h)⊙r"
        return [
            *_incoming_lines("13"),
            Line("7", "δz = δh′⊙(h−g)" if keeps else "δz = δh′⊙(g−h)", "d_z"),
            Line("9", "δa_z = δz⊙σ′", "d_a_z"),
            Line("8", "δg = δh′⊙(1−z)" if keeps else "δg = δh′⊙z", "d_g"),
            Line("10", "δa_g = δg⊙φ′", "d_a_g"),
            *reset,
            Line("12", "δa_r = δr⊙σ′", "d_a_r"),
            Line("13", "δh, direct path", "dh_direct", formula="δh′⊙z" if keeps else "δh′⊙(1−z)"),
            Line("13", "δh, candidate path", "dh_candidate", formula=candidate_path),
            Line("13", "δh, through the update gate", "dh_update_gate", formula="δa_z U_zᵀ"),
            Line("13", "δh, through the reset gate", "dh_reset_gate", formula="δa_r U_rᵀ"),
            Line("13", "δh = sum of the paths", "dh", "result"),
        ]


class _SingleGate(Cell):
    """A GRU with one gate, of which its reset factor r is a function: (31) to (34)."""

    blocks: ClassVar = {"z": "gate", "g": "candidate"}
    options = frozenset(["update_gate", "recurrent_activation"])
    forward_equation, backward_equation = "31", "32"
    added_in_reset = 0
    """Derivative of r by the share `add` of the candidate: 1, 0 or -1."""
    reset_symbols: ClassVar = {"keep": "", "replace": ""}
    """r⊙h written with the gate z, by the update convention."""

    def forward(self, network: Network, state: Values, note: Notebook) -> Values:
        h = note("h", state["h"])
        z = note("z", ACTIVATIONS[network.recurrent_activation](_affine(network, "z", note)))
        _shares(network, z, note)
        resets = {1: note["add"], -1: note["keep"], 0: np.ones_like(z)}
        r = note("r", resets[self.added_in_reset])
        input_part = note("xW_g", note["x"] @ network.kernel["g"])
        state_part = note("rhU_g", note("rh", r * h) @ network.recurrent_kernel["g"])
        a_g = note("a_g", input_part + network.bias["g"] + state_part)
        note("g", ACTIVATIONS[network.activation](a_g))
        return _mixture(note)

    def backward(self, network: Network, future: Values, note: Notebook) -> Values:  # noqa: ARG002
        W, U = network.kernel, network.recurrent_kernel
        h, z, r, g, dh_new = (note[name] for name in ("h", "z", "r", "g", "dh_new"))
        gate_slope, slope = _SLOPES[network.recurrent_activation], _SLOPES[network.activation]
        sign = -1 if network.update_gate == "keep" else 1  # of ∂add/∂z

        d_g = note("d_g", dh_new * note["add"])
        d_a_g = note("d_a_g", d_g * note("slope_g", slope(g)))
        d_rh = note("d_rh", d_a_g @ U["g"].T)
        in_mixture = note("d_z_mixture", sign * dh_new * (g - h))
        in_candidate = note("d_z_candidate", sign * self.added_in_reset * d_rh * h)
        d_z = note("d_z", in_mixture + in_candidate)
        d_a_z = note("d_a_z", d_z * note("slope_z", gate_slope(z)))

        dh_direct = note("dh_direct", dh_new * note["keep"])
        dh_candidate = note("dh_candidate", d_rh * r)
        through_z = note("dh_update_gate", d_a_z @ U["z"].T)
        dh = note("dh", dh_direct + dh_candidate + through_z)
        note("dx", d_a_z @ W["z"].T + d_a_g @ W["g"].T)
        _weight_shares(note, "z", h, d_a_z)
        _weight_shares(note, "g", note["rh"], d_a_g)
        return {"h": dh}

    def convention(self, network: Network) -> str:
        reads = f"the candidate reads {self._past(network)} ({self.forward_equation})"
        return f"{reads}; {_update_equation(network)}"

    def _past(self, network: Network) -> str:
        return self.reset_symbols[str(network.update_gate)]

    def forward_lines(self, network: Network) -> list[Line]:
        own, past = self.forward_equation, self._past(network)
        reset = [] if past == "h" else [Line(own, f"p = {past}", "rh")]
        read = "h" if past == "h" else "p"
        return [
            Line("", "previous state h", "h"),
            Line(own, "a_z = xW_z + b_z + hU_z", "a_z"),
            Line(own, "gate z = σ(a_z)", "z", "gate"),
            *reset,
            Line(own, f"a_g = xW_g + b_g + {read}U_g", "a_g"),
            Line(own, "candidate g = φ(a_g)", "g"),
            *_mixture_lines(network),
        ]

    def backward_lines(self, network: Network) -> list[Line]:
        keeps, own = network.update_gate == "keep", self.backward_equation
        sign = self.added_in_reset * (-1 if keeps else 1)
        minus = "−" if sign < 0 else ""
        reset = [Line(own, f"δz in p: {minus}δp⊙h", "d_z_candidate")] if sign else []
        past = {"h": "δp", "z⊙h": "δp⊙z"}.get(self._past(network), "δp⊙(1−z)")
        return [
            *_incoming_lines(own),
            Line("8", "δg = δh′⊙(1−z)" if keeps else "δg = δh′⊙z", "d_g"),
            Line("10", "δa_g = δg⊙φ′", "d_a_g"),
            Line(own, "δp = δa_g U_gᵀ", "d_rh"),
            Line("7", f"δz in h′: δh′⊙{'(h−g)' if keeps else '(g−h)'}", "d_z_mixture"),
            *reset,
            Line(own, "δz = sum of the terms", "d_z"),
            Line("9", "δa_z = δz⊙σ′", "d_a_z"),
            Line(own, "δh, direct path", "dh_direct", formula="δh′⊙z" if keeps else "δh′⊙(1−z)"),
            Line(own, f"δh, candidate path {past}", "dh_candidate"),
            Line(own, "δh, through the gate", "dh_update_gate", formula="δa_z U_zᵀ"),
            Line(own, "δh = sum of the paths", "dh", "result"),
        ]


class _MGU(_SingleGate):
    """The minimal gated unit, whose reset factor is the share of the candidate."""

    title = "Minimal gated unit"
    added_in_reset = 1
    reset_symbols: ClassVar = {"keep": "(1−z)⊙h", "replace": "z⊙h"}


class _MinimalGRU(_SingleGate):
    """The minimal GRU, which has no reset at all."""

    title = "Minimal GRU without a reset"
    reset_symbols: ClassVar = {"keep": "h", "replace": "h"}


class _CoupledGRU(_SingleGate):
    """The coupled GRU, whose reset factor is the share of the old state."""

    title = "GRU with coupled gates"
    forward_equation, backward_equation = "33", "34"
    added_in_reset = -1
    reset_symbols: ClassVar = {"keep": "z⊙h", "replace": "(1−z)⊙h"}


class _VanillaRNN(Cell):
    """The vanilla RNN, (22) and (23). Its one block is called `h`."""

    title = "Vanilla RNN"
    blocks: ClassVar = {"h": "state"}
    weight_equation = "23"

    def forward(self, network: Network, state: Values, note: Notebook) -> Values:
        note("h", state["h"])
        return {"h": note("h_new", ACTIVATIONS[network.activation](_affine(network, "h", note)))}

    def backward(self, network: Network, future: Values, note: Notebook) -> Values:  # noqa: ARG002
        slope = note("slope_h", _SLOPES[network.activation](note["h_new"]))
        d_a = note("d_a_h", note["dh_new"] * slope)
        dh = note("dh", d_a @ network.recurrent_kernel["h"].T)
        note("dx", d_a @ network.kernel["h"].T)
        _weight_shares(note, "h", note["h"], d_a)
        return {"h": dh}

    def convention(self, network: Network) -> str:
        return f"h′ = φ(xW + b + hU) (22), φ is {network.activation}"

    def forward_lines(self, network: Network) -> list[Line]:  # noqa: ARG002
        return [
            Line("", "previous state h", "h"),
            Line("22", "xW", "xW_h"),
            Line("22", "hU", "hU_h"),
            Line("22", "a = xW + b + hU", "a_h"),
            Line("22", "new state h′ = φ(a)", "h_new", "result"),
        ]

    def backward_lines(self, network: Network) -> list[Line]:  # noqa: ARG002
        return [
            *_incoming_lines("23"),
            Line("23", "slope φ′", "slope_h"),
            Line("23", "δa = δh′⊙φ′", "d_a_h"),
            Line("23", "δh = δa Uᵀ", "dh", "result"),
        ]

    def symbol(self, weight: str) -> str:
        return super().symbol(weight.removesuffix("_h"))


class _LSTM(Cell):
    """The LSTM, (27) to (30)."""

    title = "LSTM"
    blocks: ClassVar = {"i": "input gate", "f": "forget gate", "g": "candidate", "o": "output gate"}
    options = frozenset(["recurrent_activation", "initial_cell"])

    def start(self, network: Network) -> Values:
        assert network.initial_cell is not None
        return {"h": network.initial_state, "c": network.initial_cell}

    def forward(self, network: Network, state: Values, note: Notebook) -> Values:
        gate_activation = ACTIVATIONS[network.recurrent_activation]
        activation = ACTIVATIONS[network.activation]
        note("h", state["h"])
        c = note("c", state["c"])
        for block in self.blocks:  # (27)
            a = _affine(network, block, note)
            note(block, activation(a) if block == "g" else gate_activation(a))
        c_new = note("c_new", note("kept", note["f"] * c) + note("added", note["i"] * note["g"]))
        phi_c = note("phi_c", activation(c_new))  # (28)
        return {"h": note("h_new", note["o"] * phi_c), "c": c_new}  # (29)

    def backward(self, network: Network, future: Values, note: Notebook) -> Values:
        W, U = network.kernel, network.recurrent_kernel
        gate_slope, slope = _SLOPES[network.recurrent_activation], _SLOPES[network.activation]
        d = {"o": note("d_o", note["dh_new"] * note["phi_c"])}  # (30)
        of_state = note["dh_new"] * note["o"] * note("slope_c", slope(note["phi_c"]))
        dc_new = note("dc_new", note("dc_output", of_state) + note("dc_future", future["c"]))
        d["f"] = note("d_f", dc_new * note["c"])
        d["i"] = note("d_i", dc_new * note["g"])
        d["g"] = note("d_g", dc_new * note["i"])
        d_a: Values = {}
        for block in self.blocks:
            own_slope = (slope if block == "g" else gate_slope)(note[block])
            d_a[block] = note(f"d_a_{block}", d[block] * note(f"slope_{block}", own_slope))
        dc = note("dc", dc_new * note["f"])
        names = {"i": "input_gate", "f": "forget_gate", "g": "candidate", "o": "output_gate"}
        paths = [note(f"dh_{name}", d_a[block] @ U[block].T) for block, name in names.items()]
        dh = note("dh", sum(paths))
        note("dx", sum(d_a[block] @ W[block].T for block in self.blocks))
        for block in self.blocks:
            _weight_shares(note, block, note["h"], d_a[block])
        return {"h": dh, "c": dc}

    def convention(self, network: Network) -> str:
        return f"c′ = f⊙c + i⊙g (28), h′ = o⊙φ(c′) (29), φ is {network.activation}, also of g"

    def forward_lines(self, network: Network) -> list[Line]:  # noqa: ARG002
        gates = [
            line
            for gate in "ifo"
            for line in (
                Line("27", f"a_{gate} = xW_{gate} + b_{gate} + hU_{gate}", f"a_{gate}"),
                Line("27", f"{self.blocks[gate]} {gate} = σ(a_{gate})", gate, "gate"),
            )
        ]
        return [
            Line("", "previous state h", "h"),
            Line("", "previous cell c", "c"),
            *gates,
            Line("27", "a_g = xW_g + b_g + hU_g", "a_g"),
            Line("27", "candidate g = φ(a_g)", "g"),
            Line("28", "kept: f⊙c", "kept"),
            Line("28", "added: i⊙g", "added"),
            Line("28", "new cell c′", "c_new", "result", "c′ = kept + added"),
            Line("29", "φ(c′)", "phi_c"),
            Line("29", "new state h′ = o⊙φ(c′)", "h_new", "result"),
        ]

    def backward_lines(self, network: Network) -> list[Line]:  # noqa: ARG002
        return [
            *_incoming_lines("30"),
            Line("30", "δo = δh′⊙φ(c′)", "d_o"),
            Line("30", "δc′ from the state h′", "dc_output", formula="δh′⊙o⊙φ′"),
            Line("30", "δc′ from the future", "dc_future", formula="δc of the next step"),
            Line("30", "δc′ = sum of both", "dc_new", "result"),
            Line("30", "δf = δc′⊙c", "d_f"),
            Line("30", "δi = δc′⊙g", "d_i"),
            Line("30", "δg = δc′⊙i", "d_g"),
            *(Line("30", f"δa_{gate} = δ{gate}⊙σ′", f"d_a_{gate}") for gate in "ifo"),
            Line("30", "δa_g = δg⊙φ′", "d_a_g"),
            Line("30", "δc = δc′⊙f, direct path", "dc", "result"),
            Line("30", "δh, through the input gate", "dh_input_gate", formula="δa_i U_iᵀ"),
            Line("30", "δh, through the forget gate", "dh_forget_gate", formula="δa_f U_fᵀ"),
            Line("30", "δh, through the output gate", "dh_output_gate", formula="δa_o U_oᵀ"),
            Line("30", "δh, candidate path", "dh_candidate", formula="δa_g U_gᵀ"),
            Line("30", "δh = sum of the paths", "dh", "result"),
        ]


CELLS: dict[str, Cell] = {
    "gru": _GRU(),
    "rnn": _VanillaRNN(),
    "lstm": _LSTM(),
    "mgu": _MGU(),
    "minimal_gru": _MinimalGRU(),
    "coupled_gru": _CoupledGRU(),
}
"""The cells by the names that a network file gives them."""
