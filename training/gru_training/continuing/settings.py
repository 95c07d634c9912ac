"""The settings of a run that goes on from another."""

from dataclasses import replace
from typing import Any

from gru_training.continuing.config import Continuation, ContinueConfig
from gru_training.errors import DataError
from gru_training.runs.directory import TaskRun

PATIENCE = 2


def require_file(wanted: ContinueConfig) -> None:
    """Raise DataError where there is no file of new rows."""
    if not wanted.data.is_file():
        found = "a folder" if wanted.data.is_dir() else "nothing"
        raise DataError(f"--data: expected a file with new rows at {wanted.data}, got {found}")


def continued_settings(
    run: TaskRun, wanted: ContinueConfig, rate: float, epochs: int
) -> dict[str, Any]:
    """What changes in the settings of a run: `training`, `run` and `continued`.

    Args:
        run: To go on from.
        wanted: What is asked for.
        rate: Share of the old run's learning rate by default; that of a run which goes on from
            another was lowered already.
        epochs: Most epochs by default.
    """
    old = run.config
    lowered = old.continued is not None
    training = replace(
        old.training,
        learning_rate=wanted.learning_rate
        or (1.0 if lowered else rate) * old.training.learning_rate,
        epochs=wanted.epochs or min(epochs, old.training.epochs),
        patience=wanted.patience or PATIENCE,
    )
    run = replace(
        old.run,
        runs_dir=wanted.runs_dir or wanted.run_path.resolve().parent,
        name=wanted.name,
        debug=wanted.debug,
    )
    replay = 0.0 if wanted.only_new else wanted.replay
    continued = Continuation(
        wanted.run_path, wanted.data, replay, wanted.only_new, wanted.refit_scaler
    )
    return {"training": training, "run": run, "continued": continued}
