"""A forecasting run through time: rolling-origin evaluation, compared with refitted baselines.

After Tashman (2000), "Out-of-sample tests of forecasting accuracy", International Journal of
Forecasting 16.
"""

from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
from rich.console import Console

from training.errors import DataError, RunDirectoryError
from training.forecasting.backtests.config import BacktestConfig
from training.forecasting.backtests.report import (
    COMBINATION,
    NETWORK,
    Fold,
    draw_folds,
    summarise,
    write_table,
)
from training.forecasting.baselines.exponential_smoothing import SmoothingForecaster, suits
from training.forecasting.baselines.simple import (
    RIDGE,
    SMOOTHING,
    measure_smoothing,
    naive_forecasters,
    ridge_of,
)
from training.forecasting.combination.refit import refit_combination, stored_plan
from training.forecasting.data import ForecastingData, load_forecasting_data
from training.forecasting.network.training import train_network
from training.forecasting.run import ForecastingRun
from training.forecasting.scores.evaluation import evaluate_forecasts, make_predictor
from training.forecasting.scores.forecast_errors import ForecastErrors, measure
from training.forecasting.sources.sets import Borders
from training.loop.replicas import Replicas
from training.runs.directory import RunWriter


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
        folds = backtest(run, data, config.folds, console, config.refit, config.step)
        summary = {**summarise(run, folds), "refit": config.refit}
        writer.write_json("backtest.json", summary)
        writer.write_text("backtest.md", write_table(summary))
        draw_folds(summary, writer.path / "backtest.png")
        return writer.publish()


def backtest(
    run: ForecastingRun,
    data: ForecastingData,
    folds: int,
    console: Console,
    refit: bool = False,
    step: int = 1,
) -> list[Fold]:
    """Evaluate a run and refitted baselines fold by fold.

    Args:
        run: The trained network.
        data: The series, with the run's scale and borders.
        folds: How many parts to make of the test windows; none forecasts a step of another.
        console: Where to show progress.
        refit: Train the network again before each fold; else it stays as it is.
        step: Forecast from every n-th of a fold's windows only.

    Raises:
        DataError: There are fewer windows than folds.
    """
    windows = data.windows("test")
    if len(windows) < folds:
        raise DataError(f"--folds: expected at most {len(windows)} (the test windows), got {folds}")
    predict = make_predictor(run.load_model(), data)
    tried = run.metrics["ridge_by_lookback"]
    lookback = int(min(tried, key=lambda name: tried[name]["validation"]["mse"]))
    name = COMBINATION if run.combination is not None else NETWORK
    done = []
    for number, origins in enumerate(_apart(windows.origins, folds, data.shape.horizon), start=1):
        origins = origins[::step]
        if refit:
            console.print(f"fold {number} of {folds}: training on {origins[0]:,} rows",
                          highlight=False)  # fmt: skip
            predict = make_predictor(_refitted(run, data, int(origins[0]), console), data)
        with console.status(f"fold {number} of {folds} ..."):
            part = replace(windows, origins=origins)
            network = evaluate_forecasts(
                predict, part, run.offsets, run.levels, data.preprocessor.measured
            )
            last_step = origins[-1] + data.shape.horizon - 1
            done.append(
                Fold(
                    str(data.series.times[origins[0]]),
                    str(data.series.times[last_step]),
                    len(part),
                    {name: network.errors, **_baselines(data.plain, origins, lookback)},
                    {each.nominal: each.coverage for each in network.intervals},
                )
            )
    return done


def _apart(origins: np.ndarray, folds: int, horizon: int) -> list[np.ndarray]:
    """The windows of each fold; those that reach into the next fold are left out.

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
    run: ForecastingRun, data: ForecastingData, rows: int, console: Console
) -> keras.Model:
    """The run's model trained on the rows before a fold, for as many epochs as did best."""
    epochs = int(run.metrics["best_epoch"])
    known = data.trained_on(rows)
    model: keras.Model | None
    if run.combination is not None:
        plan = stored_plan(run.config, run.combination, known)
        weights = [float(share["weight"]) for share in run.combination["shares"]]
        model = refit_combination(plan, weights, epochs, console)
    else:
        training = replace(run.config.training, epochs=epochs)
        config = replace(run.config, training=training)
        model, result = train_network(known, config, Replicas(), None, console, last_epoch=True)
        model = None if result.interrupted else model
    if model is None:
        raise KeyboardInterrupt
    return model


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
