"""What a task is, and the one list of them.

A task is a folder: `training/<name>/` with a module `task.py` that holds it as `TASK`. The
command line, `resume` and the export ask it through `Task` and know no task by name. A
module `task.py` imports its settings and nothing heavy: the rest is imported by the functions
that need it, so that help is there at once.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from rich.console import Console

from training.errors import TrainingError

if TYPE_CHECKING:
    from training.runs.directory import TaskRun
    from training.servable import Servable

TASKS = {
    "sentiment": "training.sentiment.task",
    "forecasting": "training.forecasting.task",
}
"""The module of each task by its name, which is also that in `config.json`."""


@dataclass(frozen=True)
class Command:
    """A further command of the command line, beside those that train and resume."""

    name: str
    config_type: type
    """A dataclass of its settings, with a field `debug`."""
    run: Callable[[Any, Console], None]
    """Does it and prints what came of it; TensorFlow is loaded by then."""


class Task(Protocol):
    """What can be trained, resumed and exported."""

    @property
    def config_type(self) -> type:
        """The dataclass of its settings (`training.config.TaskConfig`).

        The docstring is the help of the command of the task's name.
        """

    @property
    def presets(self) -> Mapping[str, Any]:
        """Settings by the names that `--preset` takes."""

    @property
    def commands(self) -> Sequence[Command]:
        """What the command line can do with its runs, training apart."""

    def train(self, config: Any, console: Console, resume: bool) -> "TaskRun | None":
        """Train and write a run directory.

        Args:
            config: The settings.
            console: Where to show progress.
            resume: Continue from the checkpoint of an interrupted run of this name.

        Returns:
            The run; None in a process of several that train together which writes none.
        """

    def print_results(self, metrics: Mapping[str, Any], console: Console) -> None:
        """Print what a run achieved, from its `metrics.json`."""

    def open_run(self, path: Path) -> "TaskRun":
        """Open a run directory of this task."""

    def servable(self, run: Any) -> "Servable":
        """What to export of a run that `open_run` opened."""


def find_task(name: str) -> Task:
    """The task of this name.

    Raises:
        TrainingError: There is none.
    """
    if name not in TASKS:
        raise TrainingError(f"expected one of the tasks {', '.join(TASKS)}, got {name!r}")
    return cast(Task, importlib.import_module(TASKS[name]).TASK)
