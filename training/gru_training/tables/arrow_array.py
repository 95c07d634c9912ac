"""Arrow arrays made from Python and NumPy values without loading pandas."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa


def arrow_array(values: Sequence[Any] | np.ndarray, kind: pa.DataType) -> pa.Array:
    """Make the array of `pa.array`, which would load pandas.

    Loading pandas takes longer than scoring a few rows.

    Args:
        values: N texts, numbers, or other values; None where one is missing.
        kind: Type of the array.

    Returns:
        N values of that type.
    """
    if isinstance(values, np.ndarray) and pa.from_numpy_dtype(values.dtype) == kind:
        numbers = np.ascontiguousarray(values)
        return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])
    if kind == pa.int64():
        numbers = np.array([0 if value is None else value for value in values], np.int64)
        return pa.Array.from_buffers(kind, len(values), [_known(values), pa.py_buffer(numbers)])
    if kind == pa.string():
        content, ends = BytesIO(), np.zeros(len(values) + 1, np.int64)
        for place, value in enumerate(values, start=1):
            content.write(b"" if value is None else value.encode())
            ends[place] = content.tell()
        buffers = [_known(values), pa.py_buffer(ends), pa.py_buffer(content.getbuffer())]
        # Offsets have 64 bits; if 32 do not suffice, the cast reports it.
        return pa.Array.from_buffers(pa.large_string(), len(values), buffers).cast(kind)
    return pa.array(values, kind)


def _known(values: Sequence[Any] | np.ndarray) -> pa.Buffer | None:
    """Return a bit per value, 0 for None; None if there is no None."""
    known = np.array([value is not None for value in values], bool)
    return None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
