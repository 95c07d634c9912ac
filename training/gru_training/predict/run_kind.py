"""The task of a run, read without TensorFlow."""

import json
from pathlib import Path

from gru_training.errors import ConfigError, RunDirectoryError
from gru_training.task import TASKS, Task, find_task


def run_task(path: Path) -> Task:
    """The task of a run directory.

    Raises:
        RunDirectoryError: There is no run.
    """
    if not path.is_dir():
        raise RunDirectoryError(f"there is no run directory {path}")
    try:
        config = json.loads((path / "config.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RunDirectoryError(
            f"{path} is not a run: cannot read its config.json ({error})"
        ) from error
    name = config.get("task") if isinstance(config, dict) else None
    if name not in TASKS:
        raise RunDirectoryError(
            f"{path}: expected a run of the tasks {', '.join(TASKS)}, got {name!r}"
        )
    return find_task(name)


def scored_columns(path: Path, task: Task, given: dict[str, str]) -> dict[str, list[str]]:
    """The inputs that a run reads from rows, and the names by which columns are found.

    Args:
        path: Of the run, for messages.
        task: Of the run.
        given: Columns that the caller named, by input.

    Raises:
        RunDirectoryError: Runs of this task cannot answer rows.
        ConfigError: A column is named for an input that does not exist.
    """
    inputs = {name: list(known) for name, known in task.scored_columns.items()}
    if not inputs:
        raise RunDirectoryError(
            f"{path}: expected a run that answers rows, as a text classifier does; this one reads "
            "a series"
        )
    for name in given:
        if name not in inputs:
            raise ConfigError(
                f"--{name}-column: expected a model that reads a {name}; {path} reads "
                f"{', '.join(inputs)}"
            )
    return inputs
