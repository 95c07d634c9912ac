"""The inputs of several requests as one, as TF Serving puts them together."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gru_serving.engine.batching.task import Task
from gru_serving.errors import InvalidArgument

_MAX_RANK = 6
# Padding may add as much memory as the data, or this much; beyond that, requests run apart.
_FREE_PADDING = 16 << 20


def tells_lengths(arrays: Sequence[np.ndarray]) -> bool:
    """Whether a model can tell its rows from their padding: each has an integer beside it.

    Padding repeats what stands first in an array, so that no value can mean that nothing follows,
    and a mask grows with what it masks. Without lengths an answer depends on the other requests in
    the batch, and a row that is too short to be accepted may become long enough.
    """
    return any(array.ndim == 1 and array.dtype.kind in "iu" for array in arrays)


def padded_groups(tasks: Sequence[Task]) -> list[list[Task]]:
    """The tasks of a batch, apart where padding them to one shape would take too much memory."""
    if _affordable(tasks):
        return [list(tasks)]
    groups: list[list[Task]] = []
    for task in sorted(tasks, key=_row_bytes):
        if groups and _affordable([*groups[-1], task]):
            groups[-1].append(task)
        else:
            groups.append([task])
    return groups


def _row_bytes(task: Task) -> float:
    return sum(array.nbytes for array in task.inputs) / max(1, task.size)


def _affordable(tasks: Sequence[Task]) -> bool:
    rows = sum(task.size for task in tasks)
    real = padded = 0
    for column in zip(*(task.inputs for task in tasks), strict=True):
        real += sum(array.nbytes for array in column)
        padded += rows * math.prod(_largest(column)) * column[0].itemsize
    return padded - real <= max(real, _FREE_PADDING)


def _largest(arrays: Sequence[np.ndarray]) -> tuple[int, ...]:
    return tuple(map(max, zip(*(array.shape[1:] for array in arrays), strict=True)))


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
    if pad and arrays[0].ndim > _MAX_RANK:
        raise InvalidArgument("Only tensors with rank from 1 to 6 can be padded.")
    if not pad or len({array.shape[1:] for array in arrays}) == 1:
        if surplus:
            row = next(array[:1] for array in reversed(arrays) if len(array))
            arrays = [*arrays, np.repeat(row, surplus, axis=0)]
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    return _padded(arrays, surplus)


def _padded(arrays: Sequence[np.ndarray], surplus: int) -> np.ndarray:
    largest = _largest(arrays)
    if math.prod(largest) and any(array.size == 0 for array in arrays if len(array)):
        raise InvalidArgument("Got empty tensor in batch of non-empty tensors.")
    rows = sum(map(len, arrays))
    merged = np.empty((rows + surplus, *largest), arrays[0].dtype)
    start = last = 0
    for array in arrays:
        part = merged[start : start + len(array)]
        if part.size:
            if array.shape != part.shape:
                part[...] = array.flat[0]
            part[tuple(map(slice, array.shape))] = array
        if len(array):
            last = start
        start += len(array)
    if surplus:
        merged[rows:] = merged[last]
    return merged
