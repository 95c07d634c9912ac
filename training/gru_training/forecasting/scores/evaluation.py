"""What a trained forecaster achieves on held-out windows, its intervals included."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gru_training.errors import DataError
from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.predictor import Predictor
from gru_training.forecasting.preprocessor import SeriesPreprocessor
from gru_training.forecasting.scores.conformal import (
    LEVELS,
    MEDIAN,
    interval_offsets,
    pooled_offsets,
    quantiles,
)
from gru_training.forecasting.scores.forecast_errors import CHUNK, ErrorSums, ForecastErrors
from gru_training.forecasting.scores.support import Support
from gru_training.forecasting.sources.series_check import calibration_problem
from gru_training.forecasting.windows import Windows

_MOST_RESIDUALS = 60_000_000


@dataclass(frozen=True)
class Interval:
    """How often the true value lay between two quantiles."""

    nominal: float
    """The nominal coverage."""
    inside: np.ndarray
    """(H, K): share of the values that lay inside; NaN where nothing was seen."""
    count: np.ndarray
    """(H, K): values compared with."""
    width: np.ndarray
    """(H, K): mean width on the standardised scale."""

    @property
    def coverage(self) -> float:
        """Share of all values."""
        return float(np.nansum(self.inside * self.count) / self.count.sum())

    def by_horizon(self) -> np.ndarray:
        """(H,) share at each step; NaN where nothing was seen."""
        return self._shares(axis=1)

    def by_column(self) -> np.ndarray:
        """(K,) share in each column; NaN where nothing was seen."""
        return self._shares(axis=0)

    def _shares(self, axis: int) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            inside = np.nansum(self.inside * self.count, axis=axis)
            return np.asarray(inside / self.count.sum(axis=axis))


@dataclass(frozen=True)
class Evaluation:
    """A forecaster on the windows of a part."""

    errors: ForecastErrors
    intervals: tuple[Interval, ...]
    """From the outermost levels inwards."""
    first_residuals: np.ndarray
    """(N, K): truth minus forecast one step ahead, standardised, NaN where nothing was seen."""
    pinball: np.ndarray
    """(Q, H, K) mean pinball loss of the quantile of each level, standardised; NaN where nothing
    was seen."""


def support_of(windows: Windows, panel: bool, levels: Sequence[float]) -> Support:
    """What some windows tell about the bounds of intervals."""
    return Support(len(windows), windows.horizon, windows.targets.shape[1], panel, levels)


def require_calibration(data: ForecastingData, levels: Sequence[float]) -> tuple[str, ...]:
    """Raise DataError where the validation part cannot calibrate some step of some column.

    Returns:
        Remarks on intervals for which it has too few windows.
    """
    windows = data.windows("validation")
    support = support_of(windows, data.series.panel, levels)
    if support.pools:
        return support.notes()
    problem = calibration_problem(
        windows.targets, data.target_columns, windows.origins, windows.horizon
    )
    if problem:
        raise DataError(f"{data.series.source}, {problem}")
    return ()


def calibrate(
    predict: Predictor,
    windows: Windows,
    panel: bool = False,
    levels: Sequence[float] = LEVELS,
) -> np.ndarray:
    """Offsets (H, K, Q) of the quantiles, from windows that were not trained on.

    Where they are too few for that (`Support.pools`), or of series of unequal length, residuals of
    all horizons and columns are put together.

    Of very many windows, evenly spaced ones are used: neighbouring windows are nearly the same.
    """
    per_window = windows.horizon * windows.targets.shape[1] * len(levels)
    thinning = -(-len(windows) * per_window // _MOST_RESIDUALS)
    rows = np.arange(0, len(windows), thinning)
    answers = [predict(windows.histories(chunk)) for chunk in np.split(rows, _cuts(len(rows)))]
    truth, forecasts = windows.futures(rows), np.concatenate(answers)
    support = support_of(windows, panel, levels)
    if support.pools:
        return pooled_offsets(truth, forecasts, support.independent, levels)
    return interval_offsets(truth, forecasts, levels)


def evaluate_forecasts(
    predict: Predictor,
    windows: Windows,
    offsets: np.ndarray,
    preprocessor: SeriesPreprocessor,
    levels: Sequence[float] = LEVELS,
) -> Evaluation:
    """Errors and coverage over all windows.

    Args:
        predict: Of `make_predictor`.
        windows: N of them.
        offsets: (H, K, Q), of `calibrate`.
        preprocessor: From the scale of the network to that on which errors are measured.
        levels: Of the quantiles.
    """
    H, K = offsets.shape[:2]
    middle, pairs = levels.index(MEDIAN), len(levels) // 2
    sums, measured = ErrorSums(H, K, preprocessor.target_scale), preprocessor.measured
    inside, width = np.zeros((pairs, H, K)), np.zeros((pairs, H, K))
    first, pinball = [], np.zeros((len(levels), H, K))
    for rows in windows.chunks(CHUNK):
        truth = windows.futures(rows)
        bounds = np.asarray(quantiles(predict(windows.histories(rows)), offsets, levels))
        effects = windows.effects_ahead(rows)
        true, forecast = measured(truth, effects), measured(bounds[..., middle], effects)
        sums.add(true, forecast)
        first.append(true[:, 0] - forecast[:, 0])
        for q, level in enumerate(levels):
            residual = true - measured(bounds[..., q], effects)
            pinball[q] += np.nansum(np.maximum(level * residual, (level - 1) * residual), axis=0)
        for pair in range(pairs):
            low, high = bounds[..., pair], bounds[..., -1 - pair]
            inside[pair] += ((low <= truth) & (truth <= high)).sum(axis=0)  # NaN is never inside
            width[pair] += (high - low).sum(axis=0, dtype=np.float64)
    errors = sums.means()
    with np.errstate(invalid="ignore"):
        shares, pinball = inside / errors.count, pinball / errors.count
    intervals = tuple(
        Interval(
            round(levels[-1 - pair] - levels[pair], 9),
            shares[pair],
            errors.count,
            width[pair] / len(windows),
        )
        for pair in range(pairs)
    )
    return Evaluation(errors, intervals, np.concatenate(first), pinball)


def _cuts(rows: int) -> range:
    return range(CHUNK, rows, CHUNK)
