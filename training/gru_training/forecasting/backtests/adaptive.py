"""Intervals that learn from their misses while a backtest goes on.

Gibbs and Candès (2021), "Adaptive Conformal Inference Under Distribution Shift"
(arXiv:2106.00170), for each step ahead by itself: an interval is made of the quantiles of the last
residuals that are known when it is forecast; their levels move outwards after more misses than
were promised, and inwards after fewer. In the long run the share of misses is what was promised,
whatever the series does: over time and for all columns together, not at each moment.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from gru_training.forecasting.predictor import Predictor
from gru_training.forecasting.scores.forecast_errors import CHUNK
from gru_training.forecasting.windows import Windows

_MEMORY = 250
"""Residuals of a step that a bound is made of."""
_RATE = 0.02
"""How far the share of misses that is aimed at moves after a window: γ of the paper."""
_LEAST = 1e-4


class AdaptiveIntervals:
    """Intervals around the forecasts of windows that come one after another.

    Args:
        shares: Of the values that the P intervals are to hold.
        residuals: (N, H, K), truth minus forecast of windows before; NaN where a value is missing.
        origins: (N,) rows of their first steps, ascending.
    """

    def __init__(self, shares: Sequence[float], residuals: np.ndarray, origins: np.ndarray):
        self.shares = tuple(round(share, 9) for share in shares)
        self._promised = 1 - np.array(shares)[:, np.newaxis]  # (P, 1)
        self._aimed = np.repeat(self._promised, residuals.shape[1], axis=1)  # (P, H)
        self._residuals, self._origins = list(residuals), list(origins)
        self._issued: dict[int, np.ndarray] = {}
        self._settled = np.full(residuals.shape[1], len(residuals))

    def offsets(self, origin: int) -> np.ndarray:
        """What is added to a forecast, from what is known before the row `origin`.

        Args:
            origin: Of the first step that is forecast, later than that of the last window.

        Returns:
            (2, P, H, K): of the lower and the upper bounds.
        """
        steps = np.arange(self._aimed.shape[1])
        known = np.searchsorted(self._origins, origin - steps)  # (H,) windows whose step is over
        self._learn(known)
        places = known - _MEMORY + np.arange(_MEMORY)[:, np.newaxis]  # (M, H)
        first = max(0, int(places.min()))
        recent = np.stack(self._residuals[first : int(known.max())])
        kept = recent[np.maximum(places - first, 0), steps]  # (M, H, K)
        kept = np.sort(np.where(places[..., np.newaxis] >= 0, kept, np.nan), axis=0)
        counts = np.isfinite(kept).sum(axis=0)  # (H, K)
        upper = np.clip(1 - self._aimed / 2, 0.5, 1 - _LEAST)[..., np.newaxis]
        rank = np.clip(np.ceil(np.round(upper * (counts + 1), 9)), 1, np.maximum(counts, 1))
        high = rank.astype(int) - 1  # (P, H, K)
        low = np.maximum(counts, 1) - 1 - high
        found = np.stack([np.take_along_axis(kept, each, axis=0) for each in (low, high)])
        self._issued[origin] = found
        return found

    def observe(self, origin: int, residuals: np.ndarray) -> None:
        """Add the residuals (H, K) of a window, each of which counts once its step is over."""
        self._origins.append(origin)
        self._residuals.append(residuals)

    def _learn(self, known: np.ndarray) -> None:
        """Move the levels by the misses of the windows whose steps have come to an end."""
        for step, count in enumerate(known):
            for place in range(self._settled[step], count):
                issued = self._issued[self._origins[place]][:, :, step]  # (2, P, K)
                truth = self._residuals[place][step]
                seen = np.isfinite(truth)
                if seen.any():
                    outside = (truth < issued[0]) | (truth > issued[1])  # (P, K)
                    missed = outside[:, seen].mean(axis=1)
                    self._aimed[:, step] += _RATE * (self._promised[:, 0] - missed)
            self._settled[step] = max(self._settled[step], count)


def residuals_of(predict: Predictor, windows: Windows) -> Iterator[tuple[int, np.ndarray]]:
    """The first row of each window, and truth minus forecast (H, K) on the network's scale."""
    for rows in windows.chunks(CHUNK):
        answers = predict(windows.histories(rows))
        residuals = windows.futures(rows) - answers[..., answers.shape[-1] // 2]
        yield from zip(windows.origins[rows].tolist(), residuals, strict=True)


def adaptive_coverage(
    intervals: AdaptiveIntervals, predict: Predictor, windows: Windows
) -> dict[float, float]:
    """How many of the values of some windows lie inside, by nominal coverage.

    Args:
        intervals: Which know the windows before; these are added to them.
        predict: Forecasts.
        windows: In the order of time.
    """
    inside, count = np.zeros(len(intervals.shares)), 0
    for origin, residuals in residuals_of(predict, windows):
        low, high = intervals.offsets(origin)
        inside += ((low <= residuals) & (residuals <= high)).sum(axis=(1, 2))
        count += int(np.isfinite(residuals).sum())
        intervals.observe(origin, residuals)
    return {
        share: float(of / max(1, count)) for share, of in zip(intervals.shares, inside, strict=True)
    }
