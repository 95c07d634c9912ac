"""Intervals around forecasts: split-conformal calibration.

Vovk et al. 2005 for a point forecast; Romano et al. 2019, "Conformalized Quantile Regression"
(arXiv:1905.03222), theorem 2, for forecasts of quantiles: each level is shifted by the residual of
a finite-sample rank. On rows that are exchangeable with the calibration rows, an interval covers at
least its nominal share. Windows of a series overlap and drift, so this is no guarantee for a
forecast, and the coverage has to be measured.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student_t

from gru_serving.preprocessing.series import MEDIAN, Intervals, calibrated
from gru_training.forecasting.series_check import least_windows

LEVELS = (0.025, 0.1, 0.5, 0.9, 0.975)
"""Levels of the served quantiles: bounds of the 95 % and 80 % intervals, and the forecast."""


def interval_offsets(
    targets: np.ndarray, forecasts: np.ndarray, levels: Sequence[float] = LEVELS
) -> np.ndarray:
    """Compute offsets by horizon and column that turn forecasts into quantiles.

    Args:
        targets: (N, H, K), of rows that were not trained on; NaN is left out.
        forecasts: (N, H, K, 1), point forecasts, or (N, H, K, Q), one for each level.
        levels: The Q levels, ascending, between 0 and 1, with .5, whose offset is zero: it
            stays the forecast.

    Returns:
        (H, K, Q) in the dtype float32. With n residuals the level p takes the one of rank
        ⌈p·(n + 1)⌉ above .5 and ⌊p·(n + 1)⌋ below; where there is no such rank (for .975 with
        fewer than 39 residuals), the greatest or least one, whose level is then n/(n + 1) or
        1/(n + 1). Of a point forecast with residuals of one sign a bound on the other side of it
        is as far away as the absolute residuals say, so that no bound falls on the forecast.

    Raises:
        ValueError: Shapes or levels do not fit, or some horizon and column has no residual.
    """
    _check(targets, forecasts, levels)
    residuals = np.sort(targets[..., np.newaxis] - forecasts, axis=0)  # NaN come last
    counts = np.isfinite(residuals[..., :1]).sum(axis=0)  # (H, K, 1)
    if not counts.all():
        step, column, _ = np.argwhere(counts == 0)[0]
        raise ValueError(
            f"targets must hold a value for every horizon and column, got none for horizon "
            f"{step + 1} of target {column}"
        )
    offsets = np.zeros((*targets.shape[1:], len(levels)), np.float32)
    for q, level in enumerate(levels):
        if level == MEDIAN:
            continue
        # This guards against rounding: .9 · 10 slightly exceeds 9 for some N, and the rank would
        # jump.
        exact = np.round(level * (counts + 1), 9)
        rank = np.ceil(exact) if level > MEDIAN else np.floor(exact)
        place = (np.clip(rank, 1, counts) - 1).astype(int)[np.newaxis]
        of_level = residuals[..., min(q, residuals.shape[-1] - 1)][..., np.newaxis]
        offsets[..., q] = np.take_along_axis(of_level, place, axis=0)[0, ..., 0]
    if forecasts.shape[-1] == 1:
        _open_bounds(offsets, np.abs(residuals[..., 0]), levels)
    return offsets


def _open_bounds(offsets: np.ndarray, sizes: np.ndarray, levels: Sequence[float]) -> None:
    """Replace offsets (H, K, Q) of the wrong sign by quantiles of absolute residuals (N, H, K)."""
    for q, level in enumerate(levels):
        sign = np.sign(level - MEDIAN)
        closed = sign * offsets[..., q] <= 0
        if sign and closed.any():
            ordered = np.sort(sizes[:, closed], axis=0)  # NaN come last
            counts = np.isfinite(ordered).sum(axis=0)
            rank = np.ceil(np.round(abs(2 * level - 1) * (counts + 1), 9))
            place = (np.clip(rank, 1, counts) - 1).astype(int)
            offsets[closed, q] = sign * np.take_along_axis(ordered, place[np.newaxis], axis=0)[0]


def pooled_offsets(
    targets: np.ndarray,
    forecasts: np.ndarray,
    independent: float,
    levels: Sequence[float] = LEVELS,
) -> np.ndarray:
    """Compute `interval_offsets` from the residuals of all horizons and columns together.

    This is for few windows, for which no horizon and column alone has enough residuals for the
    outer levels. Residuals are scaled by their size in their column and at their horizon. As
    windows overlap, even many of them may contain little information, so offsets are widened as
    Student's t is wider than the normal distribution, with a degree of freedom for each independent
    window. A level beyond all residuals is at least that of a normal distribution of their size.

    Few windows do not show on which side of a forecast the truth will lie. With fewer than the
    narrowest interval needs, the bounds of a point forecast are those of absolute residuals,
    symmetric on both sides, and those of a forecast of quantiles are only moved outwards.

    Args:
        targets: (N, H, K) as there; a column without any value gets the typical size.
        forecasts: (N, H, K, 1) or (N, H, K, Q) as in `interval_offsets`.
        independent: Approximate number of windows and columns that do not depend on each other.
        levels: The Q levels, as in `interval_offsets`.

    Raises:
        ValueError: Shapes or levels do not fit, or there is no residual at all.
    """
    _check(targets, forecasts, levels)
    residuals = (targets[..., np.newaxis] - forecasts).astype(np.float64)
    if not np.isfinite(residuals).any():
        raise ValueError("targets must hold a value, got none")
    middle = residuals.shape[-1] // 2
    size = _sizes(residuals[..., middle], independent)  # (H, K)
    scaled = residuals / size[..., np.newaxis]
    offsets = np.zeros((*size.shape, len(levels)), np.float32)
    freedom = max(2.0, independent)
    few = independent < min(least_windows(level) for level in levels if level > MEDIAN)
    point = scaled.shape[-1] == 1
    for q, level in enumerate(levels):
        if level == MEDIAN:
            continue
        sign = np.sign(level - MEDIAN)
        # From here on, a positive bound lies above the forecast, for the lower ones too.
        outward = sign * scaled[..., 0 if point else q].ravel()
        bound = _ranked(outward, max(level, 1 - level), level)
        if point and (few or bound <= 0):
            bound = _ranked(np.abs(outward), abs(2 * level - 1), level)
        elif few:
            bound = max(bound, 0.0)
        wider = student_t.ppf(level, freedom) / norm.ppf(level)
        offsets[..., q] = sign * bound * wider * size
    return offsets


def _ranked(values: np.ndarray, share: float, level: float) -> float:
    """Return the value of rank ⌈share·(n + 1)⌉.

    Beyond all values, at least that of a normal distribution.
    """
    ordered = np.sort(values[np.isfinite(values)])
    rank = math.ceil(round(share * (len(ordered) + 1), 9))
    bound = float(ordered[min(rank, len(ordered)) - 1])
    return bound if rank <= len(ordered) else max(bound, abs(float(norm.ppf(level))))


def _sizes(residuals: np.ndarray, independent: float) -> np.ndarray:
    """Estimate the typical size (H, K) of residuals (N, H, K): a factor per column and step.

    The sizes are roots of mean squares; those of a column with few values are drawn towards the
    mean of all columns, and those of the steps, of few independent windows, towards each other.
    """
    counts = np.isfinite(residuals).sum(axis=(0, 1))
    overall = np.sqrt(np.nanmean(residuals**2)) or 1.0
    squares = np.nansum(residuals**2, axis=(0, 1))
    few = residuals.shape[1]  # as one more window of the typical size
    of_column = np.sqrt((squares + few * overall**2) / (counts + few))  # (K,)
    by_step = (residuals / of_column) ** 2
    steps = np.nansum(by_step, axis=(0, 2)) / np.maximum(np.isfinite(by_step).sum(axis=(0, 2)), 1)
    of_step = np.sqrt((independent * steps + 1) / (independent + 1))  # (H,)
    return np.asarray(of_step[:, np.newaxis] * of_column)


def quantiles(forecasts: Any, offsets: np.ndarray, levels: Sequence[float] = LEVELS) -> np.ndarray:
    """Compute the calibrated quantiles as exports do.

    Args:
        forecasts: Forecasts, (B, H, K, 1) or (B, H, K, Q).
        offsets: (H, K, Q), of `interval_offsets`.
        levels: The Q levels.

    Returns:
        (B, H, K, Q), ascending along Q; that of level .5 is the forecast.
    """
    return calibrated(np.asarray(forecasts), np.asarray(offsets), list(levels).index(MEDIAN))


def calibration(offsets: np.ndarray, levels: Sequence[float]) -> Intervals:
    """Return the calibration of offsets (H, K, Q) as steps of a model."""
    lists = np.asarray(offsets, np.float32).tolist()
    return Intervals(tuple(levels), tuple(tuple(map(tuple, each)) for each in lists))


def _check(targets: np.ndarray, forecasts: np.ndarray, levels: Sequence[float]) -> None:
    if list(levels) != sorted(set(levels)) or MEDIAN not in levels or not min(levels) > 0:
        raise ValueError(f"levels must ascend from above 0 and contain .5, got {tuple(levels)}")
    if max(levels) >= 1:
        raise ValueError(f"levels must be below 1, got {tuple(levels)}")
    fits = forecasts.ndim == 4 and forecasts.shape[:3] == targets.shape
    if not fits or forecasts.shape[3] not in (1, len(levels)):
        raise ValueError(
            f"forecasts must have the shape {(*targets.shape, 1)} or "
            f"{(*targets.shape, len(levels))}, got {forecasts.shape}"
        )
