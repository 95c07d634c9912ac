"""A forecasting run through time: rolling-origin evaluation, compared with refitted baselines.

After Tashman (2000), "Out-of-sample tests of forecasting accuracy", International Journal of
Forecasting 16.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console

from training.errors import DataError, RunDirectoryError
from training.forecasting.backtests.config import BacktestConfig
from training.forecasting.baselines.exponential_smoothing import SmoothingForecaster, suits
from training.forecasting.baselines.simple import (
    LAST_VALUE,
    RIDGE,
    SEASONAL_NAIVE,
    SMOOTHING,
    measure_smoothing,
    naive_forecasters,
    ridge_of,
)
from training.forecasting.data import ForecastingData, load_forecasting_data
from training.forecasting.run import ForecastingRun
from training.forecasting.scores.conformal import LEVELS
from training.forecasting.scores.evaluation import evaluate_forecasts, make_predictor
from training.forecasting.scores.forecast_errors import ForecastErrors, measure
from training.forecasting.sources.sets import Borders
from training.plots.picture import save_figure
from training.runs.directory import RunWriter

NETWORK = "GRU"
_COLOURS = {
    NETWORK: "#0b63b5",
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


def run_backtest(config: BacktestConfig, console: Console | None = None) -> Path:
    """Evaluate a run and write backtest.json, backtest.md and backtest.png.

    Returns:
        The new folder beside the run.

    Raises:
        TrainingError: The run or its data cannot be used, or the folder exists.
    """
    console = console or Console(quiet=True)
    run = ForecastingRun.open(config.run_path)
    if config.data is None and run.given is not None:
        raise RunDirectoryError(
            f"{run.path} was trained on a table in memory; name a file with the same rows with "
            "--data"
        )
    settings = run.config.data
    settings = replace(settings, data=config.data) if config.data else settings
    data = data_of_run(run, load_forecasting_data(settings))
    place = run.path.resolve()
    with RunWriter(place.parent, config.name or f"{place.name}-backtest") as writer:
        folds = backtest(run, data, config.folds, console)
        summary = summarise(run, folds)
        writer.write_json("backtest.json", summary)
        writer.write_text("backtest.md", write_table(summary))
        draw_folds(summary, writer.path / "backtest.png")
        return writer.publish()


def backtest(
    run: ForecastingRun, data: ForecastingData, folds: int, console: Console
) -> list[Fold]:
    """Evaluate a run and refitted baselines fold by fold.

    Args:
        run: The trained network, which stays as it is.
        data: The series, with the run's scale and borders.
        folds: How many parts to make of the test windows.
        console: Where to show progress.

    Raises:
        DataError: There are fewer windows than folds.
    """
    windows = data.windows("test")
    if len(windows) < folds:
        raise DataError(f"--folds: expected at most {len(windows)} (the test windows), got {folds}")
    predict = make_predictor(run.load_model(), data)
    tried = run.metrics["ridge_by_lookback"]
    lookback = int(min(tried, key=lambda name: tried[name]["validation"]["mse"]))
    done = []
    for number, origins in enumerate(np.array_split(windows.origins, folds), start=1):
        with console.status(f"fold {number} of {folds} ..."):
            part = replace(windows, origins=origins)
            network = evaluate_forecasts(
                predict, part, run.offsets, LEVELS, data.preprocessor.measured
            )
            last_step = origins[-1] + data.shape.horizon - 1
            done.append(
                Fold(
                    str(data.series.times[origins[0]]),
                    str(data.series.times[last_step]),
                    len(part),
                    {NETWORK: network.errors, **_baselines(data.plain, origins, lookback)},
                    {each.nominal: each.coverage for each in network.intervals},
                )
            )
    return done


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
        "the network was not trained again.",
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
                  linewidth=2.2 if name == NETWORK else 1.2)  # fmt: skip
    labels = [f"{number}\n{fold['first_time'][:10]}" for number, fold in enumerate(folds, start=1)]
    axes.set_xticks(range(1, len(folds) + 1), labels)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("fold and its first time")
    axes.set_ylabel("mean squared error, standardised")
    axes.grid(alpha=0.25)
    figure.legend(fontsize="small", loc="outside right upper")
    save_figure(figure, path)


def data_of_run(run: ForecastingRun, data: ForecastingData) -> ForecastingData:
    """A series as it is now, with the scale and the borders that a run was made with.

    Args:
        run: Complete.
        data: The series, prepared with the settings of the run.

    Raises:
        RunDirectoryError: It has other columns, or does not begin as the series of the run.
    """
    if data.series.columns != run.columns:
        raise RunDirectoryError(
            f"{data.series.source}: expected the columns of the run, {', '.join(run.columns)}, "
            f"got {', '.join(data.series.columns)}"
        )
    train, validation, _ = run.series.borders
    if len(data.series) < run.series.borders[2] or str(data.series.times[0]) != (
        run.series.first_time
    ):
        raise RunDirectoryError(
            f"{data.series.source}: expected at least the {run.series.borders[2]:,} rows of the "
            f"run from {run.series.first_time}, got {len(data.series):,} from "
            f"{data.series.times[0]}"
        )
    return replace(
        data,
        borders=Borders(train, validation, data.borders.test),
        shape=run.shape,
        season=run.series.season,
        preprocessor=run.preprocessor(),
    )


def _baselines(
    data: ForecastingData, origins: np.ndarray, lookback: int
) -> dict[str, ForecastErrors]:
    """Of the windows of a fold, knowing all rows before them."""
    part = replace(data.windows("test"), origins=origins)
    horizon, known = data.shape.horizon, int(part.origins[0])
    simple = naive_forecasters(data)
    simple[RIDGE] = ridge_of(data, lookback, known), lookback
    errors = {
        name: measure(forecaster, replace(part, lookback=steps), data.preprocessor)
        for name, (forecaster, steps) in simple.items()
    }
    if suits(data):
        tried = [SmoothingForecaster(data, damped, known) for damped in (False, True)]
        first = max(known - 2 * horizon, data.season)
        earlier = replace(part, origins=np.arange(first, known - horizon + 1))
        best = min(tried, key=lambda each: measure_smoothing(each, earlier).mse)
        errors[SMOOTHING] = measure_smoothing(best, part)
    return errors
