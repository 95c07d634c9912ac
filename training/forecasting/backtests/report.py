"""The folds of a backtest for people: figures, table, picture."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from training.forecasting.baselines.simple import LAST_VALUE, RIDGE, SEASONAL_NAIVE, SMOOTHING
from training.forecasting.run import ForecastingRun
from training.forecasting.scores.forecast_errors import ForecastErrors
from training.plots.picture import save_figure

NETWORK, COMBINATION = "GRU", "combination"
_COLOURS = {
    NETWORK: "#0b63b5",
    COMBINATION: "#0b63b5",
    LAST_VALUE: "#b0b0b0",
    SEASONAL_NAIVE: "#e08214",
    RIDGE: "#2c9c4a",
    SMOOTHING: "#8e44ad",
}


@dataclass(frozen=True)
class Fold:
    """Some consecutive windows, and the errors of every model on them."""

    first_time: str
    """Of the first step that is forecast; the baselines know all rows before it."""
    last_time: str
    """Of the last step that is forecast."""
    windows: int
    errors: dict[str, ForecastErrors]
    coverage: dict[float, float]
    """Of the network's intervals, by nominal coverage."""


def summarise(run: ForecastingRun, folds: list[Fold]) -> dict[str, Any]:
    """What `backtest.json` holds; means over all folds weigh every value alike."""

    def numbers(name: str) -> dict[str, float]:
        errors = [fold.errors[name] for fold in folds]
        counts = [int(each.count.sum()) for each in errors]
        return {
            kind: float(np.average([getattr(each, kind) for each in errors], weights=counts))
            for kind in ("mse", "mae")
        }

    return {
        "run": run.path.resolve().name,
        "series": run.series.name,
        "folds": [
            {
                "first_time": fold.first_time,
                "last_time": fold.last_time,
                "windows": fold.windows,
                "coverage": {f"{nominal:g}": share for nominal, share in fold.coverage.items()},
                "errors": {
                    name: {"mse": errors.mse, "mae": errors.mae}
                    for name, errors in fold.errors.items()
                },
            }
            for fold in folds
        ],
        "all": {name: numbers(name) for name in folds[0].errors},
    }


def write_table(summary: Mapping[str, Any]) -> str:
    """The backtest as Markdown."""
    names = list(summary["all"])
    shares = list(summary["folds"][0]["coverage"])
    lines = [
        f"# Backtest of {summary['run']}",
        "",
        f"Series {summary['series']}; mean squared error, standardised. In every fold the ridge "
        "regression and the exponential smoothing were fitted on all rows before its first time; "
        + (
            "the network was trained again, too."
            if summary.get("refit")
            else "the network was not trained again."
        ),
        "",
        "| fold | from | to | windows | "
        + " | ".join([*names, *(f"{float(share):.0%} interval" for share in shares)])
        + " |",
        "|---:|---|---|---:|" + "---:|" * (len(names) + len(shares)),
    ]
    for number, fold in enumerate(summary["folds"], start=1):
        cells = [f"{fold['errors'][name]['mse']:.4f}" for name in names]
        cells += [f"{fold['coverage'][share]:.1%}" for share in shares]
        lines.append(
            f"| {number} | {fold['first_time']} | {fold['last_time']} | {fold['windows']:,} | "
            + " | ".join(cells)
            + " |"
        )
    cells = [f"**{summary['all'][name]['mse']:.4f}**" for name in names] + [""] * len(shares)
    lines.append("| all | | | | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", "![folds](backtest.png)"]) + "\n"


def draw_folds(summary: Mapping[str, Any], path: Path) -> None:
    """Draw the squared error of every model in each fold."""
    folds = summary["folds"]
    figure = Figure(figsize=(max(7.0, 1.3 * len(folds) + 2), 4), dpi=120, layout="constrained")
    axes = figure.subplots()
    for name in summary["all"]:
        values = [fold["errors"][name]["mse"] for fold in folds]
        axes.plot(range(1, len(folds) + 1), values, marker="o", color=_COLOURS[name], label=name,
                  linewidth=2.2 if name in (NETWORK, COMBINATION) else 1.2)  # fmt: skip
    labels = [f"{number}\n{fold['first_time'][:10]}" for number, fold in enumerate(folds, start=1)]
    axes.set_xticks(range(1, len(folds) + 1), labels)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("fold and its first time")
    axes.set_ylabel("mean squared error, standardised")
    axes.grid(alpha=0.25)
    figure.legend(fontsize="small", loc="outside right upper")
    save_figure(figure, path)
