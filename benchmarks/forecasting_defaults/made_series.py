"""Series made from a seed, for kinds of data of which no free set is at hand.

Each is what a practitioner of its field would recognise, with what makes the field hard; none is
tuned to what a model of this project can do.
"""

import numpy as np
import pandas as pd

_HOLIDAYS = ((1, 1), (5, 1), (10, 3), (11, 1), (12, 25), (12, 26))
"""Month and day."""


def hourly_load(years: int = 2, seed: int = 0) -> pd.DataFrame:
    """Load of a small grid with its temperature: days, weeks, seasons, holidays, weather."""
    rng = np.random.default_rng(seed)
    times = pd.date_range("2022-01-01", periods=years * 365 * 24, freq="h")
    hour, day = times.hour.to_numpy(), times.day_of_week.to_numpy()
    year = 2 * np.pi * times.day_of_year.to_numpy() / 365.25
    temperature = (
        9 - 10 * np.cos(year - 0.35) - 4 * np.cos(2 * np.pi * (hour - 3) / 24)
        + np.repeat(_persistent(rng, len(times) // 24, 0.8, 2.2), 24)
    )  # fmt: skip
    off = (day >= 5) | np.isin(
        times.month.to_numpy() * 100 + times.day.to_numpy(), [m * 100 + d for m, d in _HOLIDAYS]
    )
    morning = np.exp(-(((hour - 8.5) / 2.2) ** 2)) * np.where(off, 0.35, 1.0)
    evening = np.exp(-(((hour - 19) / 2.8) ** 2))
    heating = np.maximum(0, 15 - temperature) * 7 + np.maximum(0, temperature - 22) * 9
    load = (
        620 + 190 * morning + 170 * evening + np.where(off, -70, 0) + heating
        + _persistent(rng, len(times), 0.9, 8)
    )  # fmt: skip
    return pd.DataFrame(
        {"time": times, "load": load.round(1), "temperature": temperature.round(2),
         "holiday": off.astype(int)}
    )  # fmt: skip


def monthly_panel(series: int = 49, months: int = 180, seed: int = 1) -> pd.DataFrame:
    """Monthly indices of unlike size: trends that turn, seasons that grow with the level."""
    rng = np.random.default_rng(seed)
    t = np.arange(months)
    columns = {}
    for number in range(series):
        slope = rng.normal(0.004, 0.004) + 0.0006 * rng.normal(size=months).cumsum()
        season = rng.normal(0, 0.11, 12)
        season -= season.mean()
        noise = _persistent(rng, months, rng.uniform(0, 0.6), rng.uniform(0.01, 0.05))
        level = rng.lognormal(5, 1.2)
        columns[f"m{number:02}"] = level * np.exp(slope.cumsum() + season[t % 12] + noise)
    times = pd.date_range("2008-01-01", periods=months, freq="MS")
    table = pd.DataFrame(columns).round(2)
    table.insert(0, "month", times)
    return table


def daily_sales(series: int = 174, days: int = 900, seed: int = 2) -> pd.DataFrame:
    """Long: products in shops, of unequal length, with promotions that are known ahead.

    Counts with many zeros; half of the products begin late, a tenth ended early.

    Returns:
        A row for each product and day: `unique_id`, `ds`, `y`, `promotion` (0 or 1),
        `price` and `department`.
    """
    rng = np.random.default_rng(seed)
    times = pd.date_range("2021-01-04", periods=days, freq="D")
    day = times.day_of_week.to_numpy()
    year = 2 * np.pi * times.day_of_year.to_numpy() / 365.25
    weeks = {name: np.exp(rng.normal(0, 0.25, 7) + np.array([0, 0, 0, 0, 0.15, 0.35, 0.2]))
             for name in "ABCD"}  # fmt: skip
    shop = _persistent(rng, days, 0.97, 0.02)
    tables = []
    for number in range(series):
        department = "ABCD"[number % 4]
        begin = int(rng.integers(0, 500)) if rng.random() < 0.5 else 0
        end = int(rng.integers(700, days)) if rng.random() < 0.1 else days
        promoted = np.repeat(rng.random(days // 7 + 1) < 0.12, 7)[:days]
        lift = rng.uniform(1.4, 3.5)
        base = rng.lognormal(1.3, 0.9)
        drift = 0.01 * rng.normal(size=days).cumsum()
        phase, depth = rng.uniform(0, 2 * np.pi), rng.uniform(0, 0.35)
        mean = (
            base * weeks[department][day] * np.exp(drift - drift.mean() + shop)
            * (1 + depth * np.cos(year - phase)) * np.where(promoted, lift, 1)
        )  # fmt: skip
        shape = rng.uniform(2, 8)
        counts = rng.poisson(mean * rng.gamma(shape, 1 / shape, days))
        price = round(float(rng.lognormal(1.5, 0.6)), 2)
        kept = slice(begin, end)
        tables.append(
            pd.DataFrame(
                {
                    "unique_id": f"P{number:03}",
                    "ds": times[kept],
                    "y": counts[kept],
                    "promotion": promoted[kept].astype(int),
                    "price": np.where(promoted, 0.75 * price, price)[kept].round(2),
                    "department": department,
                }
            )
        )
    return pd.concat(tables, ignore_index=True)


def _persistent(
    rng: np.random.Generator, steps: int, memory: float, deviation: float
) -> np.ndarray:
    """A first-order autoregression."""
    from scipy.signal import lfilter

    return np.asarray(lfilter([1.0], [1.0, -memory], rng.normal(0, deviation, steps)))
