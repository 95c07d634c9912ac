"""From a series to a run directory: the forecasting pipeline."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import keras
import numpy as np
from rich.console import Console

from training.config import to_dict
from training.data.series import Series
from training.forecasting.baselines.simple import SEASONAL_NAIVE, Baselines, fit_baselines
from training.forecasting.combination.plan import Plan, make_plan
from training.forecasting.combination.refit import refit_combination
from training.forecasting.combination.share import Combination, Share, as_record
from training.forecasting.combination.training import train_plan
from training.forecasting.config import ForecastingConfig
from training.forecasting.data import ForecastingData, read_series
from training.forecasting.future.forecast import future_times, inputs_ahead
from training.forecasting.future.recent import FILE as LAST_WINDOW
from training.forecasting.future.recent import Recent, last_window
from training.forecasting.network.training import train_network
from training.forecasting.reports import pictures as forecast_pictures
from training.forecasting.reports import report as forecasting_report
from training.forecasting.reports.future_picture import draw_future, shown_columns
from training.forecasting.reports.known_picture import draw_known_inputs
from training.forecasting.reports.progress import show_data, show_plan, show_shares
from training.forecasting.run import DELIVERED, ForecastingRun
from training.forecasting.scores.conformal import quantiles
from training.forecasting.scores.evaluation import (
    calibrate,
    evaluate_forecasts,
    make_predictor,
    require_calibration,
)
from training.forecasting.scores.forecast_errors import ForecastErrors
from training.forecasting.scores.metrics import (
    data_summary,
    error_details,
    error_summary,
    interval_summary,
    quantile_summary,
)
from training.forecasting.scores.outcomes import stored_errors
from training.forecasting.stored import description, known_inputs, stored_windows
from training.loop.replicas import Replicas, make_replicas
from training.plots import learning_curves
from training.runs.summary import run_summary
from training.runs.writer import TrainingRunWriter, run_name
from training.tracking.tracked import Tracked
from training.tracking.tracker import TrackedData


def train_forecasting(
    config: ForecastingConfig,
    console: Console | None = None,
    resume: bool = False,
    series: Series | None = None,
    given: Mapping[str, Any] | None = None,
) -> ForecastingRun | None:
    """Train a forecaster and write its run directory.

    Seeds Python's, NumPy's and Keras' global random numbers. On one machine's CPU the same
    settings give the same weights; on a GPU, or on other processors, they may differ in the last
    digits, and training magnifies that.

    Args:
        config: Every setting.
        console: Where to show progress; none is shown by default.
        resume: Go on from the checkpoint of a run of this name that was cut short, if there is one.
        series: Of these settings where it has been read, and its notes shown.
        given: Of a series that no setting names, what `config.json` is to say of it.

    Returns:
        The run, complete on disk. After SIGINT it holds the best epoch until then and
        `metrics["interrupted"]` is true. Of several workers only the first writes it; for the
        others None.

    Raises:
        TrainingError: Settings, data or run directory cannot be used; no run is left behind.

    Killed at any moment, it leaves hidden files at most: a checkpoint, from which `resume` leads
    to the same weights, and what the next training of this name removes.
    """
    console = console or Console(quiet=True)
    started = time.perf_counter()
    replicas = make_replicas(config.training.distribute)
    if not replicas.writes:
        train_plan(_plan(series, config), replicas, None, Console(quiet=True))
        replicas.wait()
        return None
    with console.status("reading the data and fitting simple forecasters ..."):
        plan = _plan(series, config)
        data, config = _noting_unread(plan.data, plan.config), plan.config
        data = data.noting(require_calibration(data, config.model.levels))
    built_in = "co2" if given is None or series is None else series.name
    name = run_name(config, "forecasting", config.data.data or built_in)
    with (
        Tracked(config, "forecasting", console, resume) as tracked,
        TrainingRunWriter(config, "forecasting", name, resume, given) as writer,
    ):
        show_data(data, () if series is None else series.notes, console)
        show_plan(plan, console)
        with console.status("fitting the baselines ..."):
            baselines = fit_baselines(data.plain)
        followers = tracked.begin(writer.final, _tracked(data))
        trained = train_plan(plan, replicas, writer, console, followers)
        model, result, shares = trained.model, trained.result, trained.shares
        show_shares(shares, trained.criterion, console)
        delivered = _refit(plan, trained, console) if replicas.count == 1 else None
        levels = config.model.levels
        with console.status("testing ..."):
            predict = make_predictor(model, data)
            offsets = calibrate(predict, data.windows("validation"), data.series.panel, levels)
            validation, test = (
                evaluate_forecasts(predict, data.windows(part), offsets, data.preprocessor, levels)
                for part in ("validation", "test")
            )
        metrics: dict[str, Any] = {
            "task": "forecasting",
            "data": data_summary(data),
            "model": {
                "name": _model_name(config, shares),
                "parameters": model.count_params(),
                "validation": error_summary(validation.errors),
                "test": {**error_summary(test.errors), **error_details(test.errors, data.plain)},
            },
            "combination": as_record(plan, trained) if shares else None,
            "refit": None
            if delivered is None
            else {"rows": len(data.series), "epochs": result.best_epoch},
            "known_inputs": known_inputs(data),
            "intervals": interval_summary(test, data.plain),
            "quantiles": quantile_summary(test, levels, data.plain),
            "baselines": {
                floor.name: {
                    "detail": floor.detail,
                    "validation": error_summary(floor.validation),
                    "test": {**error_summary(floor.test), **error_details(floor.test, data.plain)},
                }
                for floor in baselines.results
            },
            "ridge_by_lookback": {
                str(lookback): {"validation": {"mse": errors[0]}, "test": {"mse": errors[1]}}
                for lookback, errors in baselines.ridge_by_lookback.items()
            },
            "beats_seasonal_naive": beats_seasonal_naive(
                validation.errors, baselines, config.model.measure
            ),
            "measure": config.model.measure,
            **run_summary(result, config.training.seed, started),
        }
        writer.write_json("series.json", to_dict(description(data)))
        if shares:
            writer.write_json("combination.json", as_record(plan, trained))
        data.preprocessor.save(writer.path / "scaler.json")
        kept = last_window(data)
        np.savez(
            writer.path / LAST_WINDOW,
            times=kept.times.asi8,
            values=kept.values,
            future=kept.future,
        )
        np.savez(writer.path / "calibration.npz", levels=np.array(levels), offsets=offsets)
        np.savez_compressed(
            writer.path / "test_windows.npz", **stored_windows(data, predict, offsets, levels)
        )
        np.savez_compressed(
            writer.path / "test_errors.npz", **stored_errors(data, test.errors, baselines.results)
        )
        writer.write_model(model, result)
        if delivered is not None:
            delivered.save(writer.path / DELIVERED)
        learning_curves.draw_curves(
            result.epochs, result.best_epoch, ("loss", "mse"), writer.path / "curves.png"
        )
        forecast_pictures.draw_all(
            data, predict, offsets, levels, test, baselines.results, writer.path
        )
        if data.preprocessor.known is not None:
            draw_known_inputs(data, writer.path / "known_inputs.png")
        draw_future(
            data,
            future_times(kept.times[-1], data.series.frequency, data.shape.horizon),
            _future(data, kept, delivered or model, offsets, levels),
            levels,
            shown_columns(test),
            writer.path / "future.png",
        )
        writer.write_text("report.md", forecasting_report.write_markdown(metrics))
        writer.write_json("metrics.json", metrics)
        replicas.wait()
        run = ForecastingRun.open(writer.publish())
        tracked.complete(run.path)
        return run


def _tracked(data: ForecastingData) -> TrackedData:
    parts = "train", "validation", "test"
    return TrackedData(
        data.series.name, data.digest, {part: len(data.windows(part)) for part in parts}
    )


def _plan(series: Series | None, config: ForecastingConfig) -> Plan:
    return make_plan(read_series(config.data) if series is None else series, config)


def _refit(plan: Plan, trained: Combination, console: Console) -> keras.Model | None:
    """The model to deliver, trained on all rows; None where the training was interrupted."""
    if not plan.config.combination.refit or trained.result.interrupted:
        return None
    epochs = trained.result.best_epoch
    rows = len(plan.data.series)
    console.print(
        f"training again on all {rows:,} rows, {epochs} epochs; 'val' is of rows learned from now",
        highlight=False,
    )
    data = plan.data.trained_on(rows)
    if plan.combines:
        weights = [share.weight for share in trained.shares]
        return refit_combination(replace(plan, data=data), weights, epochs, console)
    settings = replace(plan.config.training, epochs=epochs)
    everything = replace(plan.config, training=settings)
    model, result = train_network(data, everything, Replicas(), None, console, last_epoch=True)
    return None if result.interrupted else model


def _model_name(config: ForecastingConfig, shares: Collection[Share]) -> str:
    if shares:
        return "combination"
    return "GRU with linear skip" if config.model.linear_skip else "GRU"


def beats_seasonal_naive(
    validation: ForecastErrors, baselines: Baselines, measure: Literal["mse", "mae"]
) -> bool:
    """Whether the model's error on the validation part, by this measure, is the lower one."""
    naive = next(floor for floor in baselines.results if floor.name == SEASONAL_NAIVE)
    return bool(getattr(validation, measure) < getattr(naive.validation, measure))


def _future(
    data: ForecastingData,
    recent: Recent,
    model: keras.Model,
    offsets: np.ndarray,
    levels: Sequence[float],
) -> np.ndarray:
    """(H, K, Q): the quantiles of the steps after the series, in raw units.

    Where known inputs are not known of all of them, NaN after the last one.
    """
    history = recent.values[np.newaxis]
    answers = model(data.preprocessor.standardise(history), training=False)
    series, columns = data.series, data.preprocessor.future_columns
    names = [series.columns[column] for column in columns]
    parts = recent, names, series.calendar, series.frequency
    known, future = inputs_ahead(*parts, data.shape.horizon)
    effects = data.preprocessor.effects(history, future[np.newaxis])
    bounds = data.preprocessor.restore(quantiles(answers, offsets, levels), effects)[0].numpy()
    if effects is not None:
        bounds[known:] = np.nan
    return np.asarray(bounds)


def _noting_unread(data: ForecastingData, config: ForecastingConfig) -> ForecastingData:
    """The data, with a note on the columns that no forecast depends on."""
    read = {*data.target_columns, *config.data.future, *data.series.input_columns}
    read |= {*data.series.calendar.columns}
    unread = [name for name in data.series.columns if name not in read]
    if not config.model.channel_independent or not unread:
        return data
    note = (
        f"inputs that the network does not read: {', '.join(unread)}; "
        "--no-channel-independent reads them"
    )
    return data.noting((note,))
