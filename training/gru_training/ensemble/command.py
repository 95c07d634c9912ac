"""`gru-train ensemble`; imports nothing heavy before its arguments are checked."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any

from gru_training.compare.command import ordered
from gru_training.config import to_dict
from gru_training.ensemble.config import EnsembleConfig
from gru_training.errors import InterruptedWork, RunDirectoryError
from gru_training.loop.checkpoint import checkpoint_path
from gru_training.runs.lineage_table import gain_sentence
from gru_training.task import Command, EnsembleNames, Task, find_task

if TYPE_CHECKING:
    from rich.console import Console

    from gru_training.runs.directory import RunDirectory, TaskRun


def check_ensemble(config: EnsembleConfig, _: "Console") -> EnsembleConfig:
    """Raise TrainingError if runs or names cannot be used; needs no TensorFlow."""
    runs = _opened(config.run_paths)
    names = ensemble_names(config)
    for name in (names.average, names.distilled):
        if name is not None and (names.runs_dir / name).exists():
            raise RunDirectoryError(
                f"{names.runs_dir / name} exists already; choose another --name or remove it"
            )
    if config.seeds is not None and runs[0].given is not None:
        raise RunDirectoryError(
            f"{runs[0].path}: --seeds needs a run whose data can be read again, got one that was "
            "trained in Python on data in memory"
        )
    return config


def run_ensemble(config: EnsembleConfig, console: "Console") -> None:
    """Train what is missing, average, distil if asked, and print what came of it."""
    task = find_task(_opened(config.run_paths)[0].task)
    names = ensemble_names(config)
    with _without_warnings(config.debug):
        made = _made(task, config, names, console)
    for run in made:
        console.print(f"\n{run.path.name}", style="bold", markup=False)
        task.print_results(run.metrics, console)
        console.print(gain_sentence(run.metrics), highlight=False)
    console.print("")
    for run in made:
        console.print(f"run     {run.path}", markup=False, highlight=False)
        console.print(f"report  {run.path / 'report.html'}", markup=False, highlight=False)
    export = join(["gru-serve", "export", str(made[-1].path), "--to", f"models/{made[-1].task}"])
    console.print(f"next    {export}", markup=False, highlight=False)


def _made(
    task: Task, config: EnsembleConfig, names: EnsembleNames, console: "Console"
) -> "Sequence[TaskRun]":
    """The average, and the distilled run behind it if one is wanted."""
    runs = [task.open_run(path) for path in ordered(config.run_paths, None)]
    if config.seeds is not None:
        runs += _of_further_seeds(task, runs[0], config.seeds, console)
    try:
        return task.average(runs, names, console)
    except KeyboardInterrupt:
        if (names.runs_dir / names.average).exists():
            raise InterruptedWork(
                f"interrupted; the average is there, {names.runs_dir / names.average}, but no "
                "distilled run was written"
            ) from None
        raise


@contextmanager
def _without_warnings(debug: bool) -> Iterator[None]:
    """Without TensorFlow's that functions are traced again, as those of each training are."""
    logger = logging.getLogger("tensorflow")
    level = logger.level
    if not debug:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


ENSEMBLE = Command("ensemble", EnsembleConfig, run_ensemble, check_ensemble)


def ensemble_names(config: EnsembleConfig) -> EnsembleNames:
    """Where the runs are written."""
    first = config.run_paths[0].resolve()
    name = config.name or f"{first.name}-ensemble"
    distilled = f"{name}-distilled" if config.distil else None
    return EnsembleNames(config.runs_dir or config.run_paths[0].parent, name, distilled)


def _opened(paths: Sequence[Path]) -> "list[RunDirectory]":
    """The runs, of one task.

    Raises:
        TrainingError: A path is given twice, is no run, or is of another task than the first.
    """
    from gru_training.runs.directory import RunDirectory

    runs = [RunDirectory.open(path) for path in ordered(paths, None)]
    for run in runs[1:]:
        if run.task != runs[0].task:
            raise RunDirectoryError(
                f"{run.path}: expected a {runs[0].task} run as {runs[0].path}, got one of the task "
                f"{run.task!r}"
            )
    return runs


def _of_further_seeds(task: Task, first: Any, count: int, console: "Console") -> "list[TaskRun]":
    """Runs with the settings of the first one and the next seeds, beside it.

    Those that are there already are taken, and those that were cut short go on.

    Raises:
        RunDirectoryError: What is there under the name of such a run has other settings.
        InterruptedWork: By the user; what was trained is kept.
    """
    folder, found = first.path.parent, list["TaskRun"]()
    for seed in range(first.config.training.seed + 1, first.config.training.seed + count):
        settings = task.reseeded(first.config, seed)
        path = folder / f"{first.path.name}-seed{seed}"
        settings = replace(settings, run=replace(settings.run, runs_dir=folder, name=path.name))
        if path.exists():
            found.append(_with_settings(task.open_run(path), settings))
            continue
        console.print(f"training {path.name}, of {count} runs", highlight=False)
        try:
            run = task.train_like(first, settings, console, checkpoint_path(path).exists())
        except KeyboardInterrupt:
            raise InterruptedWork(
                "interrupted; the runs that were trained are kept, and the same command goes on"
            ) from None
        if run is None:
            raise RunDirectoryError(f"{path}: expected a run, got none in this process")
        if run.metrics["interrupted"]:
            raise InterruptedWork(
                f"interrupted; {path} holds its best epoch so far; remove it, and the same command "
                "goes on"
            )
        found.append(run)
    return found


def _with_settings(run: "TaskRun", settings: Any) -> "TaskRun":
    """The run, which must have these settings but for its place."""
    if run.metrics["interrupted"]:
        raise RunDirectoryError(
            f"{run.path} was interrupted; remove it to train it anew, or name the runs to average"
        )
    expected, got = to_dict(settings), to_dict(run.config)
    expected.pop("run")
    got.pop("run")
    if expected != got:
        raise RunDirectoryError(
            f"{run.path} exists already with other settings than --seeds would train it with; "
            "rename or remove it"
        )
    return run
