"""Default settings against statsforecast, on short and wide sets that packages bring.

    python -m benchmarks.forecasting_defaults.origins --rivals-python PYTHON
    python -m benchmarks.forecasting_defaults.origins --sets employment wool --epochs 5

Holds out the last rows of each set, trains with a horizon alone on the rows before, and forecasts
from each origin in the rows that are held out; rivals are fitted again at each origin, this project
is not. Prints the MASE, its ratio to the best of the rivals, the coverage of the intervals, and the
processor time of the training. PYTHON has statsforecast, flaircast, scikit-learn and the packages
that bring the sets (`benchmarks.forecasting_defaults.package_sets`). Runs and rivals' forecasts
that are there already are used again.
"""

import argparse
import json
import math
import resource
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.forecasting_defaults.package_sets import PACKAGE_SETS, PackageSet
from benchmarks.own_process import train
from gru_training import load_run

_RIVALS = "benchmarks.rivals.statsforecast_origins"
RIVALS = ("AutoETS", "AutoTheta", "ridge", "last value", "seasonal naive")
"""Rivals to the best of which the ratio is; FLAIR is shown beside them."""
COVERED = (80, 95)


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is missing and print the table; returns the exit status."""
    names = [each.name for each in PACKAGE_SETS]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.forecasting_defaults.origins",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sets", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--epochs", help="by default those of the training")
    parser.add_argument("--runs-dir", type=Path, default=Path("runs/origins"))
    parser.add_argument("--rivals-python", default="python")
    asked = parser.parse_args(argv)
    asked.runs_dir.mkdir(parents=True, exist_ok=True)
    missing = [name for name in asked.sets if not (asked.runs_dir / f"{name}.json").exists()]
    if missing:
        command = [asked.rivals_python, "-m", _RIVALS, str(asked.runs_dir), *missing]
        subprocess.run(command, check=True)
    rows = []
    for each in PACKAGE_SETS:
        if each.name in asked.sets:
            rows.append(row(each, asked))
            print(_line(rows[-1]), flush=True)
    ratios = [one["ratio"] for one in rows if one["ratio"] > 0]
    if ratios:
        mean = math.exp(statistics.mean(map(math.log, ratios)))
        print(f"Geometric mean of the ratios: {mean:.3f} over {len(ratios)} sets.")
    return 0


def row(one: PackageSet, asked: argparse.Namespace) -> dict[str, Any]:
    """A line of the table."""
    table = pd.read_csv(asked.runs_dir / f"{one.name}.csv", index_col="time", parse_dates=True)
    rivals = np.load(asked.runs_dir / f"{one.name}.npz")
    path = asked.runs_dir / f"{one.name}-s{asked.seed}"
    known = path.with_suffix(".csv")
    first = one.origin_rows(len(table))[0]
    _given(one, table.iloc[:first]).to_csv(known, index=False)
    words = ["forecasting", "--data", str(known), "--horizon", str(one.horizon)]
    words += ["--seed", asked.seed, *(["--epochs", asked.epochs] if asked.epochs else [])]
    began = _processor_seconds()
    train(path, words)
    seconds = _processor_seconds() - began
    forecaster, values = load_run(path), table.to_numpy(float)
    columns = list(forecaster.run_.target_columns)
    forecasts, bounds = [], []
    for origin in one.origin_rows(len(table)):
        long = forecaster.predict(data=_given(one, table.iloc[:origin]))
        wide = {
            name: long.pivot(index="ds", columns="unique_id", values=name)[columns].to_numpy()
            for name in ("forecast", *(f"{side}-{of}" for of in COVERED for side in ("lo", "hi")))
        }
        forecasts.append(wide.pop("forecast"))
        bounds.append(list(wide.values()))
    kept = [table.columns.get_loc(name) for name in columns]
    truth = np.stack([values[at : at + one.horizon, kept] for at in one.origin_rows(len(table))])
    within = np.array(bounds)  # (O, 4, H, K)
    scale = _naive_scale(one, values[:first, kept])
    found = {
        name: _mase(rivals[name][:, 0][..., kept], truth, scale)
        for name in ("AutoETS", "AutoTheta", "ridge")
    }
    flair = _mase(rivals["FLAIR"][:, 0][..., kept], truth, scale)
    found |= _naive(one, values[:, kept], truth, scale)
    seen, own = np.isfinite(truth), _mase(np.stack(forecasts), truth, scale)
    coverage = {
        of: float(((within[:, 2 * n] <= truth) & (truth <= within[:, 2 * n + 1]))[seen].mean())
        for n, of in enumerate(COVERED)
    }
    best = min(found.values())
    shares = json.loads((path / "combination.json").read_text("utf-8"))["shares"]
    return {
        "name": one.name,
        "rows": len(table),
        "columns": len(columns),
        "held out": f"{one.horizon} × {one.origins}",
        "own": own,
        "rivals": found,
        "FLAIR": flair,
        "ratio": own / best if best else 0.0,
        "coverage": coverage,
        "networks": any(share["network"] and share["weight"] for share in shares),
        "seconds": seconds,
    }


def _processor_seconds() -> float:
    """Processor time of all trainings so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _given(one: PackageSet, table: pd.DataFrame) -> pd.DataFrame:
    """The table as it is given to the training: wide, or with a row for each series and time."""
    if not one.long:
        return table.reset_index(names="time")
    long = table.rename_axis(columns="unique_id").stack().dropna().rename("y").reset_index()
    return long.rename(columns={"time": "ds"})


def _naive_scale(one: PackageSet, known: np.ndarray) -> np.ndarray:
    return np.asarray(np.nanmean(np.abs(known[one.season :] - known[: -one.season]), axis=0))


def _mase(forecasts: np.ndarray, truth: np.ndarray, scale: np.ndarray) -> float:
    """The mean over the columns."""
    return float(np.nanmean(np.nanmean(np.abs(forecasts - truth), axis=(0, 1)) / scale))


def _naive(
    one: PackageSet, values: np.ndarray, truth: np.ndarray, scale: np.ndarray
) -> dict[str, float]:
    filled, steps = pd.DataFrame(values).ffill().to_numpy(), np.arange(one.horizon)
    rows = np.array(one.origin_rows(len(values)))[:, np.newaxis]
    last, season = filled[rows - 1 + 0 * steps], filled[rows - one.season + steps % one.season]
    return {
        "last value": _mase(last, truth, scale),
        "seasonal naive": _mase(season, truth, scale),
    }


def _line(one: Mapping[str, Any]) -> str:
    cells = [
        one["name"],
        f"{one['rows']} × {one['columns']}",
        one["held out"],
        f"{one['own']:.3f}",
        *(f"{one['rivals'][name]:.3f}" for name in RIVALS),
        f"{one['FLAIR']:.3f}",
        f"{one['ratio']:.3f}",
        ", ".join(f"{share:.0%}" for share in one["coverage"].values()),
        "yes" if one["networks"] else "no",
        f"{one['seconds']:.0f} s" if one["seconds"] > 1 else "–",
    ]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    raise SystemExit(main())
