"""Arrays as the runtime takes and gives them."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from gru_serving.codecs.dtypes import DType, by_numpy
from gru_serving.errors import InvalidArgument


def check_dtype(place: int, wanted: DType, array: np.ndarray) -> None:
    """Whether an array has the type of the input that it is for.

    Args:
        place: Of the input among those that are fed.
        wanted: Of the input.
        array: What is fed.

    Raises:
        InvalidArgument: With TensorFlow's text: it has not.
    """
    given = by_numpy(array.dtype)
    if given is not wanted:
        raise InvalidArgument(
            f"Expects arg[{place}] to be {wanted.name} but {given.name} is provided"
        )


def as_bytes(array: np.ndarray) -> np.ndarray:
    """The runtime gives `str` where this server has `bytes`."""
    if array.dtype.kind not in "OU":
        return array
    flat = np.empty(array.size, object)
    flat[:] = [text.encode() for text in array.ravel().tolist()]
    return flat.reshape(array.shape)


def as_texts(array: np.ndarray) -> np.ndarray:
    """The other way: `str`, with U+FFFD for bytes that are no UTF-8."""
    if array.dtype.kind != "O":
        return array
    flat = np.empty(array.size, object)
    flat[:] = [text.decode("utf-8", "replace") for text in array.ravel().tolist()]
    return flat.reshape(array.shape)


def size_of(arrays: Collection[np.ndarray]) -> int:
    """How much there is to read in arrays: numbers, and characters of texts."""
    return sum(
        sum(map(len, array.ravel().tolist())) + array.size
        if array.dtype.kind == "O"
        else array.size
        for array in arrays
    )
