"""Trainings from the command line: of a task, and resumed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from gru_training.errors import CheckpointError
from gru_training.task import TASKS, Command, Task, find_task, start_tensorflow
from gru_training.termination import INTERRUPTED

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class ResumeConfig:
    """Continue a training that was killed, with its original settings.

    It continues from its last checkpoint, at most half a minute of training before it was killed,
    and ends with the same weights as without the interruption. Data that have changed since are
    refused. Distributed trainings write no checkpoints.
    """

    run_path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """Directory that the run was to have, such as runs/NAME."""
    debug: bool = False
    """Show TensorFlow's messages, and the traceback of an error."""


def train(
    name: str,
    config: Any,
    console: "Console",
    flags: Sequence[str] | None = None,
    resume: bool = False,
) -> int:
    """Check the data, train, and print what was made and what can come next.

    Args:
        name: Name of the task.
        config: Settings of the training.
        console: Where to print.
        flags: Flags from which the settings were read; None where a run gave them.
        resume: Whether to go on from a checkpoint.

    Returns:
        The exit status.
    """
    from gru_training.tracking.package import require_package

    task = find_task(name)
    require_package(config.run)
    data = _checked(task, config, console)
    start_tensorflow(console, config.run.debug)
    run = task.train(config, console, resume, data)
    if run is None:
        console.print("done; the first worker writes the run", highlight=False)
        return 0
    task.print_results(run.metrics, console)
    return _conclude(console, name, task, run, flags)


def _checked(task: Task, config: Any, console: "Console") -> Any:
    """The data, read and checked before TensorFlow is loaded, which takes seconds."""
    with console.status("checking the data ..."):
        found = task.check(config)
    if found is None:
        return None
    found.raise_errors()
    found.print_notes(console)
    return found.data


def _resume(config: ResumeConfig, console: "Console") -> int:
    from gru_training.loop.checkpoint import existing_checkpoint, read_settings
    from gru_training.runs.run_config import read_config

    path = existing_checkpoint(config.run_path)
    written = read_settings(path)
    if "given" in written:
        raise CheckpointError(
            f"{config.run_path} was started in Python, with data in memory; continue it there with "
            f"the estimator's resume({str(config.run_path)!r}, data)"
        )

    settings = read_config(written, {name: find_task(name).config_type for name in TASKS}, path)
    run = replace(settings.run, runs_dir=config.run_path.parent, name=config.run_path.name)
    settings = replace(settings, run=replace(run, debug=config.debug))
    return train(written["task"], settings, console, resume=True)


RESUME = Command("resume", ResumeConfig, _resume, needs_tensorflow=False)


def _conclude(
    console: "Console", name: str, task: Task, run: Any, flags: Sequence[str] | None
) -> int:
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
            again = join(_again(name, flags, verdict.flags))
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


def _again(name: str, flags: Sequence[str] | None, further: Sequence[str]) -> list[str]:
    """The command of a training with further settings, and without the name that is taken now."""
    if flags is None:
        return ["gru-train", name, "...", *further]
    kept: list[str] = []
    for flag in flags:
        if kept and kept[-1] == "--name":
            del kept[-1]
        elif not flag.startswith("--name="):
            kept.append(flag)
    return ["gru-train", name, *kept, *further]
