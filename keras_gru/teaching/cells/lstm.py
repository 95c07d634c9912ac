"""The LSTM."""

from typing import TYPE_CHECKING, ClassVar

from keras_gru.teaching.cells.activations import FUNCTIONS, SLOPES
from keras_gru.teaching.cells.cell import Cell, Line, affine, incoming_lines, weight_shares
from keras_gru.teaching.cells.notebook import Notebook, Values

if TYPE_CHECKING:
    from keras_gru.teaching.network import Network

_GATES = ("i", "f", "o")


class LSTM(Cell):
    """(27) to (30)."""

    title = "LSTM"
    blocks: ClassVar = {"i": "input gate", "f": "forget gate", "g": "candidate", "o": "output gate"}
    options = frozenset(["recurrent_activation", "initial_cell"])

    def start(self, network: "Network") -> Values:
        """See `Cell`."""
        assert network.initial_cell is not None
        return {"h": network.initial_state, "c": network.initial_cell}

    def forward(self, network: "Network", state: Values, note: Notebook) -> Values:
        """See `Cell`."""
        gate_activation, activation = (
            FUNCTIONS[name] for name in (network.recurrent_activation, network.activation)
        )
        x, h, c = note.handed_on["x"], note("h", state["h"]), note("c", state["c"])
        for block in self.blocks:  # (27)
            a = affine(network, block, x, h, note)
            note(block, activation(a) if block == "g" else gate_activation(a))
        i, f, o, g = (note.handed_on[block] for block in ("i", "f", "o", "g"))
        c_new = note("c_new", note("kept", f * c) + note("added", i * g))  # (28)
        shown = note("phi_c", activation(c_new))
        return {"h": note("h_new", o * shown), "c": c_new}  # (29)

    def backward(self, network: "Network", future: Values, note: Notebook) -> Values:
        """See `Cell`."""
        W, U = network.kernel, network.recurrent_kernel
        seen = note.handed_on
        x, h, c, i, f, o, g = (seen[name] for name in ("x", "h", "c", "i", "f", "o", "g"))
        gate_slope, slope = SLOPES[network.recurrent_activation], SLOPES[network.activation]

        d = {"o": note("d_o", seen["dh_new"] * seen["phi_c"])}  # (30)
        of_state = seen["dh_new"] * o * note("slope_c", slope(seen["phi_c"]))
        dc_new = note("dc_new", note("dc_output", of_state) + note("dc_future", future["c"]))
        d["f"] = note("d_f", dc_new * c)
        d["i"] = note("d_i", dc_new * g)
        d["g"] = note("d_g", dc_new * i)
        d_a = {
            block: note(
                f"d_a_{block}",
                d[block]
                * note(f"slope_{block}", (slope if block == "g" else gate_slope)(seen[block])),
            )
            for block in self.blocks
        }
        dc = note("dc", dc_new * f)
        paths = {"i": "dh_input_gate", "f": "dh_forget_gate", "g": "dh_candidate",
                 "o": "dh_output_gate"}  # fmt: skip
        dh = note("dh", sum(note(path, d_a[k] @ U[k].T) for k, path in paths.items()))
        note("dx", sum(d_a[block] @ W[block].T for block in self.blocks))
        for block in self.blocks:
            weight_shares(note, block, x, h, d_a[block])
        return {"h": dh, "c": dc}

    def convention(self, network: "Network") -> str:
        """See `Cell`."""
        return f"c′ = f⊙c + i⊙g (28), h′ = o⊙φ(c′) (29), φ is {network.activation}, also of g"

    def forward_lines(self, network: "Network") -> list[Line]:  # noqa: ARG002
        """See `Cell`."""
        gates = [
            line
            for gate in _GATES
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

    def backward_lines(self, network: "Network") -> list[Line]:  # noqa: ARG002
        """See `Cell`."""
        return [
            *incoming_lines("30"),
            Line("30", "δo = δh′⊙φ(c′)", "d_o"),
            Line("30", "δc′ from the state h′", "dc_output", formula="δh′⊙o⊙φ′"),
            Line("30", "δc′ from the future", "dc_future", formula="δc of the next step"),
            Line("30", "δc′ = sum of both", "dc_new", "result"),
            Line("30", "δf = δc′⊙c", "d_f"),
            Line("30", "δi = δc′⊙g", "d_i"),
            Line("30", "δg = δc′⊙i", "d_g"),
            *(Line("30", f"δa_{gate} = δ{gate}⊙σ′", f"d_a_{gate}") for gate in _GATES),
            Line("30", "δa_g = δg⊙φ′", "d_a_g"),
            Line("30", "δc = δc′⊙f, direct path", "dc", "result"),
            Line("30", "δh, through the input gate", "dh_input_gate", formula="δa_i U_iᵀ"),
            Line("30", "δh, through the forget gate", "dh_forget_gate", formula="δa_f U_fᵀ"),
            Line("30", "δh, through the output gate", "dh_output_gate", formula="δa_o U_oᵀ"),
            Line("30", "δh, candidate path", "dh_candidate", formula="δa_g U_gᵀ"),
            Line("30", "δh = sum of the paths", "dh", "result"),
        ]
