"""`gru-train tune`; imports nothing heavy before its arguments are checked."""

from dataclasses import replace
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any

from gru_training.command_settings import as_words, given_settings, task_settings
from gru_training.errors import ConfigError
from gru_training.task import (
    TASKS,
    Command,
    Task,
    find_task,
    read_data,
    start_tensorflow,
)
from gru_training.tune.config import TuneConfig

if TYPE_CHECKING:
    from rich.console import Console

    from gru_training.tune.report import FinalRun


def run_tune(config: TuneConfig, console: "Console") -> None:
    """Search, train with what did best, and write the report of the study.

    Args:
        config: Settings of the search, and flags of the training.
        console: Where to show progress.

    Raises:
        TrainingError: A setting, the data or the study cannot be used.
    """
    from gru_training.tune.run import conclude, search_space, tune

    if config.task not in TASKS:
        raise ConfigError(f"expected one of the tasks {', '.join(TASKS)}, got {config.task!r}")
    task, flags = find_task(config.task), config.training_flags
    settings = task_settings(task, flags, "gru-train tune TASK")
    settings = replace(settings, run=replace(settings.run, debug=config.debug))
    space = search_space(config, settings, given_settings(task, flags))
    data = read_data(task, settings, console)
    folder = config.study or settings.run.runs_dir / f"tune-{config.task}-{found_name(settings)}"
    study = tune(config, space, data, folder, console)
    from gru_training.tune.pick import pick

    picked = pick(study, space.defaults())
    if picked is None:
        return
    settings = space.with_values(picked.trial.settings)
    finals = _train_picked(config, task, settings, data, folder, console)
    own = [word for each in picked.best.settings.items() for word in as_words(task, *each)]
    again = join(["gru-train", config.task, *flags, *own])
    conclude(space, study, picked, folder, finals, again, console)


TUNE = Command("tune", TuneConfig, run_tune, needs_tensorflow=False, takes_training_flags=True)


def found_name(settings: Any) -> str:
    """What the data of these settings are called in the name of a folder."""
    data = getattr(settings.data, "data", None)
    return "built-in" if data is None else Path(data).resolve().name.split(".")[0]


def _train_picked(
    config: TuneConfig,
    task: Task,
    settings: Any,
    data: Any,
    folder: Path,
    console: "Console",
) -> list["FinalRun"]:
    """Runs with the settings that the search ends with, one for each seed."""
    from gru_training.tune.report import FinalRun

    if not config.seeds:
        return []
    start_tensorflow(console, config.debug)
    name = config.name or settings.run.name or f"{folder.name}-best"
    finals = []
    for number in range(config.seeds):
        seed = settings.training.seed + number
        of_seed = name if config.seeds == 1 else f"{name}-seed{seed}"
        console.print(f"\nfinal training {number + 1} of {config.seeds}, seed {seed}")
        chosen = replace(
            reseeded(settings, seed),
            run=replace(settings.run, name=_free(settings.run.runs_dir, of_seed)),
        )
        run = task.train(chosen, console, False, data)
        if run is None:
            continue
        task.show_results(run, console)
        finals.append(FinalRun.of(task, run, seed))
        if run.metrics["interrupted"]:
            break
    return finals


def reseeded(settings: Any, seed: int) -> Any:
    """Return the settings with another seed, and the same rows in each part of the data."""
    data = settings.data
    if hasattr(data, "drawn_with"):
        data = replace(data, split_seed=data.drawn_with(settings.training.seed))
    return replace(settings, data=data, training=replace(settings.training, seed=seed))


def _free(folder: Path, name: str) -> str:
    """The name, with a number at its end where such a run is there or was cut short."""
    from gru_training.loop.checkpoint import checkpoint_path

    taken, number = name, 1
    while (folder / taken).exists() or checkpoint_path(folder / taken).exists():
        number += 1
        taken = f"{name}-{number}"
    return taken
