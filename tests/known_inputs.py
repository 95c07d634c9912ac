"""A small series that depends on inputs known in advance, and a forecaster of it."""

import numpy as np
import pandas as pd

LOOKBACK, HORIZON, KNOWN_AHEAD = 24, 12, 12


def write_load(path, rows=700, seed=5):
    """Hourly load that follows the temperature below 15 degrees, and falls on holidays.

    Behind the last load there are rows with known inputs alone.
    """
    rng = np.random.default_rng(seed)
    hours = np.arange(rows + KNOWN_AHEAD)
    days = np.cumsum(rng.normal(0, 2, len(hours) // 24 + 1))
    temperature = (
        14 + 4 * np.sin(2 * np.pi * hours / 24) + np.repeat(days - days.mean(), 24)[: len(hours)]
    )
    holiday = np.repeat(rng.random(len(hours) // 24 + 1) < 0.15, 24)[: len(hours)].astype(int)
    load = 200 + 20 * np.sin(2 * np.pi * hours / 24) + rng.normal(0, 1.5, len(hours))
    load += 5 * np.maximum(15 - temperature, 0) - 30 * holiday
    table = pd.DataFrame(
        {
            "time": pd.date_range("2024-01-01", periods=len(hours), freq="h"),
            "temperature": temperature.round(2),
            "load": load.round(2),
            "holiday": holiday,
        }
    )
    table.loc[rows:, "load"] = np.nan
    table.to_csv(path, index=False)
    return table


def train(data, runs_dir, name, **model):
    """A forecaster, trained for an epoch; `combine`, `future`, `transform` go by name, too."""
    from gru_training.forecasting.config import (
        CombinationConfig,
        ForecasterConfig,
        ForecastingConfig,
        ForecastingTrainingConfig,
        RunConfig,
        SeriesConfig,
    )
    from gru_training.forecasting.pipeline import train_forecasting

    combine, transform = model.pop("combine", True), model.pop("transform", "none")
    future = model.pop("future", ("temperature", "holiday"))
    columns = {"target": ("load",), "future": future, "transform": transform}
    return train_forecasting(
        ForecastingConfig(
            data=SeriesConfig(data=data, lookback=LOOKBACK, horizon=HORIZON, **columns),
            model=ForecasterConfig(units=8, segment=6, **model),
            training=ForecastingTrainingConfig(epochs=1, batch_size=32, learning_rate=5e-3),
            combination=CombinationConfig(combine=combine, refit=False),
            run=RunConfig(runs_dir=runs_dir, name=name),
        )
    )
