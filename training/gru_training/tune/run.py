"""A search from its settings to its report; imports Optuna only when it begins."""

import shutil
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from gru_training.compare.command import flags
from gru_training.data.digest import data_digest
from gru_training.errors import ConfigError, InterruptedWork, RunDirectoryError, TrainingError
from gru_training.search_ranges import written
from gru_training.task import Searchable, find_task
from gru_training.tune.config import TuneConfig
from gru_training.tune.search_space import SearchSpace

if TYPE_CHECKING:
    from gru_training.tune.pick import Pick
    from gru_training.tune.report import FinalRun
    from gru_training.tune.study import Study
    from gru_training.tune.worker import Job


def search_space(config: TuneConfig, settings: Any, fixed: Collection[str]) -> SearchSpace:
    """What a search varies.

    Args:
        config: Of the search.
        settings: Of the training, to begin with.
        fixed: Names of settings to leave as they are.

    Raises:
        ConfigError: A range cannot be used, or nothing is left to search.
    """
    start = getattr(settings.training, "warm_start", None)
    if start is not None:
        raise ConfigError(
            f"--warm-start must be left out of a search, whose trials vary the network, got "
            f"{start}; search without it"
        )
    space = SearchSpace.of(settings, fixed)
    if config.only:
        space = replace(space, choices={})
    for text in config.vary:
        space = space.varying(text)
    if not space.choices:
        raise ConfigError("expected something to search, got a value for every setting")
    return space


def tune(
    config: TuneConfig, space: SearchSpace, data: Any, folder: Path, console: Console
) -> "Study":
    """Carry out a search.

    Args:
        config: Of the search.
        space: What to vary.
        data: As `check` of the task has read them.
        folder: Of the study, new or to go on with.
        console: Where to show progress.

    Raises:
        TrainingError: The data or the study cannot be used.
        KeyboardInterrupt: By the user.
    """
    from gru_training.tune.search import search
    from gru_training.tune.worker import Job

    task, new = find_task(config.task), not folder.exists()
    if not isinstance(task, Searchable):
        raise ConfigError(f"there is nothing to search for in the task {config.task}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirectoryError(f"cannot make the folder of the study: {error}") from error
    job = Job(config.task, space, data, task.criterion(space.config, data), folder, config.pruner)
    begun = job.open_study()
    defaults = space.defaults()
    going_on = begun.claim(
        _identity(job, space, data_digest(data.contents())),
        defaults if space.allows(defaults) else None,
    )
    console.print(
        f"{'going on with' if going_on else 'new'} study {folder}: {job.criterion.name} on the "
        "validation rows, of",
        markup=False,
        highlight=False,
    )
    width = max(map(len, space.choices))
    for name, choice in space.choices.items():
        console.print(
            f"  {name:{width}}  {choice} (default {written(defaults[name])})",
            markup=False,
            highlight=False,
        )
    if job.criterion.caution:
        console.print(f"note: {job.criterion.caution}", markup=False, highlight=False)
    try:
        study = search(job, config.seconds, config.trials, config.parallel, console)
    except KeyboardInterrupt:
        raise InterruptedWork(
            f"interrupted; the study is kept in {folder}, and the same command continues it"
        ) from None
    except TrainingError:
        if new and begun.best() is None:  # or these settings would keep others from the folder
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if study.best() is None:
        raise TrainingError(
            f"{folder}: expected at least one complete trial, got none; give more --minutes"
        )
    return study


def conclude(
    space: SearchSpace,
    study: "Study",
    picked: "Pick",
    folder: Path,
    finals: Sequence["FinalRun"],
    again: str,
    console: Console,
) -> None:
    """Write the report of a study and print what it says.

    Args:
        space: What was searched.
        study: Complete.
        picked: Whose settings were taken.
        folder: Of the study.
        finals: Runs with these settings.
        again: How to train with the settings of the best trial.
        console: Where to print.
    """
    from gru_training.tune.report import summary, write_report

    report = write_report(space, study, picked, folder, finals, again)
    console.print("")
    for line in summary(study, picked, finals):
        console.print(line, markup=False, highlight=False)
    console.print(f"study   {folder}", markup=False, highlight=False)
    console.print(f"report  {report}", markup=False, highlight=False)
    for each in finals:
        console.print(f"run     {each.path}", markup=False, highlight=False)
    if again and (picked.keeps_defaults or not finals):
        console.print(f"next    {again}", markup=False, highlight=False)


def _identity(job: "Job", space: SearchSpace, digest: str) -> dict[str, Any]:
    """What makes trials comparable: task, data, measure, and the settings that are not searched."""
    searched = {f"--{name.replace('_', '-')}" for name in space.choices}
    settings = {flag: value for flag, value in flags(space.config).items() if flag not in searched}
    choices = {name: str(choice) for name, choice in space.choices.items()}
    told = {"task": job.task, "data": digest, "measure": job.criterion.name, "choices": choices}
    return {**told, **settings}
