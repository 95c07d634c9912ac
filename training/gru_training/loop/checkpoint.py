"""Checkpoints, from which a killed training continues as if it had not been interrupted.

A checkpoint is one file, `.<name>.checkpoint` beside the place of the run: an .npz archive of the
model's and the optimizer's variables, including random number generators, and of the best epoch's
weights, with everything else as JSON. It is replaced atomically, so there is always a complete one.
"""

import json
import os
import shlex
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gru_training.errors import CheckpointError


@dataclass
class Totals:
    """Sums over rows, for means that weigh every row equally."""

    sums: dict[str, float] = field(default_factory=dict)
    """Sums of the loss and each metric over the rows."""
    rows: int = 0

    def add(self, sums: Mapping[str, Any], rows: int) -> None:
        """Add the sums over further rows."""
        for name, value in sums.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value)
        self.rows += rows

    def means(self) -> dict[str, float]:
        """Return the means per row.

        Raises:
            ValueError: There are no rows.
        """
        if not self.rows:
            raise ValueError("expected at least one row, got none")
        return {name: value / self.rows for name, value in self.sums.items()}


@dataclass(frozen=True)
class EpochRecord:
    """The result of one epoch."""

    epoch: int
    """Number of the epoch, from 1."""
    train: dict[str, float]
    """Means over the epoch's training rows, with dropout, while the weights changed."""
    validation: dict[str, float]
    """Means over the validation rows after the epoch."""
    learning_rate: float
    seconds: float


@dataclass
class FitState:
    """The progress of a training."""

    epoch: int = 1
    """Current epoch, from 1."""
    step: int = 0
    """Number of finished steps of the current epoch."""
    totals: Totals = field(default_factory=Totals)
    """Sums over the current epoch's rows so far."""
    seconds: float = 0.0
    """Seconds spent on the current epoch at the last checkpoint."""
    records: list[EpochRecord] = field(default_factory=list)
    """Results of the epochs before the current one."""
    best_epoch: int = 0
    best_score: tuple[float, ...] | None = None


SECONDS_BETWEEN = 30.0


def checkpoint_path(run: Path) -> Path:
    """Return the path of a run's checkpoint."""
    return run.parent / f".{run.name}.checkpoint"


def run_of(path: Path) -> Path:
    """Return the run of a checkpoint's path, the inverse of `checkpoint_path`."""
    return path.parent / path.name[1:].removesuffix(".checkpoint")


def existing_checkpoint(run: Path) -> Path:
    """Find the checkpoint of an interrupted run.

    Args:
        run: The run's intended path.

    Raises:
        CheckpointError: There is none; says if the run is complete, or which runs were cut short.
    """
    path = checkpoint_path(run)
    if path.exists():
        return path
    others = [str(other) for folder in (run.parent, run) for other in cut_short(folder)]
    if others:
        reason = f"the interrupted runs here are {', '.join(others)}"
    elif run.is_dir():
        reason = f"{run} was not interrupted"
    else:
        reason = f"no run in {run.parent} was interrupted"
    raise CheckpointError(f"there is no checkpoint {path}; {reason}")


def cut_short(folder: Path) -> list[Path]:
    """List the interrupted runs of a folder that have a checkpoint, the newest first."""
    paths = [(path.stat().st_mtime, path) for path in folder.glob(".*.checkpoint")]
    return [run_of(path) for _, path in sorted(paths, reverse=True)]


def read_settings(path: Path) -> dict[str, Any]:
    """Read the settings with which a checkpoint was written.

    Raises:
        CheckpointError: There is none, or it is damaged.
    """
    with _archive(path) as archive:
        settings: dict[str, Any] = json.loads(str(archive["meta"]))["settings"]
        return settings


class Checkpoint:
    """The checkpoint of the current training.

    Args:
        path: File of the checkpoint.
        settings: JSON values from which the run can be set up again.
        variables: Everything that training changes: Keras variables of the model and the optimizer.
        seconds_between: Least time between two checkpoints within an epoch.
        data: `gru_training.data.digest.data_digest` of what is trained on; None is not compared.
    """

    def __init__(
        self,
        path: Path,
        settings: Mapping[str, Any],
        variables: Sequence[Any],
        seconds_between: float = SECONDS_BETWEEN,
        data: str | None = None,
    ):
        self.path = path
        self._settings, self._variables = settings, variables
        self._seconds_between, self._data = seconds_between, data
        self._last = time.monotonic()

    @property
    def due(self) -> bool:
        """True if it is time to save within an epoch."""
        return time.monotonic() - self._last >= self._seconds_between

    def save(self, state: FitState, best_weights: Sequence[np.ndarray]) -> None:
        """Replace the checkpoint.

        Raises:
            CheckpointError: The file cannot be written; the last one is still there.
        """
        arrays: dict[str, Any] = {
            f"variable_{i}": np.asarray(v) for i, v in enumerate(self._variables)
        }
        arrays |= {f"best_{i}": weight for i, weight in enumerate(best_weights)}
        meta = json.dumps({"settings": self._settings, "data": self._data, "state": asdict(state)})
        aside = self.path.with_name(f"{self.path.name}.new")
        try:
            with aside.open("wb") as file:
                np.savez(file, meta=np.array(meta), **arrays)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(self.path)
        except OSError as error:
            aside.unlink(missing_ok=True)
            raise CheckpointError(
                f"cannot write the checkpoint {self.path}: {error.strerror or error}; free some "
                f"space there, then {self.way_on}"
            ) from error
        self._last = time.monotonic()

    @property
    def way_on(self) -> str:
        """Clause that says how to continue the training, from this checkpoint if it was written."""
        if not self.path.exists():
            return "start again: there is no earlier checkpoint"
        run = shlex.quote(str(run_of(self.path)))
        return f"continue from the previous one with `gru-train resume {run}`"

    def restore(self) -> tuple[FitState, list[np.ndarray]] | None:
        """Set the variables to those of the checkpoint.

        Returns:
            State and weights of the best epoch; None if there is no checkpoint.

        Raises:
            CheckpointError: The file is damaged, or belongs to other data or another model; no
                variable is changed.
        """
        if not self.path.exists():
            return None
        with _archive(self.path) as archive:
            meta = json.loads(str(archive["meta"]))
            state, data = state_of(meta["state"]), meta.get("data")  # earlier checkpoints have none
            arrays = [archive[f"variable_{i}"] for i in range(_count(archive, "variable_"))]
            best = [archive[f"best_{i}"] for i in range(_count(archive, "best_"))]
        if data is not None and self._data is not None and data != self._data:
            raise CheckpointError(
                f"{self.path}: expected the data that the training started with (SHA-256 "
                f"{data[:12]}...), got other data ({self._data[:12]}...); restore the first, or "
                "remove the checkpoint and start again"
            )
        shapes = [tuple(variable.shape) for variable in self._variables]
        if [array.shape for array in arrays] != shapes:
            raise CheckpointError(
                f"{self.path}: expected the checkpoint of a model with {len(shapes)} variables of "
                "these settings, got one of another model; was the data changed since?"
            )
        for variable, array in zip(self._variables, arrays, strict=True):
            variable.assign(array)
        return state, best


@contextmanager
def _archive(path: Path) -> Iterator[Any]:
    """Read the file's arrays; errors become the package's own."""
    try:
        # np.load does not close a file that it cannot read unless it is given the open file.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            yield archive
    except FileNotFoundError as error:
        raise CheckpointError(f"there is no checkpoint {path}") from error
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror or error}") from error
    except (
        EOFError, KeyError, RecursionError, TypeError, ValueError, zipfile.BadZipFile,
    ) as error:  # fmt: skip
        raise CheckpointError(
            f"{path} is damaged, or is not a checkpoint of a training run"
        ) from error


def state_of(values: dict[str, Any]) -> FitState:
    """Make the progress of a training from `dataclasses.asdict` of it, read as JSON."""
    score = values["best_score"]
    return FitState(
        **{
            **values,
            "totals": Totals(**values["totals"]),
            "records": [EpochRecord(**record) for record in values["records"]],
            "best_score": None if score is None else tuple(score),
        }
    )


def _count(archive: Any, prefix: str) -> int:
    return sum(name.startswith(prefix) for name in archive.files)
