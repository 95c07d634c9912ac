"""The settings of a run that goes on from another."""

from dataclasses import replace
from typing import Any

from training.config import TaskConfig
from training.continuing.config import Continuation, ContinueConfig
from training.errors import DataError

RATE = 0.25
"""Of the old run's learning rate: the weights are good already."""
EPOCHS, PATIENCE = 4, 2


def continued_settings(old: TaskConfig, wanted: ContinueConfig) -> dict[str, Any]:
    """What changes in the settings of a run: `training`, `run` and `continued`.

    Args:
        old: Of the run to go on from.
        wanted: What is asked for.

    Raises:
        DataError: There is no file of new rows.
    """
    if not wanted.data.is_file():
        found = "a folder" if wanted.data.is_dir() else "nothing"
        raise DataError(f"--data: expected a file with new rows at {wanted.data}, got {found}")
    training = replace(
        old.training,
        learning_rate=wanted.learning_rate or RATE * old.training.learning_rate,
        epochs=wanted.epochs or min(EPOCHS, old.training.epochs),
        patience=wanted.patience or PATIENCE,
    )
    run = replace(
        old.run,
        runs_dir=wanted.runs_dir or wanted.run_path.resolve().parent,
        name=wanted.name,
        debug=wanted.debug,
    )
    replay = 0.0 if wanted.only_new else wanted.replay
    continued = Continuation(wanted.run_path, wanted.data, replay, wanted.only_new)
    return {"training": training, "run": run, "continued": continued}
