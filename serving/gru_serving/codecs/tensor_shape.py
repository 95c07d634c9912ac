"""The checks that every shape from outside passes before anything is computed with it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gru_serving.codecs.dtypes import STRING, DType, by_numpy
from gru_serving.errors import InvalidArgument

MAX_RANK = 254
"""Dimensions that a tensor can have in TensorFlow."""
MAX_ARRAY_RANK = 64
"""Dimensions that an array can have in NumPy."""
MAX_STRING_RANK = 32
"""Dimensions beyond which TensorFlow's conversion of string arrays crashes the process."""

_MAX_BYTES = (1 << 63) - 1


class TensorLimitError(InvalidArgument):
    """A tensor that TensorFlow has a form for, but that this server does not take."""


def check_rank(rank: int, dtype: DType) -> None:
    """Check that a tensor may have this many dimensions.

    Raises:
        TensorLimitError: It may in TensorFlow, but no array can hold it, or TensorFlow would crash.
        InvalidArgument: No tensor may have that many.
    """
    if rank <= MAX_STRING_RANK:
        return
    if rank > MAX_RANK:
        raise InvalidArgument(f"a tensor of {rank} dimensions; expected at most {MAX_RANK}")
    limit = MAX_STRING_RANK if dtype is STRING else MAX_ARRAY_RANK
    if rank > limit:
        raise TensorLimitError(
            f"a tensor of {rank} dimensions; expected at most {limit} of type {dtype.name}"
        )


def check_array(array: np.ndarray) -> None:
    """As `check_rank`, for an array that a model is to run on."""
    if array.ndim > MAX_STRING_RANK:
        check_rank(array.ndim, by_numpy(array.dtype))


def count_elements(sizes: Iterable[int], dtype: DType) -> int:
    """The number of elements of a tensor with these sizes; stops at the first that is too much.

    Raises:
        InvalidArgument: A size is negative, or those that are not zero make more bytes than 63
            bits can count.
    """
    most = _MAX_BYTES // dtype.numpy.itemsize
    count, empty = 1, False
    for size in sizes:
        if size < 0:
            raise InvalidArgument(f"a tensor with a dimension of negative size, {size}")
        if size == 0:
            empty = True
            continue
        count *= size
        if count > most:
            raise InvalidArgument("a tensor of more than 2^63 - 1 bytes")
    return 0 if empty else count
