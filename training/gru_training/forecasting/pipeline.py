"""From a series to a run directory: the forecasting pipeline."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import keras
from rich.console import Console

from gru_training.data.series import Series
from gru_training.forecasting.baselines.simple import fit_baselines
from gru_training.forecasting.combination.plan import Plan, make_plan
from gru_training.forecasting.combination.refit import refit_combination
from gru_training.forecasting.combination.share import Combination
from gru_training.forecasting.combination.training import train_plan
from gru_training.forecasting.config import ForecastingConfig
from gru_training.forecasting.data import ForecastingData, read_series
from gru_training.forecasting.network.training import train_network
from gru_training.forecasting.reports.progress import show_data, show_plan, show_shares
from gru_training.forecasting.run import ForecastingRun
from gru_training.forecasting.run_files import Forecaster, write_run_files
from gru_training.forecasting.scores.evaluation import require_calibration
from gru_training.forecasting.warm_start import initial_networks
from gru_training.loop.replicas import Replicas, make_replicas
from gru_training.runs.writer import TrainingRunWriter, run_name
from gru_training.tracking.tracked import Tracked
from gru_training.tracking.tracker import TrackedData


def train_forecasting(
    config: ForecastingConfig,
    console: Console | None = None,
    resume: bool = False,
    series: Series | None = None,
    given: Mapping[str, Any] | None = None,
    report_later: bool = False,
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
        report_later: Whether the report is written only by the run's `write_report`.

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
    started, asked = time.perf_counter(), config
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
        TrainingRunWriter(
            config, "forecasting", name, resume, given, asked, report_later
        ) as writer,
    ):
        show_data(data, () if series is None else series.notes, console)
        show_plan(plan, console)
        with console.status("fitting the baselines ..."):
            baselines = fit_baselines(data.plain)
        followers = tracked.begin(writer.final, _tracked(data))
        trained = train_plan(plan, replicas, writer, console, followers)
        show_shares(trained.shares, trained.criterion, console)
        delivered = _refit(plan, trained, console) if replicas.count == 1 else None
        write_run_files(
            writer,
            Forecaster(
                plan,
                data,
                config,
                trained,
                delivered,
                baselines,
            ),
            started,
            console,
        )
        replicas.wait()
        run = ForecastingRun.open(writer.publish(), writer.write_report if report_later else None)
        tracked.complete(run.path)
        return run


def _tracked(data: ForecastingData) -> TrackedData:
    parts = "train", "validation", "test"
    return TrackedData(
        data.series.name, data.digest, {part: len(data.windows(part)) for part in parts}
    )


def _plan(series: Series | None, config: ForecastingConfig) -> Plan:
    series = read_series(config.data) if series is None else series
    return make_plan(series, config, initial_networks(series, config))


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
        everything = replace(plan, data=data)
        return refit_combination(everything, weights, epochs, console, plan.initial)
    settings = replace(plan.config.training, epochs=epochs)
    model, result = train_network(
        data,
        replace(plan.config, training=settings),
        Replicas(),
        None,
        console,
        last_epoch=True,
        initial=plan.initial,
    )
    return None if result.interrupted else model


def _noting_unread(data: ForecastingData, config: ForecastingConfig) -> ForecastingData:
    """The data, with a note on the columns that no forecast depends on."""
    read = {*data.target_columns, *config.data.future, *data.series.input_columns}
    read |= {*data.series.calendar.columns}
    unread = [name for name in data.series.columns if name not in read]
    if not config.model.channel_independent or not unread:
        return data
    note = (
        f"inputs that the network does not read: {', '.join(unread)}; "
        "--set channel_independent=no reads them"
    )
    return data.noting((note,))
