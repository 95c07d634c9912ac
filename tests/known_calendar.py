"""Daily demand that depends on weekday, season and holidays, and a forecaster of it."""

import holidays
import numpy as np
import pandas as pd

LOOKBACK, HORIZON = 5, 14


def write_demand(path, seed=2):
    """Three years of days; on a holiday half of the demand is missing."""
    rng = np.random.default_rng(seed)
    days = pd.date_range("2021-01-01", "2023-12-31", freq="D")
    closed = holidays.country_holidays("DE", years=range(2021, 2024))
    demand = 200 + 30 * np.sin(2 * np.pi * days.day_of_year / 365.25)
    demand = demand - 60 * (days.day_of_week >= 5) - 100 * np.array([d in closed for d in days])
    table = pd.DataFrame({"date": days, "demand": (demand + rng.normal(0, 3, len(days))).round(2)})
    table.to_csv(path, index=False)
    return table


def train_demand(data, runs_dir, name, **series):
    """A forecaster, trained for an epoch."""
    from gru_training.forecasting.config import (
        CombinationConfig,
        ForecasterConfig,
        ForecastingConfig,
        ForecastingTrainingConfig,
        RunConfig,
        SeriesConfig,
    )
    from gru_training.forecasting.pipeline import train_forecasting

    combine = series.pop("combine", True)
    network = series.pop("network", {})
    settings = {"lookback": LOOKBACK, "horizon": HORIZON, "transform": "none", **series}
    return train_forecasting(
        ForecastingConfig(
            data=SeriesConfig(data=data, **settings),
            model=ForecasterConfig(units=8, segment=1, **network),
            training=ForecastingTrainingConfig(epochs=1, batch_size=32, learning_rate=5e-3),
            combination=CombinationConfig(combine=combine, refit=False),
            run=RunConfig(runs_dir=runs_dir, name=name),
        )
    )
