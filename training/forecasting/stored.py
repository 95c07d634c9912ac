"""What a run stores of its series and of its test windows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from training.forecasting.data import ForecastingData
from training.forecasting.run import SeriesDescription, evenly
from training.forecasting.scores.conformal import MEDIAN, quantiles
from training.forecasting.scores.evaluation import Predictor

_STORED_WINDOWS = 64


def stored_windows(
    data: ForecastingData, predict: Predictor, offsets: np.ndarray, levels: Sequence[float]
) -> dict[str, Any]:
    """Some test windows evenly spread, with the forecasts; see `training.forecasting.run`."""
    windows = data.windows("test")
    rows = evenly(len(windows), _STORED_WINDOWS)
    histories = windows.histories(rows)
    bounds = quantiles(predict(histories), offsets, levels)
    restored = data.preprocessor.restore(bounds, windows.effects_ahead(rows)).numpy()
    known = list(data.preprocessor.future_columns)
    ahead = windows.origins[rows][:, np.newaxis] + np.arange(windows.horizon)
    return {
        "histories": histories,
        "futures": data.raw[ahead][..., known],
        "origins": windows.origins[rows],
        "forecasts": restored[..., list(levels).index(MEDIAN)],
        "quantiles": restored,
    }


def description(data: ForecastingData) -> SeriesDescription:
    """What `series.json` says."""
    series = data.series
    return SeriesDescription(
        series.name,
        series.columns,
        data.target_columns,
        series.frequency,
        data.season,
        data.shape.lookback,
        data.shape.horizon,
        (data.borders.train, data.borders.validation, data.borders.test),
        str(series.times[0]),
        str(series.times[-1]),
        data.published,
        series.panel,
        tuple(series.columns[column] for column in data.preprocessor.future_columns),
        series.inputs,
    )
