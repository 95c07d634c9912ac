"""The recurrent cells that the comparison sets side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from keras_gru.cell import GRUCell
from keras_gru.variants import CoupledGRUCell, MGUCell

ARCHITECTURES: dict[str, Callable[[int], Any]] = {
    "vanilla RNN": keras.layers.SimpleRNNCell,
    "LSTM": keras.layers.LSTMCell,
    # (3b), as the texts have it: without the second bias, parameters are 3 : 4 : 1.
    "GRU": lambda units: GRUCell(units, reset_after=False),
    "MGU": MGUCell,
    "coupled GRU": CoupledGRUCell,
}
BLOCKS = {"vanilla RNN": 1, "LSTM": 4, "GRU": 3, "MGU": 2, "coupled GRU": 2}
"""Gates and candidates of each cell, (26)."""


def parameters(name: str, features: int, units: int) -> int:
    """Parameters of a cell, (26)."""
    return BLOCKS[name] * units * (features + units + 1)


def units_with(name: str, features: int, budget: int) -> int:
    """The most units whose cell has at most `budget` parameters; at least 1."""
    units = 1
    while parameters(name, features, units + 1) <= budget:
        units += 1
    return units


def build_model(name: str, features: int, units: int, outputs: int, sequences: bool) -> Any:
    """A cell in Keras' loop and a linear layer; all cells run in the same loop.

    Args:
        name: A key of `ARCHITECTURES`.
        features: Inputs D of a step.
        units: Size U of the state.
        outputs: Size O of the output.
        sequences: Whether there is an output at every step, (B, T, O), or one, (B, O).
    """
    return keras.Sequential(
        [
            keras.Input((None, features)),
            keras.layers.RNN(ARCHITECTURES[name](units), return_sequences=sequences),
            keras.layers.Dense(outputs),
        ]
    )
