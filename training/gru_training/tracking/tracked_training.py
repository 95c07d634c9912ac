"""The tracking of a training, which a failing tracker does not end."""

import contextlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from rich.console import Console

from gru_training.config import RunConfig, TaskConfig, to_dict
from gru_training.errors import TrackingError, TrainingError
from gru_training.loop.batches import Batch
from gru_training.loop.checkpoint import EpochRecord
from gru_training.loop.fit import PerRowFunction, Progress
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
from keras_gru import GRU
from keras_gru.introspection import gates_over_time

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


class _Call(NamedTuple):
    layer: GRU
    inputs: Any
    initial_state: Any
    mask: Any


def gates_and_gradients(
    model: keras.Model, loss: PerRowFunction, batch: Batch
) -> dict[str, np.ndarray]:
    """Collect all values of the gates of each GRU, and of the gradient of each weight.

    The model runs as in use, without dropout, so the random numbers of the training are unaffected.

    Args:
        model: Model in training.
        loss: Loss that it minimises.
        batch: B rows.

    Returns:
        Values of the gates at all steps that are not masked, by `gates/LAYER/update` and
        `gates/LAYER/reset`, and gradients of the mean loss, by `gradients/WEIGHT`.
    """
    with _calls(model) as calls, tf.GradientTape() as tape:
        outputs = model(batch.inputs, training=False)
        objective = tf.reduce_mean(loss(tf.convert_to_tensor(batch.targets), outputs))
    weights = model.trainable_variables
    gradients = tape.gradient(objective, weights)
    gates = defaultdict(list)
    for call in calls:
        activity = gates_over_time(call.layer, call.inputs, call.initial_state, call.mask)
        layer = call.layer.cell.kernel.path.rsplit("/", 2)[0]  # as gradients are named
        for name, gate in (("update", activity.z), ("reset", activity.r)):
            gates[f"gates/{layer}/{name}"].append(gate[~np.isnan(gate)])
    found = {name: np.concatenate(values) for name, values in gates.items()}
    for weight, gradient in zip(weights, gradients, strict=True):
        if gradient is not None:
            found[f"gradients/{weight.path}"] = np.ravel(tf.convert_to_tensor(gradient))
    return found


@contextmanager
def _calls(model: keras.Model) -> Iterator[list[_Call]]:
    """Record the calls of the model's GRU layers inside the context, at any depth."""
    calls: list[_Call] = []
    layers = [each for each in model._flatten_layers() if isinstance(each, GRU)]

    def noting(layer: GRU) -> Any:
        called = layer.call

        def call(
            sequences: Any, initial_state: Any = None, mask: Any = None, training: bool = False
        ) -> Any:
            calls.append(_Call(layer, sequences, initial_state, mask))
            return called(sequences, initial_state=initial_state, mask=mask, training=training)

        return call

    for layer in layers:
        object.__setattr__(layer, "call", noting(layer))
    try:
        yield calls
    finally:
        for layer in layers:
            object.__delattr__(layer, "call")


_ROWS = 32
_BATCHES = 8
"""Number of the batch from which rows are taken, since the first ones may have the shortest
rows.
"""


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
        self._watched: tuple[keras.Model, PerRowFunction, Batch] | None = None
        self._untold: list[Callable[[Tracker], None]] = []
        self._lost = self._stepped = False
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

    def begin(self, place: Path, data: TrackedData) -> Sequence[Progress]:
        """Start the tracker; returns the follower of the training's steps and epochs.

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
        return (self,)

    def watch(
        self, model: keras.Model, loss: PerRowFunction, batches: Callable[[], Iterable[Batch]]
    ) -> None:
        """Receive the model, and the data on which it is measured."""
        if self._config.run.track_histograms:
            *_, batch = islice(batches(), _BATCHES)
            self._watched = model, loss, Batch(batch.inputs[:_ROWS], batch.targets[:_ROWS])

    def step(self, epoch: int, step: int, loss: float) -> None:  # noqa: ARG002
        """Do nothing: single steps are not reported."""
        self._stepped = True

    def epoch(self, record: EpochRecord, best: bool) -> None:  # noqa: ARG002
        """Report the measures of an epoch, and the values of gates and gradients."""
        self._tell(lambda tracker: tracker.epoch(record))
        if self._watched is not None and self._stepped:  # not of epochs before a resumption
            values = gates_and_gradients(*self._watched)
            self._tell(lambda tracker: tracker.histograms(record.epoch, values))

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
