"""The quality of a forecaster on held-out windows: errors, intervals, and their `metrics.json`.

Scaled errors are divided by those of repeating the last season of the training rows: Hyndman and
Koehler (2006), "Another look at measures of forecast accuracy", International Journal of
Forecasting 22, for MASE; Makridakis et al. (2022), "The M5 competition", International Journal of
Forecasting 38, for RMSSE.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import trapezoid

from gru_serving.preprocessing.series import MEDIAN
from gru_training.errors import DataError
from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.intervals import (
    LEVELS,
    interval_offsets,
    pooled_offsets,
    quantiles,
)
from gru_training.forecasting.linear import LinearForecaster
from gru_training.forecasting.preprocessor import Predictor, SeriesPreprocessor
from gru_training.forecasting.series_check import Support, calibration
from gru_training.forecasting.sets import PARTS
from gru_training.forecasting.windows import Windows

_ROUNDING = 1e-6
"""Size of restored values, as a share of mean and deviation, up to which they were zero before they
were standardised in float32.
"""


@dataclass(frozen=True)
class WindowErrors:
    """Errors of each window on the standardised scale; missing values are ignored."""

    squared: np.ndarray
    """(N, K) float32: sums over the steps of squared errors."""
    absolute: np.ndarray
    """(N, K) float32: sums over the steps of absolute errors."""
    count: np.ndarray
    """(N,): numbers of values compared, of all columns."""


@dataclass(frozen=True)
class ForecastErrors:
    """Means over the windows, on the standardised scale; NaN without any value."""

    squared: np.ndarray
    """(H, K): mean squared error."""
    absolute: np.ndarray
    """(H, K): mean absolute error."""
    percentage: np.ndarray
    """(H, K): sMAPE, 0 to 200, of values in their own units."""
    count: np.ndarray
    """(H, K): numbers of values compared."""
    windows: WindowErrors
    """Errors of each window."""

    @property
    def mse(self) -> float:
        """Mean squared error over all values."""
        return self.mean(self.squared)

    @property
    def mae(self) -> float:
        """Mean absolute error over all values."""
        return self.mean(self.absolute)

    @property
    def smape(self) -> float:
        """Symmetric mean absolute percentage error over all values."""
        return self.mean(self.percentage)

    def mean(self, means: np.ndarray) -> float:
        """Average over all values, given means (H, K) over the windows."""
        return float(weighted_mean(means, self.count))

    def by_horizon(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean squared and absolute error (H,) of each step."""
        return self.of_steps(self.squared), self.of_steps(self.absolute)

    def by_column(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean squared and absolute error (K,) of each column."""
        return self.of_columns(self.squared), self.of_columns(self.absolute)

    def of_steps(self, means: np.ndarray) -> np.ndarray:
        """Average over the columns, (H,), given means (H, K) over the windows."""
        return weighted_mean(means, self.count, 1)

    def of_columns(self, means: np.ndarray) -> np.ndarray:
        """Average over the steps, (K,), given means (H, K) over the windows."""
        return weighted_mean(means, self.count, 0)

    def raw(self, deviation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean absolute and root mean squared error (K,) of each column in its own units.

        Args:
            deviation: (K,), by which the columns were divided.
        """
        squared, absolute = self.by_column()
        return absolute * deviation, np.sqrt(squared) * deviation


class ErrorSums:
    """Sums of errors, collected batch by batch.

    Args:
        horizon: H.
        columns: K.
        scale: Mean and deviation (K,) with which the columns were standardised.
    """

    def __init__(self, horizon: int, columns: int, scale: tuple[np.ndarray, np.ndarray]):
        self._mean, self._deviation = scale
        self._percentage = np.zeros((horizon, columns))
        self._squared = np.zeros((horizon, columns))
        self._absolute = np.zeros((horizon, columns))
        self._count = np.zeros((horizon, columns), int)
        self._windows: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, targets: np.ndarray, forecasts: np.ndarray) -> None:
        """Add a batch, (B, H, K) both; NaN among the targets is ignored."""
        residual = (targets - forecasts).astype(np.float64)
        seen = np.isfinite(residual)
        absolute = np.abs(np.where(np.isnan(residual), 0, residual))
        squared = absolute**2
        self._count += seen.sum(axis=0)
        self._squared += squared.sum(axis=0)
        self._absolute += absolute.sum(axis=0)
        self._percentage += np.nansum(self._percentages(targets, forecasts), axis=0)
        by_window = (of.sum(axis=1).astype(np.float32) for of in (squared, absolute))
        self._windows.append((*by_window, seen.sum(axis=(1, 2))))

    def _percentages(self, targets: np.ndarray, forecasts: np.ndarray) -> np.ndarray:
        """Compute percentage errors (B, H, K), 0 to 200, NaN if the truth is missing."""
        truth, forecast = (each * self._deviation + self._mean for each in (targets, forecasts))
        sizes = np.abs(truth) + np.abs(forecast)
        zero = sizes <= _ROUNDING * (np.abs(self._mean) + self._deviation)
        return np.asarray(
            np.divide(200 * np.abs(truth - forecast), sizes, np.zeros_like(sizes), where=~zero)
        )

    def means(self) -> ForecastErrors:
        """Return the errors so far."""
        windows = WindowErrors(*map(np.concatenate, zip(*self._windows, strict=True)))
        with np.errstate(invalid="ignore"):
            return ForecastErrors(
                self._squared / self._count,
                self._absolute / self._count,
                self._percentage / self._count,
                self._count,
                windows,
            )


def measure(
    forecaster: LinearForecaster, windows: Windows, preprocessor: SeriesPreprocessor
) -> ForecastErrors:
    """Measure the errors of a forecaster on windows of its look-back, or of a longer one."""
    targets = list(preprocessor.targets)
    sums = ErrorSums(windows.horizon, len(targets), preprocessor.target_scale)
    for rows in windows.chunks():
        histories = preprocessor.standardise(windows.histories(rows)).numpy()[..., targets]
        sums.add(windows.futures(rows), forecaster(histories.astype(np.float64)))
    return sums.means()


def weighted_mean(values: np.ndarray, count: np.ndarray, axis: int | None = None) -> np.ndarray:
    """Average values by their counts; NaN without any.

    Args:
        values: Means, such as (H, K).
        count: Number of values behind each of them, of the same shape.
        axis: Axis to average over; None: all.
    """
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nansum(values * count, axis=axis) / count.sum(axis=axis))


class NaiveScale(NamedTuple):
    """Naive errors of each column, standardised; NaN if no training row follows a season."""

    absolute: np.ndarray
    """(K,) mean absolute error, of MASE."""
    squared: np.ndarray
    """(K,) mean squared error, of RMSSE."""


def naive_scale(data: ForecastingData) -> NaiveScale:
    """Measure the errors of the seasonal naive forecast on the training rows.

    Args:
        data: Series on the scale on which errors are measured.
    """
    rows = data.standardised_targets[: data.borders.train].astype(np.float64)
    errors = np.abs(rows[data.season :] - rows[: -data.season])
    counts = np.isfinite(errors).sum(axis=0)
    with np.errstate(invalid="ignore"):
        return NaiveScale(
            np.asarray(np.nansum(errors, axis=0) / counts),
            np.asarray(np.nansum(errors**2, axis=0) / counts),
        )


_MOST_RESIDUALS = 60_000_000


@dataclass(frozen=True)
class Interval:
    """Share of the true values between two quantiles."""

    nominal: float
    """The nominal coverage."""
    inside: np.ndarray
    """(H, K): share of the values inside; NaN without any value."""
    count: np.ndarray
    """(H, K): numbers of values compared."""
    width: np.ndarray
    """(H, K): mean width on the standardised scale."""

    @property
    def coverage(self) -> float:
        """Share of all values."""
        return float(weighted_mean(self.inside, self.count))

    def by_horizon(self) -> np.ndarray:
        """(H,) share at each step; NaN where nothing was seen."""
        return weighted_mean(self.inside, self.count, 1)

    def by_column(self) -> np.ndarray:
        """(K,) share in each column; NaN where nothing was seen."""
        return weighted_mean(self.inside, self.count, 0)


@dataclass(frozen=True)
class Evaluation:
    """A forecaster on the windows of a part."""

    errors: ForecastErrors
    intervals: tuple[Interval, ...]
    """Intervals from the outermost levels inwards."""
    first_residuals: np.ndarray
    """(N, K): truth minus forecast one step ahead, standardised, NaN where nothing was seen."""
    pinball: np.ndarray
    """(Q, H, K) mean pinball loss of the quantile of each level, standardised; NaN where nothing
    was seen."""


def require_calibration(data: ForecastingData, levels: Sequence[float]) -> tuple[str, ...]:
    """Raise DataError if the validation part cannot calibrate some step of some column.

    Returns:
        Remarks on intervals for which there are too few windows.
    """
    windows = data.windows("validation")
    parts = windows.origins, windows.horizon, data.series.panel, levels
    notes, problem = calibration(windows.targets, data.target_columns, *parts)
    if problem:
        raise DataError(f"{data.series.source}, {problem}")
    return notes


def calibrate(
    predict: Predictor,
    windows: Windows,
    panel: bool = False,
    levels: Sequence[float] = LEVELS,
    earlier: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """Compute offsets (H, K, Q) of the quantiles from windows that were not trained on.

    If there are too few windows (`Support.pools`), or series have unequal lengths, residuals of all
    horizons and columns are pooled, and those of earlier folds with them.

    Of very many windows, evenly spaced ones are used: neighbouring windows are nearly equal.

    Args:
        predict: Forecaster, of `make_predictor`.
        windows: Windows that were not trained on.
        panel: Whether the series are of unequal length.
        levels: Levels of the quantiles, ascending.
        earlier: Values and point forecasts, (N, H, K) both, of folds before these windows.
    """
    per_window = windows.horizon * windows.targets.shape[1] * len(levels)
    thinning = -(-len(windows) * per_window // _MOST_RESIDUALS)
    rows = np.arange(0, len(windows), thinning)
    answers = [predict(windows.histories(piece)) for piece in windows.pieces(rows)]
    truth, forecasts = windows.futures(rows), np.concatenate(answers)
    columns = windows.targets.shape[1]
    support = Support(len(windows), windows.horizon, columns, panel, levels)
    if support.pools and earlier is not None:
        truth = np.concatenate([earlier[0], truth])
        forecasts = np.concatenate([earlier[1][..., np.newaxis], forecasts])
        support = replace(support, windows=len(truth))
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
        predict: Forecaster, of `make_predictor`.
        windows: N of them.
        offsets: (H, K, Q), of `calibrate`.
        preprocessor: Scale of the network, and that on which errors are measured.
        levels: Levels of the quantiles, ascending.
    """
    H, K = offsets.shape[:2]
    middle, pairs = levels.index(MEDIAN), len(levels) // 2
    sums, measured = ErrorSums(H, K, preprocessor.target_scale), preprocessor.measured
    inside, width = np.zeros((pairs, H, K)), np.zeros((pairs, H, K))
    first, pinball = [], np.zeros((len(levels), H, K))
    for rows in windows.chunks():
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


def data_summary(data: ForecastingData) -> dict[str, Any]:
    """Summarise the series, its split and its windows."""
    series = data.series
    rows = {part: data.borders.part(part) for part in PARTS}
    return {
        "name": series.name,
        "columns": list(series.columns),
        "targets": list(data.target_columns),
        "frequency": series.frequency,
        "season": data.season,
        "lookback": data.shape.lookback,
        "horizon": data.shape.horizon,
        "rows": {part: end - begin for part, (begin, end) in rows.items()},
        "windows": {part: len(data.windows(part)) for part in PARTS},
        "published_split": data.published,
        "notes": list(series.notes),
        "digest": data.digest,
    }


def error_summary(errors: ForecastErrors) -> dict[str, float]:
    """Summarise errors over all values."""
    return {"mse": errors.mse, "mae": errors.mae}


def error_details(errors: ForecastErrors, data: ForecastingData) -> dict[str, Any]:
    """List scaled errors, and all errors by horizon and column, also in the columns' own units."""
    scale = naive_scale(data)
    squared, absolute = errors.by_column()
    with np.errstate(divide="ignore", invalid="ignore"):
        mase, rmsse = absolute / scale.absolute, np.sqrt(squared / scale.squared)
    raw_mae, raw_rmse = errors.raw(data.preprocessor.target_scale[1])
    of_column = {
        "mse": squared,
        "mae": absolute,
        "raw_mae": raw_mae,
        "raw_rmse": raw_rmse,
        "mase": mase,
        "rmsse": rmsse,
        "smape": errors.of_columns(errors.percentage),
    }
    by_step = (*errors.by_horizon(), errors.of_steps(errors.percentage))
    return {
        "mase": _mean_known(mase),
        "rmsse": _mean_known(rmsse),
        "smape": errors.smape,
        "by_horizon": {
            name: _numbers(values)
            for name, values in zip(("mse", "mae", "smape"), by_step, strict=True)
        },
        "by_column": _by_column(of_column, data),
    }


def quantile_summary(
    evaluation: Evaluation, levels: Sequence[float], data: ForecastingData
) -> dict[str, Any]:
    """Summarise the standardised pinball losses of the quantiles, and the resulting CRPS.

    The CRPS is twice the pinball loss, integrated over all levels; here by the trapezoidal rule
    over the given levels, with the outermost values continued beyond them.
    """
    errors, pinball = evaluation.errors, evaluation.pinball
    ranked = crps(pinball, levels)
    by_column = errors.of_columns(ranked)
    raw = by_column * data.preprocessor.target_scale[1]
    return {
        "pinball": {
            f"{level:g}": errors.mean(of) for level, of in zip(levels, pinball, strict=True)
        },
        "crps": errors.mean(ranked),
        "by_horizon": {
            "crps": _numbers(errors.of_steps(ranked)),
            "pinball": {
                f"{level:g}": _numbers(errors.of_steps(of))
                for level, of in zip(levels, pinball, strict=True)
            },
        },
        "by_column": _by_column({"crps": by_column, "raw_crps": raw}, data),
    }


def crps(pinball: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """Compute the continuous ranked probability score (...) from pinball losses (Q, ...)."""
    losses = np.concatenate([pinball[:1], pinball, pinball[-1:]])
    return np.asarray(2 * trapezoid(losses, [0.0, *levels, 1.0], axis=0))


def interval_summary(test: Evaluation, data: ForecastingData) -> list[dict[str, Any]]:
    """Summarise nominal and measured coverage of the intervals, and their width."""
    return [
        {
            "nominal": interval.nominal,
            "coverage": interval.coverage,
            "by_horizon": _numbers(interval.by_horizon()),
            "by_column": dict(
                zip(data.target_columns, _numbers(interval.by_column()), strict=True)
            ),
            "mean_width": float(interval.width.mean()),
        }
        for interval in test.intervals
    ]


def _by_column(values: Mapping[str, np.ndarray], data: ForecastingData) -> dict[str, Any]:
    """List the values (K,) of each measure by column."""
    rows = zip(*(_numbers(of_measure) for of_measure in values.values()), strict=True)
    return {
        column: dict(zip(values, row, strict=True))
        for column, row in zip(data.target_columns, rows, strict=True)
    }


def _mean_known(values: np.ndarray) -> float | None:
    """Average over the columns with a value."""
    seen = values[np.isfinite(values)]
    return float(seen.mean()) if len(seen) else None


def _numbers(values: np.ndarray) -> list[float | None]:
    """Convert numbers for JSON, with None in place of NaN."""
    return [float(value) if np.isfinite(value) else None for value in values]
