"""The GRU, in both placements of its reset gate and both conventions of its update gate."""

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from keras_gru.teaching.cells.activations import FUNCTIONS, SLOPES
from keras_gru.teaching.cells.cell import Cell, Line, affine, incoming_lines
from keras_gru.teaching.cells.notebook import Notebook, Values

if TYPE_CHECKING:
    from keras_gru.teaching.network import Network


class GRU(Cell):
    """(1) to (15)."""

    title = "GRU"
    blocks: ClassVar = {"z": "update gate", "r": "reset gate", "g": "candidate"}
    options = frozenset(["update_gate", "reset_after", "recurrent_activation"])

    def forward(self, network: "Network", state: Values, note: Notebook) -> Values:
        """See `Cell`."""
        U, b, c = network.recurrent_kernel, network.bias, network.recurrent_bias
        gate_activation = FUNCTIONS[network.recurrent_activation]
        x, h = note.handed_on["x"], note("h", state["h"])
        for gate in ("z", "r"):  # (1), (2)
            note(gate, gate_activation(affine(network, gate, x, h, note)))
        z, r = note.handed_on["z"], note.handed_on["r"]

        input_part = note("xW_g", x @ network.kernel["g"])
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
        mixed = note("kept", keep * h) + note("added", add * g)  # (4a), (4b)
        return {"h": note("h_new", mixed)}

    def backward(self, network: "Network", future: Values, note: Notebook) -> Values:  # noqa: ARG002
        """See `Cell`."""
        W, U = network.kernel, network.recurrent_kernel
        seen = note.handed_on
        x, h, z, r, g, dh_new = (seen[name] for name in ("x", "h", "z", "r", "g", "dh_new"))
        gate_slope, slope = SLOPES[network.recurrent_activation], SLOPES[network.activation]

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

        for gate, d_a in (("z", d_a_z), ("r", d_a_r), ("g", d_a_g)):  # (15), this step's share
            note(f"dW_{gate}", np.outer(x, d_a))
            note(f"db_{gate}", d_a)
        note("dU_z", np.outer(h, d_a_z))
        note("dU_r", np.outer(h, d_a_r))
        note("dU_g", np.outer(h, d_q) if network.reset_after else np.outer(seen["rh"], d_a_g))
        if network.reset_after:
            note("dc_z", d_a_z)
            note("dc_r", d_a_r)
            note("dc_g", d_q)
        return {"h": dh}

    def convention(self, network: "Network") -> str:
        """See `Cell`."""
        keep = network.update_gate == "keep"
        update = "h′ = z⊙h + (1−z)⊙g (4a, keep)" if keep else "h′ = (1−z)⊙h + z⊙g (4b, replace)"
        place = "after the matmul (3a)" if network.reset_after else "before the matmul (3b)"
        return f"reset gate {place}; {update}"

    def forward_lines(self, network: "Network") -> list[Line]:
        """See `Cell`."""
        keep = network.update_gate == "keep"
        mixture = "4a" if keep else "4b"
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
            Line(mixture, "kept: z⊙h" if keep else "kept: (1−z)⊙h", "kept"),
            Line(mixture, "added: (1−z)⊙g" if keep else "added: z⊙g", "added"),
            Line(mixture, "new state h′", "h_new", "result", "h′ = kept + added"),
        ]

    def backward_lines(self, network: "Network") -> list[Line]:
        """See `Cell`."""
        keep, after = network.update_gate == "keep", network.reset_after
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
        return [
            *incoming_lines("13"),
            Line("7", "δz = δh′⊙(h−g)" if keep else "δz = δh′⊙(g−h)", "d_z"),
            Line("9", "δa_z = δz⊙σ′", "d_a_z"),
            Line("8", "δg = δh′⊙(1−z)" if keep else "δg = δh′⊙z", "d_g"),
            Line("10", "δa_g = δg⊙φ′", "d_a_g"),
            *reset,
            Line("12", "δa_r = δr⊙σ′", "d_a_r"),
            Line("13", "δh, direct path", "dh_direct", formula="δh′⊙z" if keep else "δh′⊙(1−z)"),
            Line(
                "13",
                "δh, candidate path",
                "dh_candidate",
                formula="δq U_gᵀ" if after else "δ(r⊙h)⊙r",
            ),
            Line("13", "δh, through the update gate", "dh_update_gate", formula="δa_z U_zᵀ"),
            Line("13", "δh, through the reset gate", "dh_reset_gate", formula="δa_r U_rᵀ"),
            Line("13", "δh = sum of the paths", "dh", "result"),
        ]
