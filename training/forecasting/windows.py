"""Windows of a series, and batches of them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from training.forecasting.preprocessor import SeriesPreprocessor
from training.loop.batches import Batch


@dataclass(frozen=True)
class Windows:
    """Some windows of a series: what is read of each, and what follows it.

    Args:
        values: (rows, C) float32, raw, NaN where a value is missing.
        targets: (rows, K) float32, standardised values of the columns to forecast, NaN likewise.
        origins: (N,) row numbers of the first step to forecast, at least `lookback`.
        lookback: L, steps read.
        horizon: H, steps forecast.
    """

    values: np.ndarray
    targets: np.ndarray
    origins: np.ndarray
    lookback: int
    horizon: int

    def __len__(self) -> int:
        return len(self.origins)

    def histories(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """(B, L, C) float32 raw histories of the windows with these numbers."""
        return self.values[self.origins[rows][:, np.newaxis] + np.arange(-self.lookback, 0)]

    def futures(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """(B, H, K) float32 standardised targets of the windows with these numbers."""
        return self.targets[self.origins[rows][:, np.newaxis] + np.arange(self.horizon)]

    def chunks(self, size: int) -> Iterator[slice]:
        """All window numbers in order, `size` at a time."""
        for start in range(0, len(self), size):
            yield slice(start, min(start + size, len(self)))


class WindowBatches:
    """Batches of standardised windows.

    The order of an epoch follows from seed and epoch number alone, and no window is left out but
    by `stride`.

    Args:
        windows: Which ones.
        preprocessor: Standardises each window by itself, as in an exported model.
        batch_size: Windows per batch; the last one may hold fewer.
        seed: Of the shuffling.
        stride: Use one window in this many, drawn again for each epoch.
    """

    def __init__(
        self,
        windows: Windows,
        preprocessor: SeriesPreprocessor,
        batch_size: int,
        seed: int = 0,
        stride: int = 1,
    ):
        self._windows, self._batch_size, self._seed = windows, batch_size, seed
        self._count = max(1, len(windows) // stride)
        spec = tf.TensorSpec((None, windows.lookback, windows.values.shape[1]), tf.float32)
        self._standardise = tf.function(preprocessor.standardise, input_signature=[spec])

    def __len__(self) -> int:
        """Batches per epoch."""
        return math.ceil(self._count / self._batch_size)

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of one epoch."""
        rng = np.random.default_rng((self._seed, number))
        order = rng.permutation(len(self._windows))[: self._count]
        for start in range(0, self._count, self._batch_size):
            yield self._batch(order[start : start + self._batch_size])

    def in_order(self) -> Iterator[Batch]:
        """All windows, for evaluation."""
        for chunk in self._windows.chunks(self._batch_size):
            yield self._batch(chunk)

    def _batch(self, rows: np.ndarray | slice) -> Batch:
        histories = self._standardise(self._windows.histories(rows))
        return Batch(histories, self._windows.futures(rows))
