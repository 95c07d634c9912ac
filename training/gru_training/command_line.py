"""The commands of `gru-train`: training, resuming, and those that tasks add."""

import functools
import operator
import re
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import join, quote
from typing import Annotated, Any

import tyro
from rich.console import Console

from gru_training.check_command import CheckConfig, run_check
from gru_training.compare.command import COMPARE
from gru_training.continuing.config import ContinueConfig
from gru_training.ensemble.command import ENSEMBLE
from gru_training.errors import (
    CheckpointError,
    InterruptedRun,
    InterruptedWork,
    RunDirectoryError,
    TrainingError,
)
from gru_training.loop.checkpoint import existing_checkpoint, read_settings
from gru_training.predict.command import PREDICT
from gru_training.presets import preset_in
from gru_training.quiet import load_tensorflow
from gru_training.report_command import REPORT
from gru_training.resume_config import ResumeConfig
from gru_training.runs.directory import RunDirectory
from gru_training.runs.run_config import read_config
from gru_training.task import TASKS, Command, Task, find_task
from gru_training.termination import remembered_interrupts
from gru_training.tracking.package import require_package
from gru_training.tune.command import run_tune
from gru_training.tune.config import TuneConfig

INTERRUPTED = 130


def run_command(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status; see `gru_training.__main__`."""
    errors = Console(stderr=True, soft_wrap=True)
    tasks = {name: find_task(name) for name in TASKS}
    further = [
        PREDICT,
        COMPARE,
        ENSEMBLE,
        REPORT,
        *(command for task in tasks.values() for command in task.commands),
    ]
    try:
        config, others = _parse(arguments, tasks, further)
        with remembered_interrupts(signal.SIGINT, signal.SIGTERM):
            if isinstance(config, CheckConfig):
                return run_check(config, others, tasks, Console(soft_wrap=True))
            if isinstance(config, TuneConfig):
                run_tune(config, others, tasks, Console(soft_wrap=True))
                return 0
            return _run(config, tasks, further, arguments)
    except SystemExit as stop:  # tyro's --help and usage errors
        return int(stop.code or 0)
    except TrainingError as error:
        if "--debug" in arguments:
            raise
        errors.print(f"gru-train: error: {error}", markup=False, highlight=False)
        return error.exit_code
    except InterruptedRun as stop:
        errors.print(
            "gru-train: interrupted; no run was written. To continue it: gru-train resume "
            f"{quote(str(stop.run))}",
            markup=False,
            highlight=False,
        )
        return INTERRUPTED
    except InterruptedWork as stop:
        errors.print(f"gru-train: {stop.message}", markup=False, highlight=False)
        return INTERRUPTED
    except KeyboardInterrupt:
        errors.print("gru-train: interrupted; no run was written, and no checkpoint")
        return INTERRUPTED


def _parse(
    arguments: Sequence[str], tasks: dict[str, Task], further: Sequence[Command]
) -> tuple[Any, list[str]]:
    """The settings on the command line, as an instance of its command's class.

    The second value holds the arguments that `check` and `tune` pass on to a training.
    """
    commands: list[Any] = []
    for name, task in tasks.items():
        default = task.config_type()
        if arguments[:1] == [name]:
            default = preset_in(arguments, task.presets, default)
        commands.append(Annotated[task.config_type, tyro.conf.subcommand(name, default=default)])
    commands.append(Annotated[TuneConfig, tyro.conf.subcommand("tune")])
    commands.append(Annotated[CheckConfig, tyro.conf.subcommand("check")])
    commands.append(Annotated[ResumeConfig, tyro.conf.subcommand("resume")])
    commands.append(Annotated[ContinueConfig, tyro.conf.subcommand("continue")])
    for command in further:
        commands.append(Annotated[command.config_type, tyro.conf.subcommand(command.name)])
    options: dict[str, Any] = {
        "prog": "gru-train",
        "description": "Train a GRU on your data or on built-in data, and look at what it does.",
        "args": list(arguments),
        "config": (tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
    }
    command = functools.reduce(operator.or_, commands)
    if arguments[:1] in (["check"], ["tune"]):
        config, others = tyro.cli(command, return_unknown_args=True, **options)
        return config, others
    return tyro.cli(command, **options), []


def _run(
    config: Any, tasks: dict[str, Task], further: Sequence[Command], arguments: Sequence[str]
) -> int:
    """Run the command whose settings these are."""
    if isinstance(config, ResumeConfig):
        return _resume(config, tasks, arguments)
    if isinstance(config, ContinueConfig):
        return _continue(config, tasks, arguments)
    for name, task in tasks.items():
        if isinstance(config, task.config_type):
            return _train(name, task, config, arguments)
    command = next(each for each in further if isinstance(config, each.config_type))
    console = Console(soft_wrap=True)
    work = config if command.check is None else command.check(config, console)
    if command.needs_tensorflow:
        _load_tensorflow(console, config.debug)
    command.run(work, console)
    return 0


def _train(
    name: str, task: Task, config: Any, arguments: Sequence[str], resume: bool = False
) -> int:
    console = Console(soft_wrap=True)
    require_package(config.run)
    data = _checked(task, config, console)
    _load_tensorflow(console, config.run.debug)
    run = task.train(config, console, resume, data)
    if run is None:
        console.print("done; the first worker writes the run", highlight=False)
        return 0
    task.print_results(run.metrics, console)
    return _conclude(console, name, task, run, arguments)


def _checked(task: Task, config: Any, console: Console) -> Any:
    """The data, read and checked before TensorFlow is loaded, which takes seconds."""
    with console.status("checking the data ..."):
        found = task.check(config)
    if found is None:
        return None
    found.raise_errors()
    found.print_notes(console)
    return found.data


def _resume(config: ResumeConfig, tasks: dict[str, Task], arguments: Sequence[str]) -> int:
    path = existing_checkpoint(config.run_path)
    written = read_settings(path)
    if "given" in written:
        raise CheckpointError(
            f"{config.run_path} was started in Python, with data in memory; continue it there with "
            f"the estimator's resume({str(config.run_path)!r}, data)"
        )

    settings = read_config(written, {name: task.config_type for name, task in tasks.items()}, path)
    run = replace(settings.run, runs_dir=config.run_path.parent, name=config.run_path.name)
    settings = replace(settings, run=replace(run, debug=config.debug))
    return _train(written["task"], tasks[written["task"]], settings, arguments, resume=True)


def _continue(config: ContinueConfig, tasks: dict[str, Task], arguments: Sequence[str]) -> int:
    name = RunDirectory.open(config.run_path).task
    if name not in tasks:
        raise RunDirectoryError(
            f"{config.run_path}: expected a run of {' or '.join(tasks)}, got task {name!r}"
        )
    settings = tasks[name].continuation(tasks[name].open_run(config.run_path), config)
    return _train(name, tasks[name], settings, arguments)


def _load_tensorflow(console: Console, debug: bool) -> None:
    """Load it, which takes seconds, and say which one and on what it runs."""
    with console.status("loading TensorFlow ..."):
        kinds = load_tensorflow(messages=debug, programs=True)
    import keras
    import tensorflow as tf

    console.print(
        f"TensorFlow {tf.__version__}, Keras {keras.__version__}, on {' and '.join(kinds)}",
        highlight=False,
    )


def _conclude(console: Console, name: str, task: Task, run: Any, arguments: Sequence[str]) -> int:
    """Print what was made and what can come next; return the exit status."""
    lines = [""]
    if run.metrics["interrupted"]:
        lines += [f"interrupted; epoch {run.metrics['best_epoch']}, the best so far, is kept", ""]
    export = join(["gru-serve", "export", str(run.path), "--to", f"models/{_served(run, name)}"])
    verdict = task.verdict(run)
    steps = [f"next    {export}"]
    if verdict is not None:
        lines += [verdict.problem, ""]
        steps = [f"next    {export}  # though {verdict.problem.partition(':')[0]}"]
        if verdict.flags:
            again = join(_again(name, arguments, verdict.flags))
            steps = [f"next    {again}", f"or      {export}  # anyway"]
    lines += [f"run     {run.path}", f"report  {run.path / 'report.html'}", *steps]
    for line in lines:
        console.print(line, markup=False, highlight=False)
    return INTERRUPTED if run.metrics["interrupted"] else 0


def _served(run: Any, task: str) -> str:
    """A name for the model on a server: that of the user's data, or else of the task."""
    data = getattr(getattr(run.config, "data", None), "data", None)
    if data is None:
        return task
    return re.sub(r"[^\w-]+", "-", Path(data).resolve().name.split(".")[0]).strip("-") or task


def _again(name: str, arguments: Sequence[str], flags: Sequence[str]) -> list[str]:
    """The command of a training with further settings, and without the name that is taken now."""
    if arguments[:1] != [name]:  # resumed
        return ["gru-train", name, "...", *flags]
    kept: list[str] = []
    for argument in arguments:
        if kept and kept[-1] == "--name":
            del kept[-1]
        elif not argument.startswith("--name="):
            kept.append(argument)
    return ["gru-train", *kept, *flags]
