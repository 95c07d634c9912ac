"""One equation in a text's symbols, with the matrices and columns in it."""

from dataclasses import dataclass
from typing import NamedTuple

from keras_gru.teaching.network_fields import Array


class Product(NamedTuple):
    """A matrix times a column."""

    matrix_symbol: str
    matrix: Array
    """(rows, columns)."""
    column_symbol: str
    column: Array
    """(columns,)."""


@dataclass(frozen=True)
class Entry:
    """An equation and its value."""

    symbol: str
    """Left of the equals sign."""
    formula: str
    """Right of it; empty for what is given or a plain sum of products."""
    value: Array
    products: tuple[Product, ...] = ()
    """Of which the value, or what an activation is taken of, is the sum."""
    added: tuple[str, Array] | None = None
    """A column added to the products: its symbol and values."""
    result: bool = False
