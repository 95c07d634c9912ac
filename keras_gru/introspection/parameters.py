"""How many parameters a vanilla RNN, a GRU and an LSTM have."""

from __future__ import annotations

from typing import NamedTuple

import keras

from keras_gru.layer import GRU


class ParameterCount(NamedTuple):
    """Parameters of one kind of layer."""

    layer: str
    formula: str
    """In D features and U units."""

    predicted: int
    """The formula's value."""

    actual: int
    """What a built layer has."""


def parameter_counts(features: int, units: int) -> list[ParameterCount]:
    """Parameters of the three recurrent layers, by formula and counted in built layers.

    A GRU with the reset gate after the matmul has a second bias per gate.

    Args:
        features: D.
        units: U.
    """
    rows = (
        ("vanilla RNN", "U(D + U + 1)", 1, 1, keras.layers.SimpleRNN(units)),
        ("GRU, reset before", "3U(D + U + 1)", 3, 1, GRU(units, reset_after=False)),
        ("GRU, reset after", "3U(D + U + 2)", 3, 2, GRU(units)),
        ("LSTM", "4U(D + U + 1)", 4, 1, keras.layers.LSTM(units)),
    )
    counts = []
    for name, formula, blocks, biases, layer in rows:
        layer.build((None, None, features))
        predicted = blocks * units * (features + units + biases)
        counts.append(ParameterCount(name, formula, predicted, layer.count_params()))
    return counts


def parameter_table(features: int, units: int) -> str:
    """`parameter_counts` as a table, with each count relative to the vanilla RNN's.

    >>> print(parameter_table(100, 256))
    D = 100, U = 256     formula        predicted   actual  ratio
    vanilla RNN          U(D + U + 1)      91,392   91,392   1.00
    GRU, reset before    3U(D + U + 1)    274,176  274,176   3.00
    GRU, reset after     3U(D + U + 2)    274,944  274,944   3.01
    LSTM                 4U(D + U + 1)    365,568  365,568   4.00
    """
    counts = parameter_counts(features, units)
    heading = f"D = {features}, U = {units}"
    lines = [f"{heading:<20} {'formula':<14} {'predicted':>9} {'actual':>8}  ratio"]
    for layer, formula, predicted, actual in counts:
        ratio = actual / counts[0].actual
        lines.append(f"{layer:<20} {formula:<14} {predicted:>9,} {actual:>8,} {ratio:>6.2f}")
    return "\n".join(lines)
