"""The vanilla RNN."""

from typing import TYPE_CHECKING, ClassVar

from keras_gru.teaching.cells.activations import FUNCTIONS, SLOPES
from keras_gru.teaching.cells.cell import Cell, Line, affine, incoming_lines, weight_shares
from keras_gru.teaching.cells.notebook import Notebook, Values

if TYPE_CHECKING:
    from keras_gru.teaching.network import Network


class VanillaRNN(Cell):
    """(22) and (23). Its one block is called `h`."""

    title = "Vanilla RNN"
    blocks: ClassVar = {"h": "state"}
    weight_equation = "23"

    def forward(self, network: "Network", state: Values, note: Notebook) -> Values:
        """See `Cell`."""
        a = affine(network, "h", note.handed_on["x"], note("h", state["h"]), note)
        return {"h": note("h_new", FUNCTIONS[network.activation](a))}

    def backward(self, network: "Network", future: Values, note: Notebook) -> Values:  # noqa: ARG002
        """See `Cell`."""
        seen = note.handed_on
        slope = note("slope_h", SLOPES[network.activation](seen["h_new"]))
        d_a = note("d_a_h", seen["dh_new"] * slope)
        dh = note("dh", d_a @ network.recurrent_kernel["h"].T)
        note("dx", d_a @ network.kernel["h"].T)
        weight_shares(note, "h", seen["x"], seen["h"], d_a)
        return {"h": dh}

    def convention(self, network: "Network") -> str:
        """See `Cell`."""
        return f"h′ = φ(xW + b + hU) (22), φ is {network.activation}"

    def forward_lines(self, network: "Network") -> list[Line]:  # noqa: ARG002
        """See `Cell`."""
        return [
            Line("", "previous state h", "h"),
            Line("22", "xW", "xW_h"),
            Line("22", "hU", "hU_h"),
            Line("22", "a = xW + b + hU", "a_h"),
            Line("22", "new state h′ = φ(a)", "h_new", "result"),
        ]

    def backward_lines(self, network: "Network") -> list[Line]:  # noqa: ARG002
        """See `Cell`."""
        return [
            *incoming_lines("23"),
            Line("23", "slope φ′", "slope_h"),
            Line("23", "δa = δh′⊙φ′", "d_a_h"),
            Line("23", "δh = δa Uᵀ", "dh", "result"),
        ]

    def symbol(self, weight: str) -> str:
        """See `Cell`."""
        return super().symbol(weight.removesuffix("_h"))
