"""A forecasting run through time: rolling-origin evaluation, compared with refitted baselines.

After Tashman (2000), "Out-of-sample tests of forecasting accuracy", International Journal of
Forecasting 16.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
from rich.console import Console

from gru_training.errors import DataError, RunDirectoryError
from gru_training.forecasting.backtests.adaptive import (
    AdaptiveIntervals,
    adaptive_coverage,
    residuals_of,
)
from gru_training.forecasting.backtests.config import BacktestConfig
from gru_training.forecasting.backtests.fold import Fold
from gru_training.forecasting.backtests.report import (
    COMBINATION,
    NETWORK,
    draw_folds,
    summarise,
    write_table,
)
from gru_training.forecasting.baselines.exponential_smoothing import SmoothingForecaster, suits
from gru_training.forecasting.baselines.simple import (
    RIDGE,
    SMOOTHING,
    measure_smoothing,
    naive_forecasters,
    ridge_of,
)
from gru_training.forecasting.combination.refit import refit_combination, stored_plan
from gru_training.forecasting.data import ForecastingData, prepare, read_series
from gru_training.forecasting.network.training import train_network
from gru_training.forecasting.predictor import Predictor, make_predictor
from gru_training.forecasting.run import ForecastingRun
from gru_training.forecasting.scores.evaluation import evaluate_forecasts
from gru_training.forecasting.scores.forecast_errors import ForecastErrors, measure
from gru_training.forecasting.sources.sets import Borders
from gru_training.loop.replicas import Replicas
from gru_training.runs.directory import RunWriter

_WARM = 0.25
"""Share of the epochs that networks need which begin with the weights of the fold before."""


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
    data = data_of_run(run, prepare(read_series(settings), settings))
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
        run: Complete.
        data: The series, with the run's scale and borders.
        config: Into how many folds, and how. No fold forecasts a step of another.
        console: Where to show progress.

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
    adaptive = _adaptive(predict, data, run.levels) if config.adaptive else None
    tried = run.metrics["ridge_by_lookback"]
    lookback = int(min(tried, key=lambda name: tried[name]["validation"]["mse"]))
    name = COMBINATION if run.combination is not None else NETWORK
    done = []
    for number, origins in enumerate(parts, start=1):
        origins = origins[:: config.step]
        known = int(origins[0]) - config.gap
        if config.refit:
            console.print(f"fold {number} of {folds}: training on {known:,} rows", highlight=False)
            start = model if config.warm_start else None
            model = _refitted(run, data.trained_on(known), console, start)
            predict = make_predictor(model, data.preprocessor)
        with console.status(f"fold {number} of {folds} ..."):
            part = replace(windows, origins=origins)
            own = evaluate_forecasts(predict, part, run.offsets, data.preprocessor, run.levels)
            errors = {name: own.errors, **_baselines(data.plain, origins, lookback, known)}
            done.append(
                Fold(
                    str(data.series.times[origins[0]]),
                    str(data.series.times[origins[-1] + data.shape.horizon - 1]),
                    len(part),
                    errors,
                    own.pinball,
                    {each.nominal: each.coverage for each in own.intervals},
                    {} if adaptive is None else adaptive_coverage(adaptive, predict, part),
                )
            )
    return done


def _adaptive(
    predict: Predictor, data: ForecastingData, levels: Sequence[float]
) -> AdaptiveIntervals:
    """Intervals that begin with the residuals of the validation windows."""
    windows, middle = data.windows("validation"), len(levels) // 2
    shares = [levels[-1 - pair] - levels[pair] for pair in range(middle)]
    residuals = [each for _, each in residuals_of(predict, windows)]
    return AdaptiveIntervals(shares, np.stack(residuals), windows.origins)


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
    run: ForecastingRun, known: ForecastingData, console: Console, start: keras.Model | None
) -> keras.Model:
    """The run's model trained on the rows before a fold, for as many epochs as did best.

    Args:
        run: Complete.
        known: With these rows to train on.
        console: Where to show progress.
        start: The model before, with whose networks it begins and then needs fewer epochs.
    """
    epochs = int(run.metrics["best_epoch"])
    if start is not None:
        epochs = max(1, round(_WARM * epochs))
    model: keras.Model | None
    if run.combination is not None:
        plan = stored_plan(run.config, run.combination, known)
        weights = [float(share["weight"]) for share in run.combination["shares"]]
        model = refit_combination(plan, weights, epochs, console, start)
    else:
        training = replace(run.config.training, epochs=epochs)
        config = replace(run.config, training=training)
        model, result = train_network(
            known, config, Replicas(), None, console, last_epoch=True, initial=start
        )
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
    data: ForecastingData, origins: np.ndarray, lookback: int, known: int
) -> dict[str, ForecastErrors]:
    """Of the windows of a fold, fitted on the first `known` rows."""
    part = replace(data.windows("test"), origins=origins)
    horizon = data.shape.horizon
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
        best = min(tried, key=lambda each: measure_smoothing(each, earlier, data.preprocessor).mse)
        errors[SMOOTHING] = measure_smoothing(best, part, data.preprocessor)
    return errors
