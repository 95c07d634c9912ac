"""Batches too large for one request: their number of rows, and the joining of answers."""

from collections.abc import Iterable, Sequence

import numpy as np

from gru_serving.errors import FailedPrecondition, ServingError

Arrays = dict[str, np.ndarray]


def row_count(arrays: Iterable[np.ndarray]) -> int | None:
    """Return the number of rows that all arrays share; None if they do not share one."""
    sizes = {len(array) if array.ndim else None for array in arrays}
    return sizes.pop() if len(sizes) == 1 else None


def join_parts(parts: Sequence[Arrays], counts: Sequence[int]) -> Arrays:
    """Join the outputs of all parts, as `join` does."""
    outputs = {}
    for name in parts[0]:
        columns = [part[name] for part in parts]
        for column, count in zip(columns, counts, strict=True):
            if column.ndim == 0 or len(column) != count:
                raise ServingError(
                    f"output {name}: shape {list(column.shape)} for {count} rows cannot be "
                    "combined from parts; send fewer rows, or do not set max_batch_size"
                )
        outputs[name] = join(columns)
    return outputs


def join(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Join the parts of one output along the rows.

    Where parts differ in a further dimension, such as the padded length of texts, the shorter ones
    are padded at its end with zeros or empty strings.

    Raises:
        FailedPrecondition: The parts differ in rank.
    """
    shapes = {column.shape[1:] for column in columns}
    if len(shapes) == 1:
        return np.concatenate(columns)
    ranks = {1 + len(shape) for shape in shapes}
    if len(ranks) > 1:
        raise FailedPrecondition(
            f"parts of the request gave outputs of ranks {sorted(ranks)}, which cannot be "
            "combined; send fewer rows"
        )
    inner = map(max, zip(*shapes, strict=True))
    whole = np.zeros((sum(map(len, columns)), *inner), columns[0].dtype)
    if whole.dtype == object:
        whole.fill(b"")
    start = 0
    for column in columns:
        where = (slice(start, start + len(column)), *(slice(n) for n in column.shape[1:]))
        whole[where] = column
        start += len(column)
    return whole
