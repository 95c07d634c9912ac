"""Windows of a series, and batches of them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from gru_training.forecasting.losses import with_scale
from gru_training.forecasting.preprocessor import SeriesPreprocessor
from gru_training.loop.batches import Batch

_MOST_AT_ONCE, _MOST_COLUMNS_AT_ONCE = 256, 1 << 16
"""Windows that are processed at once, and columns of all of them: each has states of its own."""


@dataclass(frozen=True)
class Windows:
    """Some windows of a series, with their inputs and their futures.

    Args:
        values: (rows, C) float32, raw, NaN where a value is missing.
        targets: (rows, K) float32, standardised values of the columns to forecast, NaN likewise.
        origins: (N,) row numbers of the first step to forecast, at least `lookback`.
        lookback: L, steps read.
        horizon: H, steps forecast.
        effects: (rows, K) float32, what known inputs add to each row, which the targets are
            without; None: there are none.
    """

    values: np.ndarray
    targets: np.ndarray
    origins: np.ndarray
    lookback: int
    horizon: int
    effects: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.origins)

    def histories(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Return raw histories (B, L, C) float32 of the windows with these numbers."""
        return self.values[self.origins[rows][:, np.newaxis] + np.arange(-self.lookback, 0)]

    def futures(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Return standardised targets (B, H, K) float32 of the windows with these numbers."""
        return self.targets[self.origins[rows][:, np.newaxis] + np.arange(self.horizon)]

    def effects_ahead(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray | None:
        """Return the effects (B, H, K) float32 of known inputs on `futures`; None without any."""
        if self.effects is None:
            return None
        return self.effects[self.origins[rows][:, np.newaxis] + np.arange(self.horizon)]

    @property
    def at_once(self) -> int:
        """The number of windows that are processed at once, fewer if they are wide."""
        return min(_MOST_AT_ONCE, max(1, _MOST_COLUMNS_AT_ONCE // int(self.values.shape[1])))

    def pieces(self, rows: np.ndarray) -> list[np.ndarray]:
        """Cut window numbers into pieces of at most `at_once`."""
        return np.split(rows, range(self.at_once, len(rows), self.at_once))

    def chunks(self, size: int | None = None) -> Iterator[slice]:
        """Yield all window numbers in order, `size` at a time, by default `at_once`."""
        size = size or self.at_once
        for start in range(0, len(self), size):
            yield slice(start, min(start + size, len(self)))


class WindowBatches:
    """Batches of standardised windows.

    The order of an epoch follows from seed and epoch number alone; only `stride` leaves windows
    out.

    Args:
        windows: Windows to take rows from.
        preprocessor: Preprocessor of each window by itself, as in an exported model.
        batch_size: Windows per batch; the last one may hold fewer.
        seed: Seed of the order.
        stride: Number of windows of which one is used, drawn again for each epoch.
        least_steps: An epoch of fewer batches passes over the windows several times.
        scale: (2, K), added to the futures (`gru_training.forecasting.losses.with_scale`).
    """

    def __init__(
        self,
        windows: Windows,
        preprocessor: SeriesPreprocessor,
        batch_size: int,
        seed: int = 0,
        stride: int = 1,
        least_steps: int = 1,
        scale: np.ndarray | None = None,
    ):
        self._scale = scale
        self._windows, self._batch_size, self._seed = windows, batch_size, seed
        self._count = max(1, len(windows) // stride)
        self._passes = math.ceil(least_steps / math.ceil(self._count / batch_size))
        spec = tf.TensorSpec((None, windows.lookback, windows.values.shape[1]), tf.float32)
        self._standardise = tf.function(
            preprocessor.standardise, input_signature=[spec], autograph=False
        ).get_concrete_function()

    def __len__(self) -> int:
        """Number of batches per epoch."""
        return self._passes * math.ceil(self._count / self._batch_size)

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield the batches of one epoch."""
        rng = np.random.default_rng((self._seed, number))
        for _ in range(self._passes):
            order = rng.permutation(len(self._windows))[: self._count]
            for start in range(0, self._count, self._batch_size):
                yield self._batch(order[start : start + self._batch_size])

    def in_order(self) -> Iterator[Batch]:
        """Yield all windows in order, for evaluation."""
        for chunk in self._windows.chunks(self._batch_size):
            yield self._batch(chunk)

    def _batch(self, rows: np.ndarray | slice) -> Batch:
        histories = self._standardise(self._windows.histories(rows))
        futures = self._windows.futures(rows)
        if self._scale is not None:
            futures = with_scale(futures, self._scale, self._windows.effects_ahead(rows))
        return Batch(histories, futures)


UNKNOWN_SHARE = 0.1
"""Share of the rows whose series is hidden in training, so that unknown series can be forecast."""


class SeriesBatches:
    """Batches of single series, drawn over series and times.

    A row is a window of one column, standardised and filled as by `SeriesPreprocessor.standardise`.
    All windows and columns with any value to compare with are equally likely.

    Args:
        windows: Windows to take rows from.
        preprocessor: Scale of all columns.
        batch_size: Rows per batch.
        steps: Batches per epoch.
        seed: Seed of the draws.
        scale: (2, K), of which that of its column is added to each row's future
            (`gru_training.forecasting.losses.with_scale`).
        with_ids: Add a column with the number of the series, 0 to K - 1. Of some rows of an epoch
            it is K, which stands for any series.
    """

    def __init__(
        self,
        windows: Windows,
        preprocessor: SeriesPreprocessor,
        batch_size: int,
        steps: int,
        seed: int = 0,
        scale: np.ndarray | None = None,
        with_ids: bool = False,
    ):
        self._scale, self._with_ids = scale, with_ids
        self._windows, self._batch_size = windows, batch_size
        self._steps, self._seed = steps, seed
        columns = list(preprocessor.targets)
        self._read = preprocessor.standardise_targets(
            windows.values[:, columns].astype(np.float64)
        ).astype(np.float32)
        if windows.effects is not None:
            self._read = self._read - windows.effects
        self._pairs = np.flatnonzero(self._forecastable())

    def __len__(self) -> int:
        """Number of batches per epoch."""
        return self._steps

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield the batches of one epoch; they follow from seed and epoch number alone."""
        rng = np.random.default_rng((self._seed, number))
        for _ in range(self._steps):
            pairs = self._pairs[rng.integers(len(self._pairs), size=self._batch_size)]
            yield self._batch(
                pairs, rng.random(len(pairs)) < UNKNOWN_SHARE if self._with_ids else None
            )

    def in_order(self, most: int) -> Iterator[Batch]:
        """Yield evenly spread rows, at most this many, for evaluation."""
        count = min(most, len(self._pairs))
        places = np.linspace(0, len(self._pairs) - 1, count).round().astype(int)
        for start in range(0, count, self._batch_size):
            yield self._batch(self._pairs[places[start : start + self._batch_size]])

    def _forecastable(self) -> np.ndarray:
        """Mark where a column has values both before and after an origin, (N, K)."""
        seen = np.isfinite(self._windows.targets)
        count = np.concatenate([np.zeros((1, seen.shape[1]), int), np.cumsum(seen, axis=0)])
        origins, windows = self._windows.origins, self._windows
        after = count[origins + windows.horizon] > count[origins]
        return np.asarray(after & (count[origins] > count[origins - windows.lookback]))

    def _batch(self, pairs: np.ndarray, untold: np.ndarray | None = None) -> Batch:
        windows = self._windows
        rows, columns = np.divmod(pairs, self._read.shape[1])
        origins, of_column = windows.origins[rows][:, np.newaxis], columns[:, np.newaxis]
        histories = _filled(self._read[origins + np.arange(-windows.lookback, 0), of_column])
        ahead = origins + np.arange(windows.horizon), of_column
        futures = windows.targets[ahead][..., np.newaxis]
        if self._scale is not None:
            effects = None if windows.effects is None else windows.effects[ahead][..., np.newaxis]
            futures = with_scale(futures, self._scale.T[columns][..., np.newaxis], effects)
        read = histories[..., np.newaxis]
        if self._with_ids:
            ids = columns if untold is None else np.where(untold, self._read.shape[1], columns)
            told = np.broadcast_to(ids[:, np.newaxis, np.newaxis], read.shape)
            read = np.concatenate([read, told.astype(np.float32)], axis=-1)
        return Batch(read, futures)


def _filled(rows: np.ndarray) -> np.ndarray:
    """Fill NaN in (B, L) with the value before, or with the first value; each row has one."""
    seen = np.isfinite(rows)
    if seen.all():
        return rows
    places = np.where(seen, np.arange(rows.shape[1]), -1)
    before = np.maximum.accumulate(places, axis=1)
    before = np.where(before < 0, seen.argmax(axis=1)[:, np.newaxis], before)
    return np.take_along_axis(rows, before, axis=1)
