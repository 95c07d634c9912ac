"""GRUs with one gate: the minimal gated unit, the minimal GRU and the coupled GRU."""

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from keras_gru.teaching.cells.activations import FUNCTIONS, SLOPES
from keras_gru.teaching.cells.cell import Cell, Line, affine, incoming_lines, weight_shares
from keras_gru.teaching.cells.notebook import Notebook, Values
from keras_gru.teaching.network_fields import Array

if TYPE_CHECKING:
    from keras_gru.teaching.network import Network


class _SingleGate(Cell):
    """A cell whose reset factor r is a function of its gate: (31) to (34)."""

    blocks: ClassVar = {"z": "gate", "g": "candidate"}
    options = frozenset(["update_gate", "recurrent_activation"])
    forward_equation, backward_equation = "31", "32"
    added_in_reset = 0
    """What r gains when the share `add` of the candidate grows: 1, 0 or -1."""
    reset_symbols: ClassVar = {"keep": "", "replace": ""}
    """r⊙h, written with the gate z."""

    def forward(self, network: "Network", state: Values, note: Notebook) -> Values:
        """See `Cell`."""
        x, h = note.handed_on["x"], note("h", state["h"])
        z = note("z", FUNCTIONS[network.recurrent_activation](affine(network, "z", x, h, note)))
        keep = note("keep", z if network.update_gate == "keep" else 1 - z)
        add = note("add", 1 - z if network.update_gate == "keep" else z)
        r = note("r", self._reset(keep, add))
        input_part = note("xW_g", x @ network.kernel["g"])
        rh = note("rh", r * h)
        state_part = note("rhU_g", rh @ network.recurrent_kernel["g"])
        a_g = note("a_g", input_part + network.bias["g"] + state_part)
        g = note("g", FUNCTIONS[network.activation](a_g))
        return {"h": note("h_new", note("kept", keep * h) + note("added", add * g))}

    def _reset(self, keep: Array, add: Array) -> Array:
        return {1: add, -1: keep, 0: np.ones_like(add)}[self.added_in_reset]

    def backward(self, network: "Network", future: Values, note: Notebook) -> Values:  # noqa: ARG002
        """See `Cell`."""
        W, U = network.kernel, network.recurrent_kernel
        seen = note.handed_on
        x, h, z, r, g, dh_new = (seen[name] for name in ("x", "h", "z", "r", "g", "dh_new"))
        gate_slope, slope = SLOPES[network.recurrent_activation], SLOPES[network.activation]
        sign = -1 if network.update_gate == "keep" else 1  # of ∂add/∂z

        d_g = note("d_g", dh_new * seen["add"])
        d_a_g = note("d_a_g", d_g * note("slope_g", slope(g)))
        d_rh = note("d_rh", d_a_g @ U["g"].T)
        in_mixture = note("d_z_mixture", sign * dh_new * (g - h))
        in_candidate = note("d_z_candidate", sign * self.added_in_reset * d_rh * h)
        d_z = note("d_z", in_mixture + in_candidate)
        d_a_z = note("d_a_z", d_z * note("slope_z", gate_slope(z)))

        dh_direct = note("dh_direct", dh_new * seen["keep"])
        dh_candidate = note("dh_candidate", d_rh * r)
        through_z = note("dh_update_gate", d_a_z @ U["z"].T)
        dh = note("dh", dh_direct + dh_candidate + through_z)
        note("dx", d_a_z @ W["z"].T + d_a_g @ W["g"].T)
        weight_shares(note, "z", x, h, d_a_z)
        weight_shares(note, "g", x, seen["rh"], d_a_g)
        return {"h": dh}

    def convention(self, network: "Network") -> str:
        """See `Cell`."""
        keep = network.update_gate == "keep"
        update = "h′ = z⊙h + (1−z)⊙g (4a, keep)" if keep else "h′ = (1−z)⊙h + z⊙g (4b, replace)"
        return f"the candidate reads {self._past(network)} ({self.forward_equation}); {update}"

    def _past(self, network: "Network") -> str:
        return self.reset_symbols[str(network.update_gate)]

    def forward_lines(self, network: "Network") -> list[Line]:
        """See `Cell`."""
        keep = network.update_gate == "keep"
        mixture, own, past = "4a" if keep else "4b", self.forward_equation, self._past(network)
        reset = [] if past == "h" else [Line(own, f"p = {past}", "rh")]
        read = "h" if past == "h" else "p"
        return [
            Line("", "previous state h", "h"),
            Line(own, "a_z = xW_z + b_z + hU_z", "a_z"),
            Line(own, "gate z = σ(a_z)", "z", "gate"),
            *reset,
            Line(own, f"a_g = xW_g + b_g + {read}U_g", "a_g"),
            Line(own, "candidate g = φ(a_g)", "g"),
            Line(mixture, "kept: z⊙h" if keep else "kept: (1−z)⊙h", "kept"),
            Line(mixture, "added: (1−z)⊙g" if keep else "added: z⊙g", "added"),
            Line(mixture, "new state h′", "h_new", "result", "h′ = kept + added"),
        ]

    def backward_lines(self, network: "Network") -> list[Line]:
        """See `Cell`."""
        keep, own = network.update_gate == "keep", self.backward_equation
        sign = self.added_in_reset * (-1 if keep else 1)
        terms = [] if sign == 0 else [Line(own, f"δz in p: {'−' if sign < 0 else ''}δp⊙h",
                                           "d_z_candidate")]  # fmt: skip
        past = {"h": "δp", "z⊙h": "δp⊙z"}.get(self._past(network), "δp⊙(1−z)")
        return [
            *incoming_lines(own),
            Line("8", "δg = δh′⊙(1−z)" if keep else "δg = δh′⊙z", "d_g"),
            Line("10", "δa_g = δg⊙φ′", "d_a_g"),
            Line(own, "δp = δa_g U_gᵀ", "d_rh"),
            Line("7", f"δz in h′: δh′⊙{'(h−g)' if keep else '(g−h)'}", "d_z_mixture"),
            *terms,
            Line(own, "δz = sum of the terms", "d_z"),
            Line("9", "δa_z = δz⊙σ′", "d_a_z"),
            Line(own, "δh, direct path", "dh_direct", formula="δh′⊙z" if keep else "δh′⊙(1−z)"),
            Line(own, f"δh, candidate path {past}", "dh_candidate"),
            Line(own, "δh, through the gate", "dh_update_gate", formula="δa_z U_zᵀ"),
            Line(own, "δh = sum of the paths", "dh", "result"),
        ]


class MGU(_SingleGate):
    """The gate that lets the candidate in also resets."""

    title = "Minimal gated unit"
    added_in_reset = 1
    reset_symbols: ClassVar = {"keep": "(1−z)⊙h", "replace": "z⊙h"}


class MinimalGRU(_SingleGate):
    """No reset at all."""

    title = "Minimal GRU without a reset"
    reset_symbols: ClassVar = {"keep": "h", "replace": "h"}


class CoupledGRU(_SingleGate):
    """What is replaced is also reset."""

    title = "GRU with coupled gates"
    forward_equation, backward_equation = "33", "34"
    added_in_reset = -1
    reset_symbols: ClassVar = {"keep": "z⊙h", "replace": "(1−z)⊙h"}
