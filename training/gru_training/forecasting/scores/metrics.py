"""What a forecasting run achieved, as values for `metrics.json`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.integrate import trapezoid

from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.scores.evaluation import Evaluation
from gru_training.forecasting.scores.forecast_errors import ForecastErrors
from gru_training.forecasting.scores.naive_scale import naive_scale
from gru_training.forecasting.sources.sets import PARTS


def data_summary(data: ForecastingData) -> dict[str, Any]:
    """The series, its split and its windows."""
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
    """Errors over all values."""
    return {"mse": errors.mse, "mae": errors.mae}


def error_details(errors: ForecastErrors, data: ForecastingData) -> dict[str, Any]:
    """Scaled errors, and all by horizon and column, of the columns in their own units too."""
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
        "mase": _mean(mase),
        "rmsse": _mean(rmsse),
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
    """Pinball losses of the quantiles, standardised, and the CRPS that follows from them.

    The CRPS is twice the pinball loss, integrated over all levels; here over those that there are,
    by the trapezoidal rule, and as at the outermost ones beyond them.
    """
    errors, pinball = evaluation.errors, evaluation.pinball
    ranked = crps(pinball, levels)
    by_column = errors.of_columns(ranked)
    raw = by_column * data.preprocessor.target_scale[1]
    return {
        "pinball": {
            f"{level:g}": _weighted(of, errors) for level, of in zip(levels, pinball, strict=True)
        },
        "crps": _weighted(ranked, errors),
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
    """(...) the continuous ranked probability score, of the pinball losses (Q, ...)."""
    losses = np.concatenate([pinball[:1], pinball, pinball[-1:]])
    return np.asarray(2 * trapezoid(losses, [0.0, *levels, 1.0], axis=0))


def interval_summary(test: Evaluation, data: ForecastingData) -> list[dict[str, Any]]:
    """Nominal and measured coverage of the intervals, and their width."""
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
    """The values (K,) of each measure, column by column."""
    rows = zip(*(_numbers(of_measure) for of_measure in values.values()), strict=True)
    return {
        column: dict(zip(values, row, strict=True))
        for column, row in zip(data.target_columns, rows, strict=True)
    }


def _weighted(means: np.ndarray, errors: ForecastErrors) -> float:
    """Over all values, of means (H, K) over the windows."""
    return float(np.nansum(means * errors.count) / errors.count.sum())


def _mean(values: np.ndarray) -> float | None:
    """Over the columns of which it is known."""
    seen = values[np.isfinite(values)]
    return float(seen.mean()) if len(seen) else None


def _numbers(values: np.ndarray) -> list[float | None]:
    """For JSON, which knows no NaN."""
    return [float(value) if np.isfinite(value) else None for value in values]
