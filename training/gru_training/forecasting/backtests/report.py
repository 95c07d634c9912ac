"""The folds of a backtest for people: figures, table, picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from gru_training.data.problems import counted
from gru_training.forecasting.backtests.config import BacktestConfig
from gru_training.forecasting.backtests.fold import Fold, covered, measures
from gru_training.forecasting.baselines.simple import LAST_VALUE, RIDGE, SEASONAL_NAIVE, SMOOTHING
from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.run import ForecastingRun
from gru_training.plots.picture import save_figure

NETWORK, COMBINATION = "GRU", "combination"
_COLOURS = {
    NETWORK: "#0b63b5",
    COMBINATION: "#0b63b5",
    LAST_VALUE: "#b0b0b0",
    SEASONAL_NAIVE: "#e08214",
    RIDGE: "#2c9c4a",
    SMOOTHING: "#8e44ad",
}


_TITLES = {
    "mse": "mean squared error, standardised",
    "mae": "mean absolute error, standardised",
    "mase": "MASE",
    "rmsse": "RMSSE",
    "smape": "sMAPE in percent",
    "crps": "CRPS, standardised",
}


def summarise(
    run: ForecastingRun, data: ForecastingData, folds: Sequence[Fold], config: BacktestConfig
) -> dict[str, Any]:
    """What `backtest.json` holds; means over all folds weigh every value alike.

    Args:
        run: The run.
        data: On the scale on which errors are measured.
        folds: One or more.
        config: Of the backtest.
    """

    def coverage(some: Sequence[Fold]) -> dict[str, Any]:
        found = {"coverage": covered(some, [fold.coverage for fold in some])}
        if config.adaptive:
            found["adaptive_coverage"] = covered(some, [fold.adaptive for fold in some])
        return found

    return {
        "run": run.path.resolve().name,
        "series": run.series.name,
        "folds": [
            {
                "first_time": fold.first_time,
                "last_time": fold.last_time,
                "windows": fold.windows,
                **coverage([fold]),
                "errors": measures([fold], run.levels, data),
            }
            for fold in folds
        ],
        "all": measures(folds, run.levels, data),
        **coverage(folds),
        "refit": config.refit,
        "warm_start": config.warm_start,
        "gap": config.gap,
        "step": config.step,
        "metric": config.metric,
    }


def write_table(summary: Mapping[str, Any]) -> str:
    """The backtest as Markdown."""
    metric = summary["metric"]
    names = [name for name, values in summary["all"].items() if values.get(metric) is not None]
    kinds = [kind for kind in ("coverage", "adaptive_coverage") if kind in summary]
    insides = [(kind, share) for kind in kinds for share in summary[kind]]
    titles = [
        f"{float(share):.0%} {'adaptive' if kind == 'adaptive_coverage' else 'interval'}"
        for kind, share in insides
    ]
    lines = [
        f"# Backtest of {summary['run']}",
        "",
        _introduction(summary),
        "",
        "| fold | from | to | windows | " + " | ".join([*names, *titles]) + " |",
        "|---:|---|---|---:|" + "---:|" * (len(names) + len(insides)),
    ]
    for number, fold in enumerate(summary["folds"], start=1):
        cells = [_cell(fold["errors"][name][metric]) for name in names]
        cells += [f"{fold[kind][share]:.1%}" for kind, share in insides]
        lines.append(
            f"| {number} | {fold['first_time']} | {fold['last_time']} | {fold['windows']:,} | "
            + " | ".join(cells)
            + " |"
        )
    cells = [f"**{_cell(summary['all'][name][metric])}**" for name in names]
    cells += [f"**{summary[kind][share]:.1%}**" for kind, share in insides]
    lines.append("| all | | | | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", "![folds](backtest.png)"]) + "\n"


def _introduction(summary: Mapping[str, Any]) -> str:
    gap = summary["gap"]
    rows = f"all rows up to {counted(gap, 'row')} before" if gap else "all rows before"
    again = "the run's model was not trained again."
    if summary["refit"]:
        again = "so was the run's model"
        warm = ", beginning with the weights of the fold before."
        again += warm if summary["warm_start"] else "."
    text = (
        f"Series {summary['series']}; {_TITLES[summary['metric']]}. In every fold the ridge "
        f"regression and the exponential smoothing were fitted on {rows} its first time; {again}"
    )
    if summary["step"] > 1:
        text += f" Forecasts begin at one time in {summary['step']}."
    return text


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def draw_folds(summary: Mapping[str, Any], path: Path) -> None:
    """Draw the error of every model in each fold."""
    folds = summary["folds"]
    figure = Figure(figsize=(max(7.0, 1.3 * len(folds) + 2), 4), dpi=120, layout="constrained")
    axes = figure.subplots()
    metric = summary["metric"]
    names = [name for name, values in summary["all"].items() if values.get(metric) is not None]
    for name in names:
        values = [fold["errors"][name][metric] for fold in folds]
        axes.plot(range(1, len(folds) + 1), values, marker="o", color=_COLOURS[name], label=name,
                  linewidth=2.2 if name in (NETWORK, COMBINATION) else 1.2)  # fmt: skip
    labels = [f"{number}\n{fold['first_time'][:10]}" for number, fold in enumerate(folds, start=1)]
    axes.set_xticks(range(1, len(folds) + 1), labels)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("fold and its first time")
    axes.set_ylabel(_TITLES[metric])
    axes.grid(alpha=0.25)
    figure.legend(fontsize="small", loc="outside right upper")
    save_figure(figure, path)
