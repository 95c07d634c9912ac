"""The next steps of a series, with times and intervals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from gru_training.data.calendar import Calendar
from gru_training.errors import ConfigError, DataError
from gru_training.forecasting.future.recent import Recent
from gru_training.forecasting.run import ForecastingRun

if TYPE_CHECKING:
    from gru_training.forecasting.predictor import Predictor

ID, TIME, VALUE = "unique_id", "ds", "forecast"
"""Columns of a forecast, called as in statsforecast; then `lo-80`, `hi-80` and so on."""


def forecast(
    run: ForecastingRun,
    recent: Recent,
    horizon: int | None = None,
    predict: "Predictor | None" = None,
) -> pd.DataFrame:
    """Forecast what follows, in raw units.

    Args:
        run: Complete.
        recent: Of this run, the steps before the forecast.
        horizon: Steps to forecast; by default all that the model was trained for.
        predict: The run's `make_predictor`, where there is one already.

    Returns:
        A row for each column that is forecast and each step: `unique_id`, the column; `ds`,
        the time; `forecast`; and the bounds of the intervals, the narrower first. Of series of
        unequal length none for those that have ended: without a value in the steps read. A model
        that reads known inputs forecasts the steps of which they are known.

    Raises:
        ConfigError: The model forecasts fewer steps.
        DataError: As `require_known`.
    """
    from gru_training.forecasting.predictor import make_predictor
    from gru_training.forecasting.scores.conformal import quantiles

    steps = require_horizon(run, horizon)
    require_known(run, recent)
    preprocessor = run.preprocessor()
    raw = recent.values[np.newaxis]
    effects = None
    if preprocessor.future_columns:
        names = [run.columns[column] for column in preprocessor.future_columns]
        parts = recent, names, run.calendar, run.frequency
        known, future = inputs_ahead(*parts, run.shape.horizon)
        effects, steps = preprocessor.effects(raw, future[np.newaxis]), min(steps, known)
    predict = predict or make_predictor(run.delivered_model(), preprocessor)
    served = quantiles(predict(raw), run.offsets, run.levels)
    values = preprocessor.restore(served, effects).numpy()[0, :steps]  # (H, K, Q)
    goes_on = np.isfinite(recent.values[:, list(run.shape.targets)]).any(axis=0)
    times = future_times(recent.times[-1], run.frequency, steps)
    return pd.concat(
        [
            pd.DataFrame({ID: name, TIME: times, **_columns(values[:, number], run.levels)})
            for number, name in enumerate(run.target_columns)
            if goes_on[number] or not run.series.panel
        ],
        ignore_index=True,
    )


def inputs_ahead(
    recent: Recent, names: Sequence[str], calendar: Calendar, frequency: str, steps: int
) -> tuple[int, np.ndarray]:
    """Of how many of the steps ahead all inputs are known, and their values.

    Args:
        recent: With those that are given.
        names: Of the F columns read of the steps ahead.
        calendar: What makes others of them.
        frequency: Of the steps.
        steps: H.

    Returns:
        The number, and (H, F); after the last step that is known, NaN.
    """
    known, given = recent.future_of(steps)
    if not any(name in calendar.columns for name in names):
        return known, given
    times = pd.date_range(recent.times[-1], periods=steps + 1, freq=frequency)[1:]
    made = calendar.values(times).astype(np.float32)
    places = iter(range(given.shape[1]))
    columns = [
        made[:, calendar.columns.index(name)]
        if name in calendar.columns
        else given[:, next(places)]
        for name in names
    ]
    return known if given.shape[1] else steps, np.column_stack(columns)


def require_horizon(run: ForecastingRun, horizon: int | None) -> int:
    """The steps to forecast; raises ConfigError where the model cannot."""
    most = run.shape.horizon
    if horizon is None:
        return most
    if not 1 <= horizon <= most:
        raise ConfigError(
            f"--horizon must be 1 to {most}, the steps that {run.path} was trained for, got "
            f"{horizon}; train with --horizon {horizon} for more"
            if horizon > most
            else f"--horizon must be 1 to {most}, got {horizon}"
        )
    return horizon


def require_known(run: ForecastingRun, recent: Recent) -> None:
    """Raise DataError where the model reads known inputs and none are there."""
    wanted = run.series.future_inputs
    if wanted and not len(recent.future):
        raise DataError(
            f"{run.path} reads {', '.join(wanted)} of the steps that it forecasts, from "
            f"{future_times(recent.times[-1], run.frequency, 1)[0]} on; give them with --future "
            "FILE, or as rows after the last value in --data"
        )


def future_times(last: pd.Timestamp, frequency: str, steps: int) -> pd.DatetimeIndex:
    """The times that follow, spaced as the series is."""
    return pd.date_range(last, periods=steps + 1, freq=frequency)[1:].as_unit("ns")


def _columns(quantiles: np.ndarray, levels: tuple[float, ...]) -> dict[str, np.ndarray]:
    """Forecast and bounds by column name, of the quantiles (H, Q) of a series."""
    middle = levels.index(0.5)
    columns = {VALUE: quantiles[:, middle]}
    for inner in range(1, middle + 1):
        low, high = middle - inner, middle + inner
        share = f"{100 * (levels[high] - levels[low]):g}"
        columns |= {f"lo-{share}": quantiles[:, low], f"hi-{share}": quantiles[:, high]}
    return columns
