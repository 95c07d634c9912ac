"""The interface of a task, and the list of tasks.

A task is a folder, `training/<name>/`, with a module `task.py` that holds it as `TASK`. The command
line, `resume` and the export use it through `Task` and know no task by name. A module `task.py`
imports its settings and nothing slow: its methods import the rest, so that help appears at once.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from gru_training.errors import TrainingError

if TYPE_CHECKING:
    from rich.console import Console

    from gru_training.criterion import Criterion, Judged
    from gru_training.data.check import DataCheck
    from gru_training.outcomes import Outcomes
    from gru_training.runs.directory import TaskRun
    from gru_training.scoring.scorer import Scorer
    from gru_training.servable import Servable

TASKS = {
    "sentiment": "gru_training.sentiment.task",
    "forecasting": "gru_training.forecasting.task",
    "language": "gru_training.language.task",
}
"""The module of each task by its name, which is also the name in `config.json`."""


@dataclass(frozen=True)
class Command:
    """A command of `gru-train` other than the training of a task."""

    name: str
    config_type: type
    """A dataclass of its settings, with a field `debug`; its docstring is the command's help."""
    run: Callable[[Any, "Console"], int | None]
    """Runs the command, prints its result and returns the exit status; None stands for 0."""
    check: Callable[[Any, "Console"], Any] | None = None
    """Function that checks whatever needs no TensorFlow; `run` gets its result in place of the
    settings.
    """
    needs_tensorflow: bool = True
    """Whether TensorFlow, which takes seconds to load, is loaded before `run`."""
    takes_training_flags: bool = False
    """Whether flags of a training may follow; they become the setting `training_flags`."""
    examples: Sequence[str] = ()
    """Command lines at the end of the help; `tests/docs/test_help_examples.py` runs them."""


class Verdict(NamedTuple):
    """A reason not to use a run."""

    problem: str
    """Name of the model that does better than the run, and by how much, in one line."""
    flags: tuple[str, ...] = ()
    """Settings of another training that may do better; empty if there are none to try."""


class Task(ABC):
    """A kind of model that can be trained, resumed and exported.

    One with further abilities derives from `Searchable`, `Scorable` or `Comparable`.
    """

    settings: ClassVar[type]
    """The dataclass of its settings (`gru_training.config.TaskConfig`); its docstring is the help
    of the command that has the task's name."""
    data_kind: ClassVar[str] = "data"
    """Noun for the rows from which it learns, in `gru-train check`."""
    presets: ClassVar[Mapping[str, Any]] = {}
    """Settings by the names that `--preset` takes."""
    flags: ClassVar[Sequence[str] | None] = None
    """Settings with a flag of their own; None for all. The others are given with `--set` or in a
    file (`gru_training.command_settings`).
    """
    examples: ClassVar[Sequence[str]] = ()
    """Command lines that end the help of its training."""
    commands: ClassVar[Sequence[Command]] = ()
    """Further commands for its runs."""

    def read(self, config: Any) -> "DataCheck | None":  # noqa: ARG002
        """Read and check the data without TensorFlow; None for generated data, which need no check.

        Raises:
            ForeignDataError: The columns of the file are those of another task.
        """
        return None

    @abstractmethod
    def train(
        self, config: Any, console: "Console", resume: bool, data: Any = None
    ) -> "TaskRun | None":
        """Train and write a run directory.

        It seeds Python's, NumPy's and Keras' global random numbers. On one machine's CPU the same
        settings give the same weights; on a GPU, or on other processors, they may differ in the
        last digits, and training magnifies that.

        Killed at any moment, it leaves at most hidden files: a checkpoint, from which `resume`
        leads to the same weights, and files that the next training of this name removes.

        Args:
            config: Settings of the task.
            console: Console that shows progress.
            resume: Whether to continue from the checkpoint of an interrupted run of this name.
            data: Data from `read`; read again by default.

        Returns:
            Complete run on disk. After SIGINT it holds the best epoch until then and
            `metrics["interrupted"]` is true. Of several processes that train together only the
            first writes it; for the others None.

        Raises:
            TrainingError: Settings, data or run directory cannot be used; no run is left behind.
        """

    @abstractmethod
    def open_run(self, path: Path) -> "TaskRun":
        """Open a run directory of this task."""

    @abstractmethod
    def servable(self, run: Any) -> "Servable":
        """Build the exportable parts of a run from `open_run`."""

    def show_results(self, run: Any, console: "Console") -> Verdict | None:  # noqa: ARG002
        """Print the results of a run; returns a reason not to use it, or None."""
        return None


class Searchable(Task):
    """A task whose settings `gru-train tune` can search."""

    @abstractmethod
    def criterion(self, config: Any, data: Any) -> "Criterion":
        """Choose the criterion of a search with these settings and data from `Task.read`."""

    @abstractmethod
    def try_settings(
        self,
        config: Any,
        data: Any,
        criterion: "Criterion",
        after_epoch: Callable[[int, float], None],
    ) -> "Judged":
        """Train without writing a run, and judge the model on validation rows only.

        Args:
            config: Settings to try.
            data: Data from `Task.read`.
            criterion: Criterion of the search; the settings to try may suggest another.
            after_epoch: Function called after each epoch with its number and the criterion; it may
                end the trial by an error.

        Raises:
            TrainingError: These settings cannot be used.
        """


class Scorable(Task):
    """A task whose runs answer the rows of tables."""

    scored_columns: ClassVar[Mapping[str, Sequence[str]]]
    """Names by which each input is found among a table's columns."""

    @abstractmethod
    def scorer(self, run: Any) -> "Scorer":
        """Load the scorer of rows with a run from `open_run`."""

    def graph_scorer(self, run: Any) -> "Scorer | None":  # noqa: ARG002
        """Load the scorer of rows without TensorFlow; None if the run holds no such graph."""
        return None


class Comparable(Task):
    """A task whose runs `gru-train compare` can compare."""

    def require_alike(self, run: Any, like: Any) -> None:
        """Raise TrainingError if `outcomes` would refuse two runs, as far as is soon known."""

    @abstractmethod
    def outcomes(self, run: Any, data: Path | None, like: Any) -> "Outcomes":
        """Answer test rows with a run.

        Args:
            run: Run from `open_run`.
            data: Path of a test file; None for the test rows that the run held out.
            like: Run to compare with, whose classes or scale are taken over.

        Raises:
            TrainingError: The two runs cannot be compared on these data; names the run.
        """


def find_task(name: str) -> Task:
    """Import the task of this name.

    Raises:
        TrainingError: There is no such task.
    """
    if name not in TASKS:
        raise TrainingError(f"expected one of the tasks {', '.join(TASKS)}, got {name!r}")
    return cast(Task, importlib.import_module(TASKS[name]).TASK)


def read_data(task: Task, config: Any, console: "Console") -> Any:
    """Read the data of a training, print notes on them, and return them; None if there are none.

    Raises:
        DataProblemsError: The data cannot be trained on.
    """
    with console.status("checking the data ..."):
        found = task.read(config)
    if found is None:
        return None
    found.raise_errors()
    found.print_notes(console)
    return found.data


class Interrupted(NamedTuple):
    """A training that was interrupted and left a checkpoint."""

    task: str
    config: Any
    given: dict[str, Any] | None
    """Record of data that were given in memory; None if the settings name the data."""


def interrupted_training(run: Path, names: Sequence[str] = ()) -> Interrupted:
    """Read the settings of a training from the checkpoint of its run.

    Args:
        run: Directory that the run was to have.
        names: Tasks to accept; all by default.

    Raises:
        TrainingError: There is no checkpoint of a run of these tasks.
    """
    from gru_training.loop.checkpoint import existing_checkpoint, read_settings
    from gru_training.runs.directory import read_config

    checkpoint = existing_checkpoint(run)
    written = read_settings(checkpoint)
    types = {name: find_task(name).settings for name in names or TASKS}
    config = read_config(written, types, checkpoint)
    place = replace(config.run, runs_dir=run.parent, name=run.name)
    return Interrupted(written["task"], replace(config, run=place), written.get("given"))


def start_tensorflow(console: "Console", debug: bool) -> None:
    """Load TensorFlow for a command, and print its version and devices.

    Args:
        console: Console of the command.
        debug: Whether to show the messages of its C++ parts.
    """
    from gru_training.quiet import load_tensorflow

    with console.status("loading TensorFlow ..."):
        kinds = load_tensorflow(messages=debug, programs=True)
    import keras
    import tensorflow as tf

    console.print(
        f"TensorFlow {tf.__version__}, Keras {keras.__version__}, on {' and '.join(kinds)}"
    )
