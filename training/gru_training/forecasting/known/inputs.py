"""Known inputs before they are read: their gaps, and the scale of those of a panel."""

import numpy as np
import pandas as pd

_FEW = 9
"""Different values up to which an input is taken for a kind, such as a promotion or not."""


def common_scale(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of an input, so that a value means the same for every series.

    An input that is always above zero and has many values, such as a price, counts relative to its
    mean in each series. Any other, such as a promotion or a temperature, counts as it is.

    Args:
        rows: (N, K), of the training, NaN where a value is missing.

    Returns:
        Two arrays (K,), the latter above 0.
    """
    seen = np.isfinite(rows)
    K = rows.shape[1]
    if not seen.any():
        return np.zeros(K), np.ones(K)
    values = rows[seen]
    if values.min() <= 0 or len(np.unique(values)) <= _FEW:
        return np.full(K, values.mean()), np.full(K, values.std() or 1.0)
    count = seen.sum(axis=0)
    means = np.where(seen, rows, 0.0).sum(axis=0) / np.maximum(count, 1)
    means = np.where(count > 0, means, values.mean())
    relative = (rows / means - 1)[seen]
    return means, means * (relative.std() or 1.0)


def without_gaps(values: np.ndarray) -> np.ndarray:
    """(rows, n) with NaN replaced by the value before, or else after; 0 where there is none."""
    return np.asarray(pd.DataFrame(values).ffill().bfill().fillna(0.0))
