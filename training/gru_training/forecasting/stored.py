"""What a run stores of its series and of its test windows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.predictor import Predictor
from gru_training.forecasting.run import SeriesDescription, evenly
from gru_training.forecasting.scores.conformal import MEDIAN, quantiles

_FEWEST, _MOST, _MOST_VALUES = 64, 512, 4_000_000
"""Windows, and values in them."""


def stored_windows(
    data: ForecastingData, predict: Predictor, offsets: np.ndarray, levels: Sequence[float]
) -> dict[str, Any]:
    """Some test windows evenly spread, with the forecasts; see `gru_training.forecasting.run`.

    As many as lie a horizon apart, or more where those would be few.
    """
    windows = data.windows("test")
    room = _MOST_VALUES // (windows.lookback * windows.values.shape[1])
    apart = len(windows) // windows.horizon
    rows = evenly(len(windows), max(_FEWEST, min(_MOST, room, apart)))
    histories = windows.histories(rows)
    bounds = quantiles(predict(histories), offsets, levels)
    restored = data.preprocessor.restore(bounds, windows.effects_ahead(rows)).numpy()
    known = given_ahead(data)
    last = data.series.times[windows.origins[rows] - 1]
    utc = "" if data.series.calendar.timezone is None else "Z"
    ahead = windows.origins[rows][:, np.newaxis] + np.arange(windows.horizon)
    return {
        "histories": histories,
        "futures": data.raw[ahead][..., known],
        "origins": windows.origins[rows],
        "times": np.array([f"{time}{utc}" for time in last]),
        "forecasts": restored[..., list(levels).index(MEDIAN)],
        "quantiles": restored,
    }


def given_ahead(data: ForecastingData) -> list[int]:
    """Columns that callers give of the steps ahead: read there, and not made of the times."""
    made = data.series.calendar.columns
    ahead = data.preprocessor.future_columns
    return [column for column in ahead if data.series.columns[column] not in made]


def known_inputs(data: ForecastingData) -> list[str]:
    """What forecasts read of the steps ahead, as people know it."""
    if data.preprocessor.known is None:
        return []
    return [*description(data).future_inputs, *data.series.calendar.columns]


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
        tuple(series.columns[column] for column in given_ahead(data)),
        series.inputs,
        series.calendar,
    )
