"""What a forecasting run achieved, as values for `metrics.json`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.integrate import trapezoid

from training.forecasting.data import ForecastingData
from training.forecasting.scores.evaluation import Evaluation
from training.forecasting.scores.forecast_errors import ForecastErrors
from training.forecasting.scores.naive_scale import naive_scale
from training.forecasting.sources.sets import PARTS


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
    deviation = data.preprocessor.deviation[list(data.shape.targets)]
    of_column = zip(
        data.target_columns, squared, absolute, *errors.raw(deviation), mase, rmsse, strict=True
    )
    names = ("mse", "mae", "raw_mae", "raw_rmse", "mase", "rmsse")
    return {
        "mase": _mean(mase),
        "rmsse": _mean(rmsse),
        "by_horizon": {
            name: _numbers(values)
            for name, values in zip(("mse", "mae"), errors.by_horizon(), strict=True)
        },
        "by_column": {
            column: dict(zip(names, _numbers(np.array(values)), strict=True))
            for column, *values in of_column
        },
    }


def quantile_summary(evaluation: Evaluation, levels: Sequence[float]) -> dict[str, Any]:
    """Pinball losses of the quantiles, standardised, and the CRPS that follows from them.

    The CRPS is twice the pinball loss, integrated over all levels; here over those that there are,
    by the trapezoidal rule, and as at the outermost ones beyond them.
    """
    pinball = evaluation.pinball
    ends = [0.0, *levels, 1.0]
    losses = [pinball[0], *pinball, pinball[-1]]
    return {
        "pinball": {f"{level:g}": float(of) for level, of in zip(levels, pinball, strict=True)},
        "crps": float(2 * trapezoid(losses, ends)),
    }


def interval_summary(test: Evaluation) -> list[dict[str, Any]]:
    """Nominal and measured coverage of the intervals, and their width."""
    return [
        {
            "nominal": interval.nominal,
            "coverage": interval.coverage,
            "by_horizon": _numbers(interval.by_horizon()),
            "mean_width": float(interval.width.mean()),
        }
        for interval in test.intervals
    ]


def _mean(values: np.ndarray) -> float | None:
    """Over the columns of which it is known."""
    seen = values[np.isfinite(values)]
    return float(seen.mean()) if len(seen) else None


def _numbers(values: np.ndarray) -> list[float | None]:
    """For JSON, which knows no NaN."""
    return [float(value) if np.isfinite(value) else None for value in values]
