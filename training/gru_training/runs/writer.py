"""The building of a training's run directory, which may be interrupted and continued."""

import glob
import itertools
import platform
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from gru_training.config import TaskConfig, to_dict, toml_text
from gru_training.errors import DivergenceError, InterruptedRun, RunDirectoryError
from gru_training.loop.checkpoint import Checkpoint, checkpoint_path
from gru_training.loop.fit import FitResult
from gru_training.runs.directory import RunWriter, package_version
from gru_training.runs.lock import RunLock
from gru_training.runs.report_page import write_report_page
from gru_training.termination import interrupted


def run_name(config: TaskConfig, task: str, data: Path | str) -> str:
    """Return the name that the settings give a run, or one made from task, data and time.

    Args:
        config: The settings.
        task: Name of the task.
        data: A file or folder, or what built-in data are called.
    """
    if config.run.name is not None:
        return config.run.name
    source = Path(data).resolve().name.split(".")[0]
    return f"{task}-{source}-{datetime.now():%Y%m%d-%H%M%S}"


class TrainingRunWriter(RunWriter):
    """A `RunWriter` that writes the settings, and keeps the checkpoint of an interrupted run.

    Two processes cannot build a run of the same name at the same time.

    Args:
        config: The settings; where they give the run no name, `name` may get a number at its end.
        task: Name of the task.
        name: Name of the new run, from `run_name`.
        resume: Whether to go on from a checkpoint; else there must be none.
        given: Facts about data that no setting names, as JSON values.
        asked: The settings as they were given, where `config` says what they left open: those that
            `resume` goes on with, to decide the same again.
        report_later: Whether the report is written only when `write_report` is called.
    """

    def __init__(
        self,
        config: TaskConfig,
        task: str,
        name: str,
        resume: bool,
        given: Mapping[str, Any] | None = None,
        asked: TaskConfig | None = None,
        report_later: bool = False,
    ):
        super().__init__(config.run.runs_dir, name)
        self._settings = {"task": task, "keras_gru": package_version(), **to_dict(config)}
        if given is not None:
            self._settings["given"] = dict(given)
        self._asked = self._settings if asked is None else {**self._settings, **to_dict(asked)}
        self._config, self._named = config, config.run.name is not None
        self._resume = resume
        self._reports, self._report_later = list[Callable[[], None]](), report_later
        self._place(self.final)

    def _place(self, final: Path) -> None:
        self.final = self.path = final
        self._checkpoint = checkpoint_path(final)
        self._lock = RunLock(final.parent / f".{final.name}.lock")

    def _begin(self) -> None:
        first = self.final
        for number in itertools.count(2):
            if self._lock.acquire():
                break
            if self._named:
                raise RunDirectoryError(
                    f"{self.final} is being trained by another process; wait for it, or choose "
                    "another --name"
                )
            self._place(first.with_name(f"{first.name}-{number}"))  # begun in the same second
        if self._checkpoint.exists() and not self._resume:
            raise RunDirectoryError(
                f"{self.final} was begun and cut short; go on with `gru-train resume "
                f"{quote(str(self.final))}`, choose another --name, or remove {self._checkpoint}"
            )
        if self._lock.holds or self._resume:  # what killed processes were building
            for left in self.final.parent.glob(f".{glob.escape(self.final.name)}.partial-*"):
                shutil.rmtree(left, ignore_errors=True)
        super()._begin()
        self.write_settings()
        self.write_text("settings.toml", toml_text(self._config))

    def write_settings(self, columns: Mapping[str, str] = MappingProxyType({})) -> None:
        """Write the settings.

        Args:
            columns: Columns that were found in the data, by input, once these are read.
        """
        found = {"columns": dict(columns)} if columns else {}
        self.write_json("config.json", {**self._settings, **found})

    def _clear(self) -> None:
        super()._clear()
        self._lock.release()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, DivergenceError):  # it would diverge again
            self._checkpoint.unlink(missing_ok=True)
        super().__exit__(kind, error, trace)
        cut_short = isinstance(error, KeyboardInterrupt) or (error is not None and interrupted())
        if cut_short and self._checkpoint.exists():
            raise InterruptedRun(self.final) from error

    def checkpoint(self, variables: Sequence[Any], data: str) -> Checkpoint:
        """Return the checkpoint of the training of this run.

        Args:
            variables: Variables that training changes.
            data: Digest of what is trained on.
        """
        return Checkpoint(self._checkpoint, self._asked, variables, data=data)

    def write_model(self, model: "keras.Model", result: FitResult) -> None:
        """Write the model and the course of its training, epoch by epoch."""
        model.save(self.path / "model.keras")
        self.write_json("history.json", [to_dict(record) for record in result.epochs])

    def report(self, write: Callable[[], None]) -> None:
        """Add a part of the report.

        Args:
            write: Function that writes pictures and pages to the writer's `path`, or changes files
                that are there already.
        """
        self._reports.append(write)

    def write_report(self) -> None:
        """Write the report, also for a run that is already published.

        Raises:
            RunDirectoryError: A file cannot be written.
        """
        try:
            while self._reports:
                self._reports.pop(0)()
            write_report_page(self.path)
            if self.path == self.final:
                self.write_manifest()
        except OSError as error:
            raise RunDirectoryError(
                f"cannot write the report of {self.final}: {error.strerror or error}"
            ) from error

    def publish(self) -> Path:
        """Publish the run, with its report unless that is postponed, and remove the checkpoint."""
        if not self._report_later:
            self.write_report()
        place = super().publish()
        self._checkpoint.unlink(missing_ok=True)
        return place


def run_summary(result: FitResult, seed: int, started: float) -> dict[str, Any]:
    """Summarise a training: its epochs, seed and time, and the versions of packages.

    Args:
        result: Result of `gru_training.loop.fit.fit`.
        seed: Seed of the run.
        started: Time at which the run began, on the clock of `time.perf_counter`.
    """
    return {
        "best_epoch": result.best_epoch,
        "epochs": len(result.epochs),
        "interrupted": result.interrupted,
        "seed": seed,
        "seconds": round(result.earlier_seconds + time.perf_counter() - started, 2),
        "versions": {
            "Python": platform.python_version(),
            # The modules' own versions are used, since TensorFlow comes in several packages, such
            # as tensorflow-cpu.
            **{module.__name__: module.__version__ for module in (tf, keras, np)},
        },
    }
