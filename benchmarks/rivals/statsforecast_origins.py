"""Write a set of `benchmarks.forecasting_defaults.package_sets`, and rivals' forecasts of it.

Run by `python -m benchmarks.forecasting_defaults.origins` with a Python that has statsforecast,
flaircast, scikit-learn and the packages that bring the sets. Each rival is fitted again before each
forecast.
"""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from flaircast import forecast
from sklearn.linear_model import Ridge
from statsforecast.models import AutoETS, AutoTheta

from benchmarks.forecasting_defaults.package_sets import PACKAGE_SETS, PackageSet

LEVELS = [80, 95]


def main(name: str, folder: Path) -> None:
    """Write NAME.csv, NAME.npz and NAME.json into a folder."""
    warnings.filterwarnings("ignore")
    one = next(each for each in PACKAGE_SETS if each.name == name)
    table = one.read()
    table.to_csv(folder / f"{name}.csv", index_label="time")
    values = table.to_numpy(float)
    found, seconds = dict[str, np.ndarray](), dict[str, float]()
    rows = one.origin_rows(len(values))
    for rival in ("AutoETS", "AutoTheta"):
        began = time.process_time()
        found[rival] = np.stack(
            [
                np.stack([_statsforecast(rival, one, column[:row]) for column in values.T], axis=2)
                for row in rows
            ]
        )  # (origins, 5, H, K): forecast, and bounds of the 80 and 95 % intervals
        seconds[rival] = time.process_time() - began
    began = time.process_time()
    found["ridge"] = np.stack([_ridge(values[:row], one) for row in rows])[:, np.newaxis]
    seconds["ridge"] = time.process_time() - began
    began = time.process_time()
    frequency = str(pd.infer_freq(table.index))
    found["FLAIR"] = np.stack([_flair(values[:row], one, frequency) for row in rows])[:, np.newaxis]
    seconds["FLAIR"] = time.process_time() - began
    np.savez(folder / f"{name}.npz", **found)
    (folder / f"{name}.json").write_text(json.dumps(seconds), "utf-8")


def _statsforecast(rival: str, one: PackageSet, column: np.ndarray) -> np.ndarray:
    """(5, H): forecast and bounds."""
    seen = column[np.flatnonzero(np.isfinite(column))[0] :]
    season = one.season if len(seen) > 2 * one.season + 1 else 1
    try:
        made = {"AutoETS": AutoETS, "AutoTheta": AutoTheta}[rival](season_length=season)
        answer = made.forecast(y=seen, h=one.horizon, level=LEVELS)
    except Exception as error:  # statsforecast gives up on some short series
        print(f"{one.name}, {rival}: {error!r}; the last value in its place", file=sys.stderr)
        return np.repeat(seen[-1], 5)[:, np.newaxis] * np.ones(one.horizon)
    bounds = [answer[f"{side}-{level}"] for level in LEVELS for side in ("lo", "hi")]
    return np.stack([answer["mean"], *bounds])


def _ridge(rows: np.ndarray, one: PackageSet) -> np.ndarray:
    """(H, K): a ridge regression on lags for each column, for all steps together."""
    columns = []
    for column in rows.T:
        seen = column[np.flatnonzero(np.isfinite(column))[0] :]
        lags = max(2, min(2 * one.season, (len(seen) - one.horizon) // 3))
        windows = np.lib.stride_tricks.sliding_window_view(seen, lags + one.horizon)
        scale = seen.std() or 1.0
        last = windows[:, lags - 1 : lags]
        away = (windows - last) / scale
        fitted = Ridge(alpha=1.0, fit_intercept=False).fit(away[:, :lags], away[:, lags:])
        now = (seen[-lags:] - seen[-1]) / scale
        columns.append(fitted.predict(now[np.newaxis])[0] * scale + seen[-1])
    return np.stack(columns, axis=1)


def _flair(rows: np.ndarray, one: PackageSet, frequency: str) -> np.ndarray:
    """(H, K): the mean of FLAIR's sample paths for each column."""
    columns = []
    for column in rows.T:
        seen = column[np.flatnonzero(np.isfinite(column))[0] :]
        paths = forecast(pd.Series(seen).ffill().to_numpy(), one.horizon, frequency, seed=0)
        columns.append(np.asarray(paths).mean(axis=0))
    return np.stack(columns, axis=1)


if __name__ == "__main__":
    for called in sys.argv[2:]:
        main(called, Path(sys.argv[1]))
