"""Daily sales: train a forecaster on a table, test it through time, forecast the next two weeks.

Run it as `python docs/examples/sales.py`; the run goes to `runs/`. Replace `made_up_sales` by
`pd.read_csv("sales.csv")`: a column of days and a column for each product.
"""

import numpy as np
import pandas as pd

from gru_training import Forecaster


def made_up_sales(days: int) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    day = np.arange(days)
    table = pd.DataFrame({"day": pd.date_range("2023-01-01", periods=days)})
    for product, level in (("bread", 120), ("cakes", 30), ("coffee", 200)):
        week = 1 + 0.3 * np.sin(2 * np.pi * (day + level) / 7)
        table[product] = draw.poisson(level * week * (1 + 0.0005 * day))
    return table


if __name__ == "__main__":
    sales = made_up_sales(720)
    forecaster = Forecaster(
        name="sales", lookback=56, horizon=14, units=32, segment=7, linear_skip=True, epochs=10
    )
    forecaster.fit(sales)
    folds = forecaster.cross_validation(folds=3)
    print(folds.pivot(index="fold", columns="model", values="mse").round(4).to_string())
    forecast = forecaster.predict()
    print(forecast.head(14).to_string(index=False))  # of the first product
    forecast.to_csv("forecast.csv", index=False)
    print("report", forecaster.report().path)
