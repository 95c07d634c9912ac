"""Linear regression from the last L values of a column to its next H, in closed form.

Windows have their last value subtracted, and all columns share one L x H matrix. The Gram matrix
of sliding windows needs no window: its entry (i, j) is a sum of products of the series with itself
j - i steps later, and the next one on the diagonal differs by the last product and the first.
"""

import numpy as np

PENALTY = 100.0
"""Of the squared coefficients, beside the squared errors of all windows on standardised values."""


class RidgeForecaster:
    """A fitted regression.

    Args:
        coefficients: (L, H), from windows with their last value subtracted to forecasts likewise.
        targets: The K column numbers that it forecasts.
    """

    def __init__(self, coefficients: np.ndarray, targets: tuple[int, ...]):
        self.coefficients = coefficients
        self._targets = list(targets)

    @property
    def lookback(self) -> int:
        """L, steps read."""
        return len(self.coefficients)

    def __call__(self, histories: np.ndarray) -> np.ndarray:
        """Standardised histories (B, L, C) to forecasts (B, H, K)."""
        columns = histories[..., self._targets].astype(np.float64)
        last = columns[:, -1:]
        return np.asarray(np.einsum("blk,lh->bhk", columns - last, self.coefficients) + last)


def fit_ridge(
    rows: np.ndarray,
    lookback: int,
    horizon: int,
    targets: tuple[int, ...],
    penalty: float = PENALTY,
) -> RidgeForecaster:
    """The regression that is best on every window of some rows.

    Args:
        rows: (N, K) standardised values of the targets. Windows with NaN in them are left out;
            where a column has no other ones, its NaN are first replaced by the value before.
        lookback: L.
        horizon: H.
        targets: The K column numbers, for use on histories of C columns.
        penalty: Above 0.
    """
    width = lookback + horizon
    gram = np.zeros((width, width))
    for column in rows.astype(np.float64).T:
        pieces = [piece for piece in stretches(column) if len(piece) >= width]
        for stretch in pieces or [filled(column)]:
            gram += window_gram(stretch, width)
    at_last = gram[:, lookback - 1]
    # Of w - w[last] for all windows w: expand the product.
    gram = gram - at_last[:, np.newaxis] - at_last + at_last[lookback - 1]
    penalised = gram[:lookback, :lookback] + penalty * np.eye(lookback)
    return RidgeForecaster(np.linalg.solve(penalised, gram[:lookback, lookback:]), targets)


def window_gram(values: np.ndarray, width: int) -> np.ndarray:
    """The sum of w·wᵀ over all windows w of a column, (width, width).

    Args:
        values: (N,) float64, N at least `width`.
        width: Of a window.
    """
    windows = len(values) - width + 1
    gram = np.empty((width, width))
    gram[0] = gram[:, 0] = np.correlate(values, values[:windows])
    first, last = values[: width - 1], values[windows:]
    for i in range(width - 1):
        gram[i + 1, 1:] = gram[i, :-1] + last[i] * last - first[i] * first
    return gram


def stretches(column: np.ndarray) -> list[np.ndarray]:
    """The longest pieces without NaN."""
    seen = np.isfinite(column)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], seen, [False]]).astype(int)))
    return [column[begin:end] for begin, end in edges.reshape(-1, 2)]


def filled(column: np.ndarray) -> np.ndarray:
    """NaN replaced by the value before, or at the beginning by the first one."""
    seen = np.flatnonzero(np.isfinite(column))
    place = np.searchsorted(seen, np.arange(len(column)), side="right") - 1
    return column[seen[np.maximum(place, 0)]]
