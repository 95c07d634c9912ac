"""Batches too large for one request: how many rows there are, and answers put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from serving.errors import ServingError

Arrays = dict[str, np.ndarray]


def row_count(arrays: Mapping[str, np.ndarray]) -> int | None:
    """The number of rows that all inputs have; None where they have no common one."""
    sizes = {len(array) if array.ndim else None for array in arrays.values()}
    return sizes.pop() if len(sizes) == 1 else None


def join_parts(parts: Sequence[Arrays], counts: Sequence[int]) -> Arrays:
    """The outputs of all parts, one after the other.

    Where parts differ in a further dimension, as the padded length of texts, the shorter ones are
    padded at its end with zeros or empty strings.
    """
    outputs = {}
    for name in parts[0]:
        columns = [part[name] for part in parts]
        for column, count in zip(columns, counts, strict=True):
            if column.ndim == 0 or len(column) != count:
                raise ServingError(
                    f"output {name}: shape {list(column.shape)} for {count} rows cannot be put "
                    "together from parts; send fewer rows or set no max_batch_size"
                )
        inner = np.max([column.shape[1:] for column in columns], axis=0).astype(int)
        whole = np.zeros((sum(counts), *inner), columns[0].dtype)
        if whole.dtype == object:
            whole.fill(b"")
        start = 0
        for column in columns:
            where = (slice(start, start + len(column)), *(slice(n) for n in column.shape[1:]))
            whole[where] = column
            start += len(column)
        outputs[name] = whole
    return outputs
