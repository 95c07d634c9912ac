"""The interface of a tracker, which records a training from its start to its end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from gru_training.loop.checkpoint import EpochRecord

Outcome = Literal["finished", "interrupted", "failed"]
"""Status of a training interrupted by Ctrl-C or SIGTERM, whether or not a run was kept."""


@dataclass(frozen=True)
class TrackedData:
    """The data of a training."""

    name: str
    sha256: str
    """SHA-256 of the rows, in hexadecimal."""
    sizes: Mapping[str, int]
    """The number of rows, by part."""


@dataclass(frozen=True)
class Beginning:
    """A training that begins."""

    name: str
    """Name of the run."""
    place: Path
    """Path of the run to be written."""
    task: str
    settings: Mapping[str, Any]
    """JSON values, by names such as `training.learning_rate`."""
    version: str
    """Version of keras_gru."""
    data: TrackedData
    resumed: bool
    """Whether the training continues from a checkpoint; the epochs before it are then reported
    again.
    """


@dataclass(frozen=True)
class FinishedRun:
    """A complete run."""

    path: Path
    task: str
    measures: Mapping[str, float]
    """Measures of the delivered model, by names such as `final/test/accuracy`."""
    best_epoch: int
    pictures: Sequence[Path]
    """PNG files of the report."""
    interrupted: bool


class Tracker(Protocol):
    """A follower of one training; failing calls may raise any error, and are repeated."""

    def start(self, beginning: Beginning) -> None:
        """Begin to follow a training, before its first step."""

    def epoch(self, record: EpochRecord) -> None:
        """Log an epoch that has ended."""

    def results(self, run: FinishedRun) -> None:
        """Log the results of a complete run."""

    def finish(self, outcome: Outcome) -> None:
        """End the record, whatever the outcome; the last call."""


def epoch_measures(record: EpochRecord) -> dict[str, float]:
    """Return the figures of an epoch by the names that trackers show."""
    return {
        **{f"train/{name}": value for name, value in record.train.items()},
        **{f"validation/{name}": value for name, value in record.validation.items()},
        "learning_rate": record.learning_rate,
        "epoch_seconds": record.seconds,
    }


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested objects to one, with names joined by dots."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found
