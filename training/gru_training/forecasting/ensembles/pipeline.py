"""From runs of one series to their average, and to a forecaster that is distilled from it."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
from rich.console import Console

from gru_training.config import RunConfig
from gru_training.errors import ConfigError
from gru_training.forecasting.baselines.simple import fit_baselines
from gru_training.forecasting.combination.plan import Plan
from gru_training.forecasting.combination.share import Combination
from gru_training.forecasting.config import ForecastingConfig
from gru_training.forecasting.count_losses import COUNT_LOSSES
from gru_training.forecasting.ensembles.average import average_model, average_shares
from gru_training.forecasting.ensembles.members import plan_of, require_alike
from gru_training.forecasting.ensembles.teacher import Teacher
from gru_training.forecasting.pipeline import train_forecasting
from gru_training.forecasting.run import DELIVERED, ForecastingRun
from gru_training.forecasting.run_files import Forecaster, measured, write_run_files
from gru_training.runs.lineage import Lineage
from gru_training.runs.writer import TrainingRunWriter
from gru_training.task import EnsembleNames

_HOW = (
    "Its forecasts are the mean of those of the runs. Their networks stand side by side in it and "
    "their simple forecasters are added up; the intervals were calibrated anew on the validation "
    "windows, and what was trained on all rows was averaged likewise."
)
_DISTILLED = (
    "It has the settings of the first run. Its networks learned the mean of what came and of what "
    "the average forecasts for the training windows; weights and intervals are its own."
)


def average_runs(
    runs: Sequence[ForecastingRun], names: EnsembleNames, console: Console
) -> list[ForecastingRun]:
    """As of `gru_training.task.Task.average`."""
    require_alike(runs)
    loss = runs[0].config.model.loss
    if names.distilled is not None and loss in COUNT_LOSSES:
        raise ConfigError(f"--distil is not for --loss {loss}, which learns counts as they come")
    with console.status("reading the series and the runs ..."):
        plan = plan_of(runs[0])
        records = [run.combination or {} for run in runs]
        shape = plan.data.shape
        model = average_model([run.load_model() for run in runs], records, shape)
        refit = [run.path / DELIVERED for run in runs if (run.path / DELIVERED).is_file()]
        delivered = None
        if refit:
            delivered = average_model([run.delivered_model() for run in runs], records, shape)
    whole = _write_average(runs, plan, model, delivered, names, console)
    if names.distilled is None:
        return [whole]
    console.print("\ndistilling the average into one forecaster", highlight=False)
    lineage = _lineage(runs, _DISTILLED, whole)
    teacher = Teacher(model, delivered or model)
    settings = _placed(runs[0].config, whole.path.parent, names.distilled)
    plan = replace(plan, config=settings, teacher=teacher)
    made = train_forecasting(settings, console, plan=plan, lineage=lineage)
    return [whole] if made is None else [whole, made]


def _write_average(
    runs: Sequence[ForecastingRun],
    plan: Plan,
    model: keras.Model,
    delivered: keras.Model | None,
    names: EnsembleNames,
    console: Console,
) -> ForecastingRun:
    started = time.perf_counter()
    shares = average_shares([run.combination or {} for run in runs])
    combination = runs[0].config.combination
    networks = len(runs) * combination.networks
    config = replace(
        _placed(runs[0].config, names.runs_dir, names.average),
        combination=replace(combination, networks=networks),
    )
    with console.status("fitting the baselines ..."):
        baselines = fit_baselines(plan.data.plain)
    validation = {
        measure: float(np.mean([run.metrics["model"]["validation"][measure] for run in runs]))
        for measure in ("mse", "mae")
    }
    made = Forecaster(
        replace(plan, config=config),
        plan.data,
        config,
        Combination(model, None, tuple(shares), validation, plan.criterion),
        delivered,
        baselines,
        _lineage(runs, _HOW),
        round(float(np.mean([run.metrics["best_epoch"] for run in runs]))),
    )
    with TrainingRunWriter(config, "forecasting", names.average, resume=False) as writer:
        write_run_files(writer, made, started, console)
        return ForecastingRun.open(writer.publish())


def _lineage(
    runs: Sequence[ForecastingRun], how: str, average: ForecastingRun | None = None
) -> Lineage:
    return Lineage(
        tuple(run.path.name for run in runs),
        (1 / len(runs),) * len(runs),
        tuple(measured(run.metrics) for run in runs),
        how,
        None if average is None else measured(average.metrics),
    )


def _placed(config: ForecastingConfig, runs_dir: Path, name: str) -> ForecastingConfig:
    """The settings of a run that is made of others; nobody follows it."""
    return replace(config, run=RunConfig(runs_dir, name, config.run.debug))
