"""Builds the run directory of a training, which may be cut short and continued."""

import glob
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import keras_gru
from training.checkpoint import Checkpoint, checkpoint_path
from training.config import to_dict
from training.errors import DivergenceError, RunDirectoryError
from training.run_directory import RunWriter


class TrainingRunWriter(RunWriter):
    """A :class:`RunWriter` that writes the settings, and keeps the checkpoint of a broken run.

    Args:
        config: the settings, a dataclass with ``run.runs_dir``.
        task: what is trained for.
        name: name of the new run.
        resume: whether to go on from a checkpoint; else there must be none.
    """

    def __init__(self, config: Any, task: str, name: str, resume: bool):
        super().__init__(config.run.runs_dir, name)
        self._settings = {"task": task, "keras_gru": keras_gru.__version__, **to_dict(config)}
        self._checkpoint = checkpoint_path(self.final)
        self._resume = resume

    def __enter__(self) -> "TrainingRunWriter":
        if self._checkpoint.exists() and not self._resume:
            raise RunDirectoryError(
                f"{self.final} was begun and cut short; go on with `gru-train resume "
                f"{self.final}`, choose another --name, or remove {self._checkpoint}"
            )
        if self._resume:  # what the killed process was building
            for left in self.final.parent.glob(f".{glob.escape(self.final.name)}.partial-*"):
                shutil.rmtree(left, ignore_errors=True)
        super().__enter__()
        self.write_json("config.json", self._settings)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, DivergenceError):  # it would diverge again
            self._checkpoint.unlink(missing_ok=True)
        super().__exit__(kind, error, trace)

    def checkpoint(self, variables: Sequence[Any]) -> Checkpoint:
        """The checkpoint of the training that is to become this run.

        Args:
            variables: all that training changes.
        """
        return Checkpoint(self._checkpoint, self._settings, variables)

    def publish(self) -> Path:
        """As of the base class; then no checkpoint is needed any more."""
        place = super().publish()
        self._checkpoint.unlink(missing_ok=True)
        return place
