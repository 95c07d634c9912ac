"""What a task is, and the one list of them.

A task is a folder: `training/<name>/` with a module `task.py` that holds it as `TASK`. The
command line, `resume` and the export ask it through `Task` and know no task by name. A
module `task.py` imports its settings and nothing heavy: the rest is imported by the functions
that need it, so that help is there at once.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import tyro

from gru_training.criterion import Criterion
from gru_training.errors import TrainingError
from gru_training.presets import preset_in
from gru_training.quiet import load_tensorflow

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console

    from gru_training.data.check import DataCheck
    from gru_training.judged import Judged
    from gru_training.outcomes import Outcomes
    from gru_training.runs.directory import TaskRun
    from gru_training.scoring.scorer import Scorer
    from gru_training.servable import Servable

TASKS = {
    "sentiment": "gru_training.sentiment.task",
    "forecasting": "gru_training.forecasting.task",
    "language": "gru_training.language.task",
}
"""The module of each task by its name, which is also that in `config.json`."""


@dataclass(frozen=True)
class Command:
    """A further command of the command line, beside those that train and resume."""

    name: str
    config_type: type
    """A dataclass of its settings, with a field `debug`."""
    run: Callable[[Any, "Console"], int | None]
    """Does it, prints what came of it, and returns the exit status; None stands for 0."""
    check: Callable[[Any, "Console"], Any] | None = None
    """Does what can be done before, so that errors show at once; `run` gets what this returns in
    place of the settings."""
    needs_tensorflow: bool = True
    """Whether TensorFlow, which takes seconds to load, is loaded before `run`."""
    takes_training_flags: bool = False
    """Whether flags of a training may follow; they become the setting `training_flags`."""


class Verdict(NamedTuple):
    """What speaks against using a run as it is."""

    problem: str
    """One line: what does better, and by how much."""
    flags: tuple[str, ...] = ()
    """Settings to train with again that may do better; none where there are no others."""


class Task(Protocol):
    """What can be trained, resumed and exported; a task derives from it."""

    @property
    def config_type(self) -> type:
        """The dataclass of its settings (`gru_training.config.TaskConfig`).

        The docstring is the help of the command of the task's name.
        """

    @property
    def presets(self) -> Mapping[str, Any]:
        """Settings by the names that `--preset` takes."""

    @property
    def commands(self) -> Sequence[Command]:
        """What the command line can do with its runs, training apart."""

    @property
    def scored_columns(self) -> Mapping[str, Sequence[str]]:
        """What of a table's rows `scorer` reads: inputs, and how their columns are called.

        Columns go by these names where the caller names none. Empty where runs of this task do
        not answer rows.
        """

    def check(self, config: Any) -> "DataCheck | None":  # noqa: ARG002
        """Read the data and look at them, without TensorFlow; None where nothing can be wrong.

        Args:
            config: The settings.

        Raises:
            ForeignDataError: The columns of the file are those of another task.
        """
        return None

    def train(
        self, config: Any, console: "Console", resume: bool, data: Any = None
    ) -> "TaskRun | None":
        """Train and write a run directory.

        Args:
            config: The settings.
            console: Where to show progress.
            resume: Go on from the checkpoint of a run of this name that was cut short.
            data: What `check` has read; read anew by default.

        Returns:
            The run; None in a process of several that train together which writes none.
        """

    def criterion(self, config: Any, data: Any) -> Criterion:
        """What `try_settings` returns for these settings and data, of `check`."""

    def contents(self, data: Any) -> Iterable["str | np.ndarray"]:
        """All that data of `check` say, for a digest."""

    def try_settings(
        self,
        config: Any,
        data: Any,
        criterion: Criterion,
        after_epoch: Callable[[int, float], None],
    ) -> "Judged":
        """Train without writing a run, and judge it by its validation rows; no test row is read.

        Args:
            config: The settings.
            data: What `check` has read.
            criterion: Of the search, from `criterion`; the settings tried may have another one.
            after_epoch: Told the number of each epoch and the criterion after it; may end the
                trial by an error.

        Raises:
            TrainingError: These settings cannot be used.
        """

    def reseeded(self, config: Any, seed: int) -> Any:
        """The settings with another seed, and the same rows in each part of the data."""
        return replace(config, training=replace(config.training, seed=seed))

    def print_results(self, metrics: Mapping[str, Any], console: "Console") -> None:
        """Print what a run achieved, from its `metrics.json`."""

    def verdict(self, run: Any) -> Verdict | None:  # noqa: ARG002
        """What speaks against using a run, as that a simple model does better; None for nothing.

        Args:
            run: That `train` returned.
        """
        return None

    def open_run(self, path: Path) -> "TaskRun":
        """Open a run directory of this task."""

    def servable(self, run: Any) -> "Servable":
        """What to export of a run that `open_run` opened."""

    def graph_scorer(self, run: Any) -> "Scorer | None":  # noqa: ARG002
        """What answers the rows of tables without TensorFlow; None where a run holds no graph.

        Args:
            run: A run that `open_run` opened.
        """
        return None

    def scorer(self, run: Any) -> "Scorer":
        """What answers the rows of tables with a run that `open_run` opened.

        Raises:
            TrainingError: Runs of this task do not answer rows.
        """

    def outcomes(self, run: Any, data: Path | None, like: Any) -> "Outcomes":
        """What a run answers to test rows, for a comparison with other runs.

        Args:
            run: Of `open_run`.
            data: A test file; None for the test rows that the run held out.
            like: The run it is compared with, whose classes, scale and the like it takes over.

        Raises:
            TrainingError: The two cannot be compared, or not on these data; names the run.
        """


def task_settings(task: Task, flags: Sequence[str], prog: str, shown: bool = True) -> Any:
    """The settings of a task, from flags of its training.

    Args:
        task: Whose.
        flags: Of the command line.
        prog: What the usage calls the command.
        shown: Whether usage and errors are printed.

    Raises:
        SystemExit: The task does not have these settings, or help was asked for.
    """
    return tyro.cli(
        task.config_type,
        prog=prog,
        default=preset_in(flags, task.presets, task.config_type()),
        args=list(flags),
        config=(tyro.conf.OmitArgPrefixes,),
        console_outputs=shown,
    )


def start_tensorflow(console: "Console", debug: bool) -> None:
    """Load TensorFlow for a command, and print its version and devices.

    Args:
        console: Where to print.
        debug: Whether to show the messages of its C++ parts.
    """
    with console.status("loading TensorFlow ..."):
        kinds = load_tensorflow(messages=debug, programs=True)
    import keras
    import tensorflow as tf

    console.print(
        f"TensorFlow {tf.__version__}, Keras {keras.__version__}, on {' and '.join(kinds)}",
        highlight=False,
    )


def find_task(name: str) -> Task:
    """The task of this name.

    Raises:
        TrainingError: There is none.
    """
    if name not in TASKS:
        raise TrainingError(f"expected one of the tasks {', '.join(TASKS)}, got {name!r}")
    return cast(Task, importlib.import_module(TASKS[name]).TASK)
