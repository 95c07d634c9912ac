"""The sets, and the command that trains on each: `--data` and a horizon where one is usual."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchmarks.forecasting_defaults.made_series import daily_sales, hourly_load, monthly_panel

DATA = Path("../shared/data")


@dataclass(frozen=True)
class DefaultsSet:
    """A set of series."""

    name: str
    data: Path | Callable[[], pd.DataFrame] | None
    """A file, what makes a table, or None for the series that ships with statsmodels."""
    flags: tuple[str, ...] = ()
    """What people would add: how far to forecast, and what."""

    def arguments(self, folder: Path) -> list[str]:
        """The arguments of `gru-train forecasting`; a made table is written to the folder."""
        if self.data is None:
            return [*self.flags]
        path = self.data if isinstance(self.data, Path) else folder / f"{self.name}.csv"
        if not isinstance(self.data, Path) and not path.exists():
            self.data().to_csv(path, index=False)
        return ["--data", str(path), *self.flags]


SETS = (
    DefaultsSet("airline", DATA / "classic" / "airline-passengers.csv"),
    DefaultsSet("sunspots", DATA / "classic" / "monthly-sunspots.csv"),
    DefaultsSet("minima", DATA / "classic" / "daily-min-temperatures.csv", ("--horizon", "28")),
    DefaultsSet("co2", None, ("--horizon", "26")),
    DefaultsSet("exchange", DATA / "exchange_rate" / "exchange_rate.csv", ("--horizon", "96")),
    DefaultsSet("etth1", DATA / "ett" / "ETTh1.csv"),
    DefaultsSet("load", hourly_load, ("--target", "load")),
    DefaultsSet("monthly", monthly_panel),
    DefaultsSet("sales", daily_sales, ("--horizon", "28")),
    DefaultsSet("weather", DATA / "weather" / "weather.csv"),
)
