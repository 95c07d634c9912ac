"""Arrays of Arrow made of Python's and NumPy's values without loading pandas."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa


def arrow_array(values: Sequence[Any] | np.ndarray, kind: pa.DataType) -> pa.Array:
    """An array as `pa.array` makes it, which would load pandas: longer than scoring a few rows.

    Args:
        values: N texts, numbers, or other values; None where one is missing.
        kind: Type of the array.

    Returns:
        N values of that type.
    """
    if pa.types.is_string(kind):
        return _texts(values)
    if isinstance(values, np.ndarray) and pa.from_numpy_dtype(values.dtype) == kind:
        numbers = np.ascontiguousarray(values)
        return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])
    return pa.array(values, kind)


def _texts(values: Sequence[str | None] | np.ndarray) -> pa.Array:
    offsets, content = np.zeros(len(values) + 1, np.int64), bytearray()
    there = np.ones(len(values), bool)
    for number, value in enumerate(values):
        if value is None:
            there[number] = False
        else:
            content += value.encode()
        offsets[number + 1] = len(content)
    known = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    buffers = [known, pa.py_buffer(offsets), pa.py_buffer(content)]
    # With offsets of 64 bits, so that the cast says so where 32 do not suffice.
    return pa.Array.from_buffers(pa.large_string(), len(values), buffers).cast(pa.string())
