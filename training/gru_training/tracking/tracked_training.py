"""The tracking of a training, which a failing tracker does not end."""

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from gru_training.config import RunConfig, TaskConfig, to_dict
from gru_training.errors import TrackingError, TrainingError
from gru_training.loop.checkpoint import EpochRecord
from gru_training.loop.fit import EpochFollower
from gru_training.runs.directory import package_version
from gru_training.tracking.mlflow_tracker import MLflowTracker
from gru_training.tracking.tensorboard_tracker import TensorBoardTracker
from gru_training.tracking.tracker import (
    Beginning,
    FinishedRun,
    Outcome,
    TrackedData,
    Tracker,
    flat,
)
from gru_training.tracking.wandb_tracker import WandbTracker

PROJECT = "keras-gru"


def _make_tracker(config: RunConfig, name: str) -> Tracker | None:
    """Make the tracker of a run of this name; None if the settings ask for none."""
    if config.track is None:
        return None
    project = config.track_project or PROJECT
    if config.track == "tensorboard":
        folder = config.runs_dir / "tensorboard" if config.track_to is None else config.track_to
        return TensorBoardTracker(Path(folder) / name)
    if config.track == "mlflow":
        return MLflowTracker(config.track_to, project, config.register)
    return WandbTracker(Path(config.track_to or config.runs_dir), project)


class Tracked:
    """A context manager around a training that reports it to a tracker.

    A tracker that cannot be reached at the start ends the training before it begins, as the
    settings are probably wrong. One that fails later does not: a line reports it, and the missing
    calls are repeated after the next epoch and at the end.

    Args:
        config: Every setting; `run.track` names the tracker, if there is to be one.
        task: Name of the task.
        console: Console on which to say that a tracker was lost.
        resume: Whether the training goes on from a checkpoint; then it begins without the tracker,
            too.

    Raises:
        ConfigError: The tracker's package is not installed.
    """

    def __init__(self, config: TaskConfig, task: str, console: Console, resume: bool = False):
        config.run.require_tracker()
        self._config, self._task = config, task
        self._console, self._resume = console, resume
        self._tracker: Tracker | None = None
        self._untold: list[Callable[[Tracker], None]] = []
        self._lost = False
        self._outcome: Outcome = "failed"

    def __enter__(self) -> "Tracked":
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, KeyboardInterrupt):
            self._outcome = "interrupted"
        outcome = self._outcome

        def finish(tracker: Tracker) -> None:
            tracker.finish(outcome)

        self._tell(finish)
        if self._tracker is not None and self._untold[:1] not in ([], [finish]):
            with contextlib.suppress(Exception):  # what comes before it may never be taken
                finish(self._tracker)

    def begin(self, place: Path, data: TrackedData) -> Sequence[EpochFollower]:
        """Start the tracker; returns the followers of the training's epochs.

        Args:
            place: Path of the run directory.
            data: Data of the training.

        Raises:
            TrackingError: The tracker cannot be reached.
        """
        tracker = _make_tracker(self._config.run, place.name)
        if tracker is None:
            return ()
        beginning = Beginning(
            place.name,
            place.absolute(),
            self._task,
            flat(to_dict(self._config)),
            package_version(),
            data,
            self._resume,
        )
        if not self._resume:
            try:
                tracker.start(beginning)
            except Exception as error:
                raise TrackingError(
                    f"--track {self._config.run.track}: cannot start: {_in_a_line(error)}"
                ) from error
        self._tracker = tracker
        if self._resume:
            self._tell(lambda tracker: tracker.start(beginning))
        return (self.epoch,)

    def epoch(self, record: EpochRecord) -> None:
        """Report the measures of an epoch."""
        self._tell(lambda tracker: tracker.epoch(record))

    def complete(self, run: Path) -> None:
        """Report the outcome.

        Args:
            run: The run directory, complete.
        """
        metrics = json.loads((run / "metrics.json").read_text("utf-8"))
        self._outcome = "interrupted" if metrics["interrupted"] else "finished"
        if self._tracker is None:
            return
        finished = FinishedRun(
            run,
            self._task,
            _measures(metrics),
            metrics["best_epoch"],
            sorted(run.glob("*.png")),
            metrics["interrupted"],
        )
        self._tell(lambda tracker: tracker.results(finished))

    def _tell(self, what: Callable[[Tracker], None]) -> None:
        """Call the tracker, after repeating the calls that failed."""
        if self._tracker is None:
            return
        self._untold.append(what)
        try:
            while self._untold:
                self._untold[0](self._tracker)
                del self._untold[0]
        except Exception as error:
            if not self._lost:
                self._console.print(
                    f"warning: {self._config.run.track} cannot be reached; the training continues "
                    f"without it: {_in_a_line(error)}",
                    style="yellow",
                )
            self._lost = True
        else:
            self._lost = False


def _measures(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Collect the figures of the delivered model."""
    found = {
        f"final/{part}/{name}": float(value)
        for part in ("validation", "test")
        for name, value in metrics["model"].get(part, {}).items()
        if isinstance(value, int | float)
    }
    return {**found, "final/seconds": float(metrics["seconds"])}


def _in_a_line(error: Exception) -> str:
    text = str(error) if isinstance(error, TrainingError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:300]
