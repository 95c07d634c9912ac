"""What a forecasting run achieved, as values for `metrics.json`."""

from typing import Any

import numpy as np

from training.forecasting.data import ForecastingData
from training.forecasting.scores.evaluation import Evaluation
from training.forecasting.scores.forecast_errors import ForecastErrors
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
    """Errors by horizon and column, of the columns in their own units too."""
    deviation = data.preprocessor.deviation[list(data.shape.targets)]
    absolute, root = errors.raw(deviation)
    of_column = zip(data.target_columns, *errors.by_column(), absolute, root, strict=True)
    names = ("mse", "mae", "raw_mae", "raw_rmse")
    return {
        "by_horizon": {
            name: _numbers(values)
            for name, values in zip(("mse", "mae"), errors.by_horizon(), strict=True)
        },
        "by_column": {
            column: dict(zip(names, _numbers(np.array(values)), strict=True))
            for column, *values in of_column
        },
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


def _numbers(values: np.ndarray) -> list[float | None]:
    """For JSON, which knows no NaN."""
    return [float(value) if np.isfinite(value) else None for value in values]
