"""From a series to a run directory: the forecasting pipeline."""

import time
from dataclasses import replace
from datetime import datetime
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from rich.console import Console

from training import forecast_pictures, forecasting_report, learning_curves
from training.config import to_dict
from training.conformal import LEVELS, MEDIAN, quantiles
from training.forecast_errors import CHUNK, ForecastErrors
from training.forecast_evaluation import (
    Predictor,
    calibrate,
    evaluate_forecasts,
    make_predictor,
    require_calibration,
)
from training.forecast_summary import (
    data_summary,
    error_details,
    error_summary,
    interval_summary,
)
from training.forecasting_baselines import SEASONAL_NAIVE, Baselines, fit_baselines, ridge_of
from training.forecasting_config import ForecastingConfig
from training.forecasting_data import PARTS, ForecastingData, load_forecasting_data
from training.forecasting_losses import forecast_loss, point_metrics
from training.forecasting_model import build_forecaster, initialise_linear
from training.forecasting_run import ForecastingRun, SeriesDescription, evenly
from training.learning_rate import learning_rate_schedule
from training.loop import FitResult, fit, make_eval_step, make_train_step
from training.progress import TrainingProgress
from training.replicas import Replicas, make_replicas
from training.run_summary import run_summary
from training.series_windows import WindowBatches
from training.training_run_writer import TrainingRunWriter

_STORED_WINDOWS = 64


def train_forecasting(
    config: ForecastingConfig, console: Console | None = None, resume: bool = False
) -> ForecastingRun | None:
    """Trains a forecaster and writes its run directory.

    Seeds Python's, NumPy's and Keras' global random numbers. On one machine's CPU the same
    settings give the same weights; on a GPU, or on other processors, they may differ in the last
    digits, and training magnifies that.

    Args:
        config: every setting.
        console: where to show progress; none is shown by default.
        resume: go on from the checkpoint of a run of this name that was cut short, if there is one.

    Returns:
        The run, complete on disk. After SIGINT it holds the best epoch until then and
        ``metrics["interrupted"]`` is true. Of several workers only the first writes it; for the
        others None.

    Raises:
        TrainingError: settings, data or run directory cannot be used; no run is left behind.

    Killed at any moment, it leaves hidden files at most: a checkpoint, from which ``resume`` leads
    to the same weights, and what the next training of this name removes.
    """
    console = console or Console(quiet=True)
    started = time.perf_counter()
    replicas = make_replicas(config.training.distribute)
    if not replicas.writes:
        _train(load_forecasting_data(config.data), config, replicas, None, Console(quiet=True))
        replicas.wait()
        return None
    name = config.run.name or _default_name(config)
    with TrainingRunWriter(config, "forecasting", name, resume) as writer:
        with console.status("reading the data ..."):
            data = _noting_unread(load_forecasting_data(config.data), config)
            require_calibration(data)
        _describe(data, console)
        with console.status("fitting the baselines ..."):
            baselines = fit_baselines(data)
        model, result = _train(data, config, replicas, writer, console)
        with console.status("testing ..."):
            predict = make_predictor(model, data)
            offsets = calibrate(predict, data.windows("validation"))
            validation, test = (
                evaluate_forecasts(predict, data.windows(part), offsets)
                for part in ("validation", "test")
            )
        metrics: dict[str, Any] = {
            "task": "forecasting",
            "data": data_summary(data),
            "model": {
                "name": "GRU with linear skip" if config.model.linear_skip else "GRU",
                "parameters": model.count_params(),
                "validation": error_summary(validation.errors),
                "test": {**error_summary(test.errors), **error_details(test.errors, data)},
            },
            "intervals": interval_summary(test),
            "baselines": {
                floor.name: {
                    "detail": floor.detail,
                    "validation": error_summary(floor.validation),
                    "test": {**error_summary(floor.test), **error_details(floor.test, data)},
                }
                for floor in baselines.results
            },
            "ridge_by_lookback": {
                str(lookback): {"validation": {"mse": errors[0]}, "test": {"mse": errors[1]}}
                for lookback, errors in baselines.ridge_by_lookback.items()
            },
            "beats_seasonal_naive": beats_seasonal_naive(validation.errors, baselines),
            **run_summary(result, config.training.seed, started),
        }
        writer.write_json("series.json", to_dict(_description(data)))
        data.preprocessor.save(writer.path / "scaler.json")
        np.savez(writer.path / "calibration.npz", levels=np.array(LEVELS), offsets=offsets)
        np.savez_compressed(
            writer.path / "test_windows.npz", **_test_windows(data, predict, offsets)
        )
        model.save(writer.path / "model.keras")
        writer.write_json("history.json", [to_dict(record) for record in result.epochs])
        learning_curves.draw_curves(
            result.epochs, result.best_epoch, ("loss", "mse"), writer.path / "curves.png"
        )
        forecast_pictures.draw_all(data, predict, offsets, test, baselines.results, writer.path)
        writer.write_text("report.md", forecasting_report.write_summary(metrics))
        writer.write_json("metrics.json", metrics)
        replicas.wait()
        return ForecastingRun.open(writer.publish())


def beats_seasonal_naive(validation: ForecastErrors, baselines: Baselines) -> bool:
    """Whether the network's squared error on the validation part is the lower one."""
    naive = next(floor for floor in baselines.results if floor.name == SEASONAL_NAIVE)
    return validation.mse < naive.validation.mse


def _train(
    data: ForecastingData,
    config: ForecastingConfig,
    replicas: Replicas,
    writer: TrainingRunWriter | None,
    console: Console,
) -> tuple[keras.Model, FitResult]:
    settings = config.training
    keras.utils.set_random_seed(settings.seed)
    train = WindowBatches(
        data.windows("train"),
        data.preprocessor,
        settings.batch_size,
        settings.seed,
        settings.train_stride,
    )
    validation = WindowBatches(data.windows("validation"), data.preprocessor, CHUNK)
    with replicas.scope():
        model = build_forecaster(config.model, data.shape, LEVELS)
        optimizer = keras.optimizers.Adam(learning_rate_schedule(settings, len(train)))
    if config.model.linear_skip:
        initialise_linear(model, ridge_of(data, data.shape.lookback).coefficients)
    signature = (
        tf.TensorSpec((None, data.shape.lookback, data.shape.channels), tf.float32),
        tf.TensorSpec((None, data.shape.horizon, len(data.shape.targets)), tf.float32),
    )
    loss = forecast_loss(config.model.loss, LEVELS)
    metrics = point_metrics(config.model.loss, LEVELS)
    eval_step = make_eval_step(model, loss, metrics, signature, replicas)
    train_step = make_train_step(
        model, optimizer, loss, metrics, signature, settings.clip_norm, replicas
    )
    checkpoint = None  # of several replicas each would have random numbers of its own to keep
    if writer is not None and replicas.count == 1:
        checkpoint = writer.checkpoint([*model.variables, *optimizer.variables], data.digest)
    with TrainingProgress(console, settings.epochs, len(train), "mse", ".4f") as progress:
        result = fit(
            model,
            train_step,
            eval_step,
            train,
            validation.in_order,
            epochs=settings.epochs,
            patience=settings.patience,
            score=lambda means: (-means["loss"],),
            learning_rate=lambda: float(optimizer.learning_rate),
            progress=progress,
            checkpoint=checkpoint,
        )
    return model, result


def _test_windows(data: ForecastingData, predict: Predictor, offsets: np.ndarray) -> dict[str, Any]:
    windows = data.windows("test")
    rows = evenly(len(windows), _STORED_WINDOWS)
    histories = windows.histories(rows)
    bounds = quantiles(predict(histories), offsets, LEVELS)
    restored = data.preprocessor.restore(bounds).numpy()
    return {
        "histories": histories,
        "origins": windows.origins[rows],
        "forecasts": restored[..., LEVELS.index(MEDIAN)],
        "quantiles": restored,
    }


def _description(data: ForecastingData) -> SeriesDescription:
    series = data.series
    return SeriesDescription(
        series.name,
        series.columns,
        data.target_columns,
        series.frequency,
        data.season,
        data.shape.lookback,
        data.shape.horizon,
        tuple(data.borders),
        str(series.times[0]),
        str(series.times[-1]),
        data.published,
    )


def _noting_unread(data: ForecastingData, config: ForecastingConfig) -> ForecastingData:
    """The data, with a note on the columns that no forecast depends on."""
    unread = [name for name in data.series.columns if name not in data.target_columns]
    if not config.model.channel_independent or not unread:
        return data
    note = (
        f"inputs that the network does not read: {', '.join(unread)}; "
        "--no-channel-independent reads them"
    )
    return replace(data, series=replace(data.series, notes=(*data.series.notes, note)))


def _describe(data: ForecastingData, console: Console) -> None:
    series, shape = data.series, data.shape
    console.print(
        f"data {series.name}: {len(series):,} rows every {series.frequency}, "
        f"{shape.channels} columns, {len(shape.targets)} of them forecast "
        f"{shape.horizon} steps ahead from {shape.lookback}",
        markup=False,
        highlight=False,
    )
    windows = ", ".join(f"{len(data.windows(part)):,} {part}" for part in PARTS)
    split = "published borders" if data.published else "split by time"
    console.print(f"windows: {windows} ({split})", markup=False, highlight=False)
    for note in series.notes:
        console.print(f"note: {note}", style="yellow", markup=False, highlight=False)


def _default_name(config: ForecastingConfig) -> str:
    source = config.data.data
    data = source.resolve().name.split(".")[0] if source else "co2"
    return f"forecasting-{data}-{datetime.now():%Y%m%d-%H%M%S}"
