"""Names of moments in time, and matrices for columns."""

import numpy as np

from keras_gru.teaching.columns.entry import Product
from keras_gru.teaching.network import Network
from keras_gru.teaching.network_fields import Array

_SUBSCRIPTS = str.maketrans("0123456789-", "₀₁₂₃₄₅₆₇₈₉₋")


def at(symbol: str, t: int) -> str:
    """A symbol with its step, such as h₋₁."""
    return f"{symbol}{str(t).translate(_SUBSCRIPTS)}"


def joined_matrix(network: Network, block: str) -> Array:
    """(U, U + D), which texts multiply by [h, x]."""
    return np.hstack([network.recurrent_kernel[block].T, network.kernel[block].T])


def split_products(
    network: Network,
    block: str,
    symbols: tuple[str, str],
    h: tuple[str, Array],
    x: tuple[str, Array],
) -> tuple[Product, ...]:
    """Recurrent and input matrix apart, each with its own column."""
    return (
        Product(symbols[0], network.recurrent_kernel[block].T, *h),
        Product(symbols[1], network.kernel[block].T, *x),
    )


def transposed(symbol: str, kernel: Array, column: tuple[str, Array]) -> Product:
    """A recurrent matrix transposed, times a gradient."""
    return Product(f"{symbol}ᵀ", kernel, *column)
