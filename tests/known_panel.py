"""A small panel in long form whose sales follow promotions and prices, and a forecaster of it."""

import numpy as np
import pandas as pd

SERIES, LOOKBACK, HORIZON, KNOWN_AHEAD = 6, 14, 7, 7
PROMOTED = 0.5
"""What a promotion adds to the sales, as a share of the usual ones."""


def write_sales(path, days=220, seed=3):
    """Daily sales of products that begin late or end early; behind the last sale only inputs.

    A promotion adds half of the usual sales; a price 10 % below the usual one adds a fifth.
    """
    rng = np.random.default_rng(seed)
    parts = []
    times = pd.date_range("2024-01-01", periods=days + KNOWN_AHEAD)
    for number in range(SERIES):
        usual, price = 20.0 * (number + 1), 2.0 * (number + 1)
        promo = (rng.random(len(times)) < 0.2).astype(int)
        discount = np.where(rng.random(len(times)) < 0.3, rng.uniform(0, 0.25, len(times)), 0)
        week = 1 + 0.2 * np.sin(2 * np.pi * np.arange(len(times)) / 7)
        sales = usual * (week + PROMOTED * promo + 2 * discount)
        sales += rng.normal(0, 0.03 * usual, len(times))
        table = pd.DataFrame(
            {
                "unique_id": f"p{number}",
                "ds": times,
                "y": sales.round(2),
                "promo": promo,
                "price": (price * (1 - discount)).round(3),
            }
        )
        table.loc[days:, "y"] = np.nan
        table = table.iloc[40:] if number == 1 else table
        if number == 2:  # has ended, and has no plans
            table = table.iloc[: days - 60]
        if number == 3:
            table["promo"] = 0
            table["y"] -= (usual * PROMOTED * promo).round(2)
        parts.append(table)
    joined = pd.concat(parts, ignore_index=True)
    joined.to_csv(path, index=False)
    return joined


def train_sales(data, runs_dir, name, future=("promo", "price"), **series):
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

    settings = {"lookback": LOOKBACK, "horizon": HORIZON, "transform": "none", **series}
    return train_forecasting(
        ForecastingConfig(
            data=SeriesConfig(data=data, future=future, **settings),
            model=ForecasterConfig(units=8),
            training=ForecastingTrainingConfig(epochs=1, batch_size=32, learning_rate=5e-3),
            combination=CombinationConfig(refit=False),
            run=RunConfig(runs_dir=runs_dir, name=name),
        )
    )
