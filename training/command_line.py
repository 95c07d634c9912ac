"""The commands of `gru-train`: to train, to resume, and what the tasks add."""

import functools
import operator
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from shlex import quote
from tempfile import TemporaryFile
from typing import Annotated, Any

import tyro
from rich.console import Console

from training.errors import InterruptedRun, TrainingError
from training.loop.checkpoint import existing_checkpoint, read_settings
from training.presets import preset_in
from training.resume_config import ResumeConfig
from training.task import TASKS, Command, Task, find_task
from training.termination import sigterm_interrupts

INTERRUPTED = 130


def run_command(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status; see `training.__main__`."""
    errors = Console(stderr=True, soft_wrap=True)
    tasks = {name: find_task(name) for name in TASKS}
    further = [command for task in tasks.values() for command in task.commands]
    try:
        config = _parse(arguments, tasks, further)
        with sigterm_interrupts():
            return _run(config, tasks, further)
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
    except KeyboardInterrupt:
        errors.print("gru-train: interrupted; no run was written, and no checkpoint")
        return INTERRUPTED


def _parse(arguments: Sequence[str], tasks: dict[str, Task], further: Sequence[Command]) -> Any:
    """The settings that the command line asks for, of the class of its command."""
    commands: list[Any] = []
    for name, task in tasks.items():
        default = task.config_type()
        if arguments[:1] == [name]:
            default = preset_in(arguments, task.presets, default)
        commands.append(Annotated[task.config_type, tyro.conf.subcommand(name, default=default)])
    commands.append(Annotated[ResumeConfig, tyro.conf.subcommand("resume")])
    for command in further:
        commands.append(Annotated[command.config_type, tyro.conf.subcommand(command.name)])
    return tyro.cli(
        functools.reduce(operator.or_, commands),
        prog="gru-train",
        description="Train a GRU on your data or on built-in data, and look at what it does.",
        args=list(arguments),
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
    )


def _run(config: Any, tasks: dict[str, Task], further: Sequence[Command]) -> int:
    """Run the command whose settings these are."""
    if isinstance(config, ResumeConfig):
        return _resume(config, tasks)
    for name, task in tasks.items():
        if isinstance(config, task.config_type):
            return _train(name, task, config)
    command = next(each for each in further if isinstance(config, each.config_type))
    console = Console(soft_wrap=True)
    _load_tensorflow(console, config.debug)
    command.run(config, console)
    return 0


def _train(name: str, task: Task, config: Any, resume: bool = False) -> int:
    console = Console(soft_wrap=True)
    _load_tensorflow(console, config.run.debug)
    run = task.train(config, console, resume)
    if run is None:
        console.print("done; the first worker writes the run", highlight=False)
        return 0
    task.print_results(run.metrics, console)
    return _conclude(console, run, f"models/{name}")


def _resume(config: ResumeConfig, tasks: dict[str, Task]) -> int:
    path = existing_checkpoint(config.run_path)
    written = read_settings(path)
    with _quiet(not config.debug):
        from training.runs.directory import read_config

    settings = read_config(written, {name: task.config_type for name, task in tasks.items()}, path)
    run = replace(settings.run, runs_dir=config.run_path.parent, name=config.run_path.name)
    settings = replace(settings, run=replace(run, debug=config.debug))
    return _train(written["task"], tasks[written["task"]], settings, resume=True)


def _load_tensorflow(console: Console, debug: bool) -> None:
    """Load it, which takes seconds, and say which one and on what it runs."""
    with console.status("loading TensorFlow ..."), _quiet(not debug):
        import keras
        import tensorflow as tf

        devices = tf.config.list_physical_devices()
    kinds = sorted({device.device_type for device in devices})
    console.print(
        f"TensorFlow {tf.__version__}, Keras {keras.__version__}, on {' and '.join(kinds)}",
        highlight=False,
    )


def _conclude(console: Console, run: Any, served: str) -> int:
    """Say what is left and what comes next; return the exit status."""
    if run.metrics["interrupted"]:
        console.print(
            f"\ninterrupted; epoch {run.metrics['best_epoch']}, the best so far, is kept",
            highlight=False,
        )
    console.print(f"\nrun     {run.path}", markup=False, highlight=False)
    console.print(f"report  {run.path / 'report.md'}", markup=False, highlight=False)
    console.print(
        f"next    gru-serve export {quote(str(run.path))} --to {served}",
        markup=False,
        highlight=False,
    )
    return INTERRUPTED if run.metrics["interrupted"] else 0


@contextmanager
def _quiet(active: bool) -> Iterator[None]:
    """Hold back what TensorFlow's C++ parts write to stderr while loading; shown on failure."""
    if not active:
        yield
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.stderr.flush()
    kept = os.dup(2)
    with TemporaryFile() as messages:
        os.dup2(messages.fileno(), 2)
        try:
            yield
        except Exception:
            messages.seek(0)
            os.write(kept, messages.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)
