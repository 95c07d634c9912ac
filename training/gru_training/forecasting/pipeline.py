"""The forecasting pipeline, which turns a series into a run directory.

It reads, splits and prepares (`make_plan`), fits, calibrates, evaluates and writes. A training may
begin with `InitialWeights`, and learns the series of its settings or of the caller.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import keras
import numpy as np
from rich.console import Console

from gru_serving.preprocessing.series import MEDIAN
from gru_training import plots
from gru_training.config import to_dict
from gru_training.criterion import PARTS as JUDGED_PARTS
from gru_training.criterion import Judged, judged
from gru_training.data.problems import counted
from gru_training.data.series import Series
from gru_training.data.time_axis import rows_at
from gru_training.forecasting.combination import (
    MakeCheckpoint,
    Trained,
    as_record,
    continued_epochs,
    refit,
    train_plan,
    validation_errors,
)
from gru_training.forecasting.config import ROUNDING_ERRORS, ForecastingConfig
from gru_training.forecasting.data import ForecastingData, read_series
from gru_training.forecasting.evaluation import (
    Evaluation,
    calibrate,
    data_summary,
    error_details,
    error_summary,
    evaluate_forecasts,
    interval_summary,
    quantile_summary,
    require_calibration,
)
from gru_training.forecasting.future import (
    future_times,
    last_window,
    quantiles_ahead,
    write_recent,
)
from gru_training.forecasting.graph import write_graph
from gru_training.forecasting.intervals import quantiles
from gru_training.forecasting.linear import SEASONAL_NAIVE
from gru_training.forecasting.network import sequence_of
from gru_training.forecasting.outcomes import stored_errors
from gru_training.forecasting.pictures import draw_all, draw_future, shown_columns
from gru_training.forecasting.plan import InitialWeights, Plan, independent_windows, make_plan
from gru_training.forecasting.preprocessor import Predictor, make_predictor
from gru_training.forecasting.report import write_markdown
from gru_training.forecasting.run import (
    DELIVERED,
    ForecastingRun,
    description,
    evenly,
    given_ahead,
    known_inputs,
)
from gru_training.forecasting.sets import PARTS
from gru_training.forecasting.simple import Baselines, fit_baselines
from gru_training.forecasting.warm_start import initial_weights
from gru_training.loop.checkpoint import EpochRecord
from gru_training.loop.fit import EpochFollower
from gru_training.loop.workers import Workers, join_workers
from gru_training.runs.writer import TrainingRunWriter, run_name, run_summary
from gru_training.tracking.tracked_training import Tracked
from gru_training.tracking.tracker import TrackedData

_FEWEST, _MOST, _MOST_VALUES = 64, 512, 4_000_000
"""Greatest number of test windows that a run stores, and of values in them."""


def train_forecasting(
    config: ForecastingConfig,
    console: Console | None = None,
    resume: bool = False,
    series: Series | None = None,
    given: Mapping[str, Any] | None = None,
    report_later: bool = False,
) -> ForecastingRun | None:
    """Train a forecaster and write its run directory.

    `gru_training.task.Task.train` says what it seeds, and what is left where it is broken off.

    Args:
        config: Settings of the training.
        console: Console that shows progress; none by default.
        resume: Whether to go on from the checkpoint of a broken run of this name, if there is one.
        series: Series of these settings where it has been read, and its notes shown.
        given: Description, for `config.json`, of a series that no setting names.
        report_later: Whether the report is written only by the run's `write_report`.

    Returns:
        Complete run; None for all workers but the first.

    Raises:
        TrainingError: Settings, data or run directory cannot be used; no run is left behind.
    """
    started, workers = time.perf_counter(), join_workers()
    console = console if console is not None and workers.first else Console(quiet=True)
    shown = () if series is None else series.notes
    with console.status("reading the data and fitting simple forecasters ..."):
        series = read_series(config.data) if series is None else series
        plan = make_plan(series, initial_weights(series, config))
    plan = replace(plan, data=_noted(plan))
    if not workers.first:
        _trained(plan, console, workers)
        return None
    data, name = plan.data, run_name(plan.config, "forecasting", config.data.data or series.name)
    with (
        Tracked(plan.config, "forecasting", console, resume) as tracked,
        TrainingRunWriter(
            plan.config, "forecasting", name, resume, given, config, report_later
        ) as writer,
    ):
        _show_plan(plan, shown, console)
        with console.status("fitting the baselines ..."):
            baselines = fit_baselines(data.plain)
        followers = tracked.begin(writer.final, _tracked(data))
        checkpoint = partial(writer.checkpoint, data=data.digest)
        trained, delivered = _trained(plan, console, workers, checkpoint, followers)
        with console.status("testing ..."):
            measured = _measure(plan, trained.model)
        metrics = _metrics(plan, trained, delivered, baselines, measured)
        metrics |= run_summary(trained.result, plan.config.training.seed, started)
        _write(writer, plan, trained, delivered, baselines, measured, metrics)
        run = ForecastingRun.open(writer.publish(), writer.write_report if report_later else None)
        tracked.complete(run.path)
        return run


def try_settings(
    config: ForecastingConfig,
    series: Series,
    measure: str,
    after_epoch: Callable[[int, float], None],
) -> Judged:
    """Mean squared or absolute error on the validation windows; test windows are not read.

    Args:
        config: Settings of the training.
        series: Series to learn.
        measure: "mse" or "mae".
        after_epoch: Function of the number of each epoch and the error of the networks after it;
            may end the trial by an error.

    Raises:
        TrainingError: These settings cannot be used.
    """
    plan = make_plan(series, InitialWeights(config))

    def follow(record: EpochRecord) -> None:
        after_epoch(record.epoch, record.validation[measure])

    trained = train_plan(plan, Console(quiet=True), followers=(follow,))
    errors = validation_errors(plan, trained.model)
    losses = np.abs(errors) if measure == "mae" else np.square(errors)
    parts = min(JUDGED_PARTS, int(independent_windows(plan.data)))  # neighbours overlap
    return judged(lambda kept: float(losses[kept].mean()), len(losses), parts)


@dataclass(frozen=True)
class _Measured:
    """A forecaster with the offsets of its quantiles and its errors on held-out windows."""

    predict: Predictor
    offsets: np.ndarray
    """Offsets of the quantiles, (H, K, Q)."""
    validation: Evaluation
    test: Evaluation


def _noted(plan: Plan) -> ForecastingData:
    """Add notes on columns that no forecast depends on and on rough intervals to the data.

    Raises:
        DataError: The validation part cannot calibrate some step of some column.
    """
    data, config = plan.data, plan.config
    read = {*data.target_columns, *config.data.future, *data.series.input_columns}
    read |= {*data.series.calendar.columns}
    unread = [name for name in data.series.columns if name not in read]
    if config.model.channel_independent and unread:
        note = (
            f"inputs that the network does not read: {', '.join(unread)}; "
            "--set channel_independent=no reads them"
        )
        data = data.noting((note,))
    return data.noting(require_calibration(data, config.model.levels))


def _tracked(data: ForecastingData) -> TrackedData:
    windows = {part: len(data.windows(part)) for part in PARTS}
    return TrackedData(data.series.name, data.digest, windows)


def _trained(
    plan: Plan,
    console: Console,
    workers: Workers,
    checkpoint: MakeCheckpoint | None = None,
    followers: Sequence[EpochFollower] = (),
) -> tuple[Trained, keras.Model | None]:
    """Train the model to measure, and the one to deliver if it is another."""
    workers.require_same(plan.config, plan.data.digest)
    trained = train_plan(plan, console, workers, checkpoint, followers)
    _show_shares(trained, console)
    refits = plan.config.combination.refit
    delivered = _on_all_rows(plan, trained, console, workers) if refits else None
    workers.finish()
    return trained, delivered


def _on_all_rows(
    plan: Plan, trained: Trained, console: Console, workers: Workers
) -> keras.Model | None:
    """Train the model further, on all rows, to deliver it; None if a training was interrupted."""
    if trained.result.interrupted:
        return None
    rows, epochs = len(plan.data.series), continued_epochs(trained.result.best_epoch)
    console.print(
        f"final fit on all {rows:,} rows, {counted(epochs, 'epoch')}; ignore 'val', which "
        "these rows are in"
    )
    everything = replace(plan, data=plan.data.trained_on(rows))
    weights, _ = workers.agreed(trained.weights, ())
    return refit(everything, weights, epochs, console, trained.model, workers)


def _measure(plan: Plan, model: keras.Model) -> _Measured:
    """Calibrate a model on the validation windows, and test it."""
    data, levels = plan.data, plan.config.model.levels
    predict = make_predictor(model, data.preprocessor)
    windows = data.windows("validation")
    offsets = calibrate(predict, windows, data.series.panel, levels, plan.earlier)
    validation, test = (
        evaluate_forecasts(predict, data.windows(part), offsets, data.preprocessor, levels)
        for part in ("validation", "test")
    )
    return _Measured(predict, offsets, validation, test)


def _metrics(
    plan: Plan,
    trained: Trained,
    delivered: keras.Model | None,
    baselines: Baselines,
    measured: _Measured,
) -> dict[str, Any]:
    """Collect the figures of `metrics.json`, except for the course of the training."""
    data, config, plain = plan.data, plan.config, plan.data.plain
    validation, test, measure = measured.validation, measured.test, config.model.measure
    naive = next(floor for floor in baselines.results if floor.name == SEASONAL_NAIVE)
    again = {"rows": len(data.series), "epochs": continued_epochs(trained.result.best_epoch)}
    return {
        "task": "forecasting",
        "data": data_summary(data),
        "model": {
            "name": _model_name(plan),
            "parameters": trained.model.count_params(),
            "validation": error_summary(validation.errors),
            "test": {**error_summary(test.errors), **error_details(test.errors, plain)},
        },
        "combination": as_record(plan, trained) if plan.combines else None,
        "refit": None if delivered is None else again,
        "known_inputs": known_inputs(data),
        "intervals": interval_summary(test, plain),
        "quantiles": quantile_summary(test, config.model.levels, plain),
        "baselines": {
            floor.name: {
                "detail": floor.detail,
                "validation": error_summary(floor.validation),
                "test": {**error_summary(floor.test), **error_details(floor.test, plain)},
            }
            for floor in baselines.results
        },
        "ridge_by_lookback": {
            str(lookback): {"validation": {"mse": errors[0]}, "test": {"mse": errors[1]}}
            for lookback, errors in baselines.ridge_by_lookback.items()
        },
        "beats_seasonal_naive": bool(
            getattr(validation.errors, measure)
            < max(getattr(naive.validation, measure), ROUNDING_ERRORS[measure])
        ),
        "measure": measure,
        **plan.initial.record,
    }


def _model_name(plan: Plan) -> str:
    if plan.combines:
        deliver = plan.config.combination.deliver
        return deliver if deliver == "combination" else f"{deliver}, delivered"
    return "GRU with linear skip" if plan.config.model.linear_skip else "GRU"


def _write(
    writer: TrainingRunWriter,
    plan: Plan,
    trained: Trained,
    delivered: keras.Model | None,
    baselines: Baselines,
    measured: _Measured,
    metrics: Mapping[str, Any],
) -> None:
    """Write the files of a run: model, scale, intervals, figures, pictures, report."""
    data, levels, result = plan.data, plan.config.model.levels, trained.result
    place, kept = writer.path, last_window(data, plan.config.model)
    predict, offsets = measured.predict, measured.offsets
    floors = baselines.results
    writer.write_json("series.json", to_dict(description(data)))
    if plan.combines:
        writer.write_json("combination.json", as_record(plan, trained))
    data.preprocessor.save(place / "scaler.json")
    write_recent(kept, place)
    np.savez(place / "calibration.npz", levels=np.array(levels), offsets=offsets)
    windows = _stored_windows(data, predict, offsets, levels)
    np.savez_compressed(place / "test_windows.npz", **windows)
    errors = stored_errors(data, measured.test.errors, floors)
    np.savez_compressed(place / "test_errors.npz", **errors)
    writer.write_model(trained.model, result)
    if delivered is not None:
        delivered.save(place / DELIVERED)
    model = delivered or trained.model
    sequence = sequence_of((model, data.shape), plan.config.model)
    predict = make_predictor(model, data.preprocessor, sequence)
    writer.write_json("metrics.json", metrics)
    write_graph(writer, model, predict)

    def report() -> None:
        folder, curves = writer.path, ("loss", "mse")
        plots.draw_curves(result.epochs, result.best_epoch, curves, folder / "curves.png")
        draw_all(data, measured.predict, offsets, levels, measured.test, floors, folder)
        series, columns = data.series, shown_columns(measured.test)
        parts = kept, series.columns, series.calendar, series.frequency, offsets, levels
        known, ahead = quantiles_ahead(predict, data.preprocessor, *parts)
        times = future_times(kept.times[-1], series.frequency, data.shape.horizon)
        if known:
            draw_future(data, times, ahead, levels, columns, folder / "future.png")
        writer.write_text("report.md", write_markdown(metrics, known > 0))

    writer.report(report)


def _stored_windows(
    data: ForecastingData, predict: Predictor, offsets: np.ndarray, levels: Sequence[float]
) -> dict[str, Any]:
    """Choose evenly spread test windows with their forecasts; see `gru_training.forecasting.run`.

    There are as many as lie a horizon apart, or more if those would be few.
    """
    windows = data.windows("test")
    room = _MOST_VALUES // (windows.lookback * windows.values.shape[1])
    apart = len(windows) // windows.horizon
    rows = evenly(len(windows), max(_FEWEST, min(_MOST, room, apart)))
    histories = windows.histories(rows)
    answers = [predict(windows.histories(piece)) for piece in windows.pieces(rows)]
    bounds = quantiles(np.concatenate(answers), offsets, levels)
    restored = data.preprocessor.restore(bounds, windows.effects_ahead(rows)).numpy()
    last = data.series.index[windows.origins[rows] - 1]
    utc = "" if data.series.calendar.timezone is None else "Z"
    ahead = windows.origins[rows][:, np.newaxis] + np.arange(windows.horizon)
    return {
        "histories": histories,
        "futures": data.raw[ahead][..., given_ahead(data)],
        "origins": windows.origins[rows],
        "times": np.array([f"{time}{utc}" for time in last]),
        "forecasts": restored[..., list(levels).index(MEDIAN)],
        "quantiles": restored,
    }


def _show_plan(plan: Plan, shown: Sequence[str], console: Console) -> None:
    """Print the training data and the choices made, without notes that were shown already."""
    data, settings = plan.data, plan.config.data
    series, shape = data.series, data.shape
    windows = ", ".join(f"{len(data.windows(part)):,} {part}" for part in PARTS)
    lines = [
        f"data {series.name}: {rows_at(series.frequency, len(series))}, "
        f"{shape.channels} columns, {len(shape.targets)} of them forecast "
        f"{shape.horizon} steps ahead from {shape.lookback}",
        f"windows: {windows} ({'published borders' if data.published else 'split by time'})",
    ]
    for line in lines:
        console.print(line)
    for note in series.notes:
        if note not in shown:
            console.print(f"note: {note}", style="yellow")
    if not plan.combines:
        return
    if len(plan.transforms) > 1:
        tried = ", ".join(f"{name} {error:.4f}" for name, error in plan.transforms)
        console.print(
            f"transform: {settings.transform} ({plan.criterion} of the simple forecasters on the "
            f"validation windows: {tried})"
        )
    segments = f", in segments of {plan.config.model.segment}"
    console.print(
        f"look-back: {settings.lookback} steps; the networks read {plan.network_lookback}"
        f"{segments if plan.config.model.architecture == 'segment' else ''}"
    )


def _show_shares(trained: Trained, console: Console) -> None:
    """Print the validation error of each part by the loss of the weights, and its weight."""
    if not trained.shares:
        return
    width = max(len(share.name) for share in trained.shares)
    console.print(
        f"\n{'part':{width}}  weight  {trained.criterion}, validation", style="bold", soft_wrap=True
    )
    for share in sorted(trained.shares, key=lambda share: share.validation_loss):
        weight = f"{share.weight:.2f}" if share.weight else "-"
        console.print(
            f"{share.name:{width}}  {weight:>6}  {share.validation_loss:.4f}  {share.detail}",
            soft_wrap=True,
        )
