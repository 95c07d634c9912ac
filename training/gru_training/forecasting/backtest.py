"""Backtests of a forecasting run: rolling-origin evaluation, compared with refitted baselines.

After Tashman (2000), "Out-of-sample tests of forecasting accuracy", International Journal of
Forecasting 16.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from rich.console import Console

from gru_training.data.problems import DataProblemsError, counted, first_names
from gru_training.data.series import Series
from gru_training.errors import DataError, RunDirectoryError
from gru_training.forecasting.combination import continued_epochs, refit, stored_plan
from gru_training.forecasting.config import BacktestConfig
from gru_training.forecasting.data import ForecastingData, prepare, read_series
from gru_training.forecasting.evaluation import (
    ForecastErrors,
    crps,
    error_details,
    error_summary,
    evaluate_forecasts,
    measure,
    weighted_mean,
)
from gru_training.forecasting.future import recent_of_run
from gru_training.forecasting.linear import LAST_VALUE, RIDGE, SEASONAL_NAIVE, SMOOTHING
from gru_training.forecasting.preprocessor import make_predictor
from gru_training.forecasting.run import ForecastingRun
from gru_training.forecasting.sets import Borders
from gru_training.forecasting.simple import (
    SmoothingForecaster,
    measure_smoothing,
    naive_forecasters,
    ridge_of,
    suits,
)
from gru_training.plots import save_figure
from gru_training.runs.directory import RunWriter
from gru_training.runs.report_page import markdown_table


@dataclass(frozen=True)
class Fold:
    """Some consecutive windows, and the errors of every model on them."""

    first_time: pd.Timestamp | int
    """Time of the first step that is forecast, from which on no model knows the truth."""
    last_time: pd.Timestamp | int
    """Time of the last step that is forecast."""
    windows: int
    errors: dict[str, ForecastErrors]
    """Errors of each model by its name, the run's model first."""
    pinball: np.ndarray
    """Mean pinball loss of the run's model, (Q, H, K)."""
    coverage: dict[float, float]
    """Measured coverage of the run's intervals, by nominal coverage."""


def measures(
    folds: Sequence[Fold], levels: Sequence[float], data: ForecastingData
) -> dict[str, dict[str, float | None]]:
    """Compute every measure of every model over all windows of some folds.

    All values weigh the same.

    Args:
        folds: Folds of the backtest, one or more.
        levels: Levels of the quantiles, ascending.
        data: Series on the scale on which errors are measured.
    """
    found: dict[str, dict[str, float | None]] = {}
    for name in folds[0].errors:
        errors = [fold.errors[name] for fold in folds]
        all_errors = _together(errors)
        details = error_details(all_errors, data)
        scaled = {kind: details[kind] for kind in ("mase", "rmsse", "smape")}
        found[name] = {**error_summary(all_errors), **scaled}
    own = next(iter(folds[0].errors))
    counts = np.stack([fold.errors[own].count for fold in folds])
    ranked = np.stack([crps(fold.pinball, levels) for fold in folds])
    found[own]["crps"] = float(weighted_mean(ranked, counts))
    return found


def covered(folds: Sequence[Fold]) -> dict[str, float]:
    """Compute the share of all values of some folds inside, by nominal coverage."""
    counts = [int(next(iter(fold.errors.values())).count.sum()) for fold in folds]
    return {
        f"{nominal:g}": float(np.average([of.coverage[nominal] for of in folds], weights=counts))
        for nominal in folds[0].coverage
    }


def _together(errors: Sequence[ForecastErrors]) -> ForecastErrors:
    if len(errors) == 1:
        return errors[0]
    counts = np.stack([each.count for each in errors])
    squared, absolute, percentage = (
        weighted_mean(np.stack([getattr(each, kind) for each in errors]), counts, 0)
        for kind in ("squared", "absolute", "percentage")
    )
    total = counts.sum(axis=0)
    return ForecastErrors(squared, absolute, percentage, total, errors[0].windows)


def fold_table(
    folds: Sequence[Fold], levels: Sequence[float], data: ForecastingData
) -> pd.DataFrame:
    """Make a table with a row for each fold and model.

    Args:
        folds: Folds of the backtest, one or more.
        levels: Levels of the quantiles, ascending.
        data: Series on the scale on which errors are measured.
    """
    rows = []
    for number, fold in enumerate(folds, start=1):
        when = {"first_time": fold.first_time, "last_time": fold.last_time}
        for name, errors in measures([fold], levels, data).items():
            row = {"fold": number, "model": name, **when, "windows": fold.windows, **errors}
            if name == next(iter(fold.errors)):
                row |= {f"inside-{100 * k:g}": share for k, share in fold.coverage.items()}
            rows.append(row)
    return pd.DataFrame(rows)


NETWORK = "GRU"
MAX_REVISION = 0.5
"""Greatest correction of most values that leaves a series the same, in standard deviations."""
_DELIVERED = "#0b63b5"
"""Colour of the run's model."""
_COLOURS = {
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
    """Collect the content of `backtest.json`; means over all folds weigh every value alike.

    Args:
        run: Run that was tested.
        data: Series on the scale on which errors are measured.
        folds: Folds of the backtest, one or more.
        config: Settings of the backtest.
    """
    return {
        "run": run.path.resolve().name,
        "series": run.series.name,
        "folds": [
            {
                "first_time": str(fold.first_time),
                "last_time": str(fold.last_time),
                "windows": fold.windows,
                "coverage": covered([fold]),
                "errors": measures([fold], run.levels, data),
            }
            for fold in folds
        ],
        "all": measures(folds, run.levels, data),
        "coverage": covered(folds),
        "refit": config.refit,
        "warm_start": config.warm_start,
        "gap": config.gap,
        "step": config.step,
        "metric": config.metric,
    }


def write_table(summary: Mapping[str, Any]) -> str:
    """Write the backtest as Markdown."""
    metric = summary["metric"]
    names = [name for name, values in summary["all"].items() if values.get(metric) is not None]
    titles = [f"{float(share):.0%} interval" for share in summary["coverage"]]
    lines = [
        f"# Backtest of {summary['run']}",
        "",
        _introduction(summary),
        "",
    ]
    rows = [["fold", "from", "to", "windows", *names, *titles]]
    for number, fold in enumerate(summary["folds"], start=1):
        when = fold["first_time"], fold["last_time"], f"{fold['windows']:,}"
        cells = [_cell(fold["errors"][name][metric]) for name in names]
        cells += [f"{share:.1%}" for share in fold["coverage"].values()]
        rows.append([str(number), *when, *cells])
    cells = [_cell(summary["all"][name][metric]) for name in names]
    cells += [f"{share:.1%}" for share in summary["coverage"].values()]
    rows.append(["all", "", "", "", *(f"**{cell}**" for cell in cells)])
    return "\n".join([*lines, *markdown_table(rows, words=3), "", "![folds](backtest.png)"]) + "\n"


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
        axes.plot(range(1, len(folds) + 1), values, marker="o", label=name,
                  color=_COLOURS.get(name, _DELIVERED),
                  linewidth=1.2 if name in _COLOURS else 2.2)  # fmt: skip
    labels = [f"{number}\n{fold['first_time'][:10]}" for number, fold in enumerate(folds, start=1)]
    axes.set_xticks(range(1, len(folds) + 1), labels)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("fold and its first time")
    axes.set_ylabel(_TITLES[metric])
    axes.grid(alpha=0.25)
    figure.legend(fontsize="small", loc="outside right upper")
    save_figure(figure, path)


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
    if config.data is not None:
        settings = replace(settings, data=config.data)
    try:
        data = data_of_run(run, read_series(settings))
    except DataProblemsError as error:  # whose remedies are flags of a training
        raise DataProblemsError(str(settings.data), error.messages) from None
    place = run.path.resolve()
    with RunWriter(place.parent, config.name or f"{place.name}-backtest") as writer:
        folds = backtest(run, data, config, console)
        summary = summarise(run, data.plain, folds, config)
        writer.write_json("backtest.json", summary)
        writer.write_text("backtest.md", write_table(summary))
        draw_folds(summary, writer.path / "backtest.png")
        return writer.publish()


def backtest(
    run: ForecastingRun, data: ForecastingData, config: BacktestConfig, console: Console
) -> list[Fold]:
    """Evaluate a run and refitted baselines fold by fold.

    Args:
        run: Complete run.
        data: The series, with the run's scale and borders.
        config: Number of folds, and settings of each. No fold forecasts a step of another.
        console: Console that shows progress.

    Raises:
        DataError: There are fewer windows than folds, or too few rows before the gap.
    """
    folds = config.folds
    windows = data.windows("test")
    if len(windows) < folds:
        raise DataError(f"--folds: expected at most {len(windows)} (the test windows), got {folds}")
    parts = _apart(windows.origins, folds, data.shape.horizon)
    least = data.shape.lookback + data.shape.horizon
    if parts[0][0] - config.gap < least:
        raise DataError(
            f"--gap: expected at most {max(0, parts[0][0] - least):,}, so that the "
            f"{parts[0][0]:,} rows before the first fold leave a window to fit on, got {config.gap}"
        )
    model = run.load_model()
    predict = make_predictor(model, data.preprocessor)
    tried = run.metrics["ridge_by_lookback"]
    lookback = int(min(tried, key=lambda name: tried[name]["validation"]["mse"]))
    name = NETWORK if run.combination is None else str(run.metrics["model"]["name"])
    done = []
    for number, origins in enumerate(parts, start=1):
        origins = origins[:: config.step]
        known = int(origins[0]) - config.gap
        if config.refit:
            console.print(f"fold {number} of {folds}: training on {known:,} rows")
            start = model if config.warm_start else None
            model = _refitted(run, data.trained_on(known), console, start)
            predict = make_predictor(model, data.preprocessor)
        with console.status(f"fold {number} of {folds} ..."):
            part = replace(windows, origins=origins)
            own = evaluate_forecasts(predict, part, run.offsets, data.preprocessor, run.levels)
            errors = {name: own.errors, **_baselines(data.plain, origins, lookback, known)}
            ends = [origins[0], origins[-1] + data.shape.horizon - 1]
            first, last = run.people_read(data.series.index[ends])
            done.append(
                Fold(
                    first,
                    last,
                    len(part),
                    errors,
                    own.pinball,
                    {each.nominal: each.coverage for each in own.intervals},
                )
            )
    return done


def _apart(origins: np.ndarray, folds: int, horizon: int) -> list[np.ndarray]:
    """Return the windows of each fold; windows that reach into the next fold are left out.

    Raises:
        DataError: A fold would have none.
    """
    parts = np.array_split(origins, folds)
    for number, after in enumerate(parts[1:]):
        parts[number] = parts[number][parts[number] + horizon <= after[0]]
    if not all(map(len, parts)):
        raise DataError(
            f"--folds: expected at most {max(1, len(origins) // (horizon + 1))}, so that each has "
            f"a window of {horizon} steps that ends before the next one, got {folds}"
        )
    return parts


def _refitted(
    run: ForecastingRun, known: ForecastingData, console: Console, start: keras.Model | None
) -> keras.Model:
    """Train the run's model on the rows before a fold, for its best number of epochs.

    Args:
        run: Complete run.
        known: Series with these rows to train on.
        console: Console that shows progress.
        start: The model before, with whose networks it begins and then needs fewer epochs.
    """
    epochs = int(run.metrics["best_epoch"])
    if start is not None:
        epochs = continued_epochs(epochs)
    plan, weights = stored_plan(run.config, run.combination, known)
    model = refit(plan, weights, epochs, console, start)
    if model is None:
        raise KeyboardInterrupt
    return model


def data_of_run(run: ForecastingRun, series: Series) -> ForecastingData:
    """Give the present series the scale and the borders with which a run was made.

    Args:
        run: Complete run.
        series: Series as it was read; columns that the run does not have are left out.

    Raises:
        DataError: A column cannot be used.
        RunDirectoryError: The series lacks columns, has another spacing or other values than the
            run's, or does not begin as it.
    """
    train, validation, rows = run.series.borders
    if len(series) < rows or str(series.index[0]) != run.series.first_time:
        raise RunDirectoryError(
            f"{series.source}: expected at least the {rows:,} rows of the run from "
            f"{run.series.first_time}, got {len(series):,} from {series.index[0]}"
        )
    missing = [name for name in run.columns if name not in series.columns]
    if not missing:
        data = prepare(series.with_columns(run.columns), run.config.data, planned=True)
        missing = [name for name in run.columns if name not in data.series.columns]
    if missing:
        raise RunDirectoryError(
            f"{series.source}: expected the columns of the run, got none called "
            f"{first_names(missing)} with values"
        )
    known, targets = recent_of_run(run), list(run.shape.targets)
    times = data.series.index  # a published series has a time twice
    places = np.minimum(times.searchsorted(known.times), len(times) - 1)
    apart = np.abs(data.series.values[places] - known.values)[:, targets]
    others = (apart > MAX_REVISION * run.deviations[targets]).sum() > np.isfinite(apart).sum() / 2
    if (times[places] != known.times).any() or others:
        begin, end = run.people_read(known.times[[0, -1]])
        raise RunDirectoryError(
            f"{data.series.source}: expected the series that {run.path} was trained on, got other "
            f"values from {begin} to {end}; train a run on this series to backtest it"
        )
    return replace(
        data,
        borders=Borders(train, validation, data.borders.test),
        shape=run.shape,
        season=run.series.season,
        preprocessor=run.preprocessor(),
    )


def _baselines(
    data: ForecastingData, origins: np.ndarray, lookback: int, known: int
) -> dict[str, ForecastErrors]:
    """Measure the errors of simple forecasters in a fold, fitted on the first `known` rows."""
    part = replace(data.windows("test"), origins=origins)
    horizon = data.shape.horizon
    simple = [*naive_forecasters(data), (ridge_of(data, lookback, known), lookback)]
    errors = {
        each.name: measure(each, replace(part, lookback=steps), data.preprocessor)
        for each, steps in simple
    }
    if suits(data):
        tried = [SmoothingForecaster(data, damped, known) for damped in (False, True)]
        first = max(known - 2 * horizon, data.season)
        earlier = replace(part, origins=np.arange(first, known - horizon + 1))
        best = min(tried, key=lambda each: measure_smoothing(each, earlier, data.preprocessor).mse)
        errors[SMOOTHING] = measure_smoothing(best, part, data.preprocessor)
    return errors
