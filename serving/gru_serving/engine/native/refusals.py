"""Errors of the steps before a graph, as TensorFlow says them."""

from __future__ import annotations

import numpy as np

from gru_serving.errors import InvalidArgument


def failed(message: str) -> InvalidArgument:
    """As of an Assert."""
    return InvalidArgument(f"assertion failed: [{message}]")


def shape_text(array: np.ndarray) -> str:
    """A shape as in `[2,3]`."""
    return f"[{','.join(map(str, array.shape))}]"
