"""What a trace needs to know of a recurrent cell."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from keras_gru.teaching.cells.notebook import Notebook, Values
from keras_gru.teaching.network_fields import Array

if TYPE_CHECKING:
    from keras_gru.teaching.network import Network


@dataclass(frozen=True)
class Line:
    """One line of a calculation: a quantity of the trace, and the equation it is found by."""

    equation: str
    """Its number in DERIVATION.md; empty for what is given."""
    label: str
    """The equation, in words and symbols."""
    name: str
    """The quantity's name in the trace."""
    kind: str = ""
    """`gate`: a value in [0, 1]; `result`: what the lines before it lead to."""
    formula: str = ""
    """How it is calculated, where the label does not say so."""


class Cell(ABC):
    """A recurrent cell: one step forward and one step backward, line by line."""

    title: ClassVar[str]
    blocks: ClassVar[Mapping[str, str]]
    """Names for people, by block: gates and candidate, in the order of `layer.get_weights()`."""
    weight_equation: ClassVar[str] = "15"
    """Of the weight gradients."""
    options: ClassVar[frozenset[str]] = frozenset()
    """Fields of a network that only some cells have, and this one does."""

    @abstractmethod
    def forward(self, network: "Network", state: Values, note: Notebook) -> Values:
        """Advance by one step.

        Args:
            network: Weights and activations.
            state: `h`, (U,), and for an LSTM `c`, (U,).
            note: Holds `x`; records everything else, the new state as `h_new` and `c_new`.

        Returns:
            The new state.
        """

    @abstractmethod
    def backward(self, network: "Network", future: Values, note: Notebook) -> Values:
        """Take the gradients of one step back to the step before.

        Args:
            network: Weights and activations.
            future: Gradients that later steps give to this step's new state, by its name.
            note: Of the step's forward pass, with `dh_new`, the gradient of `h_new`.

        Returns:
            Gradients of the state before the step, by name.
        """

    @abstractmethod
    def convention(self, network: "Network") -> str:
        """The equations that tell this cell from its relatives."""

    @abstractmethod
    def forward_lines(self, network: "Network") -> list[Line]:
        """The forward calculation in the order in which it is done on paper."""

    @abstractmethod
    def backward_lines(self, network: "Network") -> list[Line]:
        """The backward calculation, likewise, from the gradient of the new state."""

    def start(self, network: "Network") -> Values:
        """The state before the first step."""
        return {"h": network.initial_state}

    def symbol(self, weight: str) -> str:
        """How DERIVATION.md writes a weight such as `W_z`."""
        return {"W_out": "V", "b_out": "b_y"}.get(weight, weight.replace("c_", "b′_"))


def affine(network: "Network", block: str, x: Array, h: Array, note: Notebook) -> Array:
    """One block's x W + b + h U, written down in its parts."""
    input_part = note(f"xW_{block}", x @ network.kernel[block])
    state_part = note(f"hU_{block}", h @ network.recurrent_kernel[block])
    biases = network.bias[block] + network.recurrent_bias[block]
    return note(f"a_{block}", input_part + biases + state_part)


def weight_shares(note: Notebook, block: str, x: Array, h: Array, d_a: Array) -> None:
    """This step's share of the gradients of one block whose matrices read x and h."""
    note(f"dW_{block}", np.outer(x, d_a))
    note(f"dU_{block}", np.outer(h, d_a))
    note(f"db_{block}", d_a)


def incoming_lines(future: str) -> list[Line]:
    """Where the gradient of a new state comes from; `future` is the equation of the next step."""
    return [
        Line("20", "δh′ from this step's output", "dh_output", formula="δo Vᵀ"),
        Line(future, "δh′ from the future", "dh_future", formula="δh of the next step"),
        Line("6", "δh′ = sum of both", "dh_new", "result"),
    ]
