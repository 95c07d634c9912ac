"""The inputs of several requests as one, as TF Serving puts them together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serving.errors import InvalidArgument

_MAX_RANK = 6


def merge(arrays: Sequence[np.ndarray], surplus: int, pad: bool) -> np.ndarray:
    """The inputs of several requests as one, filled up.

    Args:
        arrays: Equal in rank and dtype; equal in all dimensions but the first unless `pad`.
        surplus: Rows to add: repeats of the first row of the last array that has one. 0 where none
            has.
        pad: Bring all to the shape of the largest, as TF Serving: with repeats of each array's own
            first element, at the end of each dimension.

    Raises:
        InvalidArgument: With TF Serving's text: a rank or an empty array that cannot be padded.
    """
    if pad:
        arrays = _padded(arrays)
    if surplus:
        row = next(array[:1] for array in reversed(arrays) if len(array))
        arrays = [*arrays, np.repeat(row, surplus, axis=0)]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _padded(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    shapes = [array.shape[1:] for array in arrays]
    if arrays[0].ndim > _MAX_RANK:
        raise InvalidArgument("Only tensors with rank from 1 to 6 can be padded.")
    if len(set(shapes)) == 1:
        return list(arrays)
    largest = tuple(map(max, zip(*shapes, strict=True)))
    padded = []
    for array in arrays:
        if array.shape[1:] != largest:
            shape = (len(array), *largest)
            if array.size == 0 and np.prod(shape) > 0:
                raise InvalidArgument("Got empty tensor in batch of non-empty tensors.")
            wider = np.empty(shape, array.dtype)
            if wider.size:
                wider[...] = array.flat[0]
                wider[tuple(map(slice, array.shape))] = array
            array = wider
        padded.append(array)
    return padded
