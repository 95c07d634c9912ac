"""Errors that a user can fix, as exceptions.

    TrainingError                 shown as one line, exit status 2
    ├── ConfigError               a setting out of range or contradicting another
    ├── DataError                 data missing, unreadable or not as expected; also a ValueError
    │   ├── ForeignDataError      its columns are not those that the task reads
    │   └── DataProblemsError     several at once: gru_training.data.problems
    ├── RunDirectoryError         a run that cannot be written, or is not whole
    ├── ScoringError              answers that cannot be given to a table, or not be written
    ├── TrackingError         a tracker that cannot be reached as a training begins
    ├── CheckpointError           a checkpoint that cannot be written, read or continued
    ├── LostWorkerError           another process of the same training has ended
    └── DivergenceError           the loss stopped being a number

Of these only DataError is a ValueError, which scikit-learn's tools expect for data that an
estimator refuses. ConfigError is not, since the command-line parser would treat it as its own.
"""

from collections.abc import Sequence
from pathlib import Path


class TrainingError(Exception):
    """Base class of the package's errors.

    The message says what failed, what was expected and what came.
    """

    exit_code = 2


class ConfigError(TrainingError):
    """A setting is out of range or contradicts another."""


class DataError(TrainingError, ValueError):
    """Data are missing, unreadable or not as expected."""


class ForeignDataError(DataError):
    """A data file does not have the columns that a task reads.

    Args:
        message: Name of the file, and the columns that were expected and found.
        flags: Flags with which the task would read the file; none where it cannot.
        reason: Description of what in the file these flags follow from, as a clause.
        near: Whether the file is of the task's kind, and lacks only a column.
    """

    def __init__(
        self, message: str, flags: Sequence[str] = (), reason: str = "", near: bool = False
    ):
        super().__init__(message)
        self.flags = tuple(flags)
        self.reason = reason
        self.near = near


class RunDirectoryError(TrainingError):
    """A run directory cannot be written, or a directory is not a complete run."""


class ScoringError(TrainingError):
    """The rows of a table cannot be answered, or their answers cannot be written."""


class TrackingError(TrainingError):
    """A tracker cannot be reached when a training begins."""


class CheckpointError(TrainingError):
    """A checkpoint cannot be written, or an existing one cannot be continued."""


class DivergenceError(TrainingError):
    """A loss or metric became infinite or not a number."""


class LostWorkerError(TrainingError):
    """Another process of the same training has ended, without which this one cannot go on."""


class InterruptedRun(KeyboardInterrupt):
    """A training was interrupted and left a checkpoint.

    Args:
        run: Directory in which the run was to be.
    """

    def __init__(self, run: Path):
        super().__init__(run)
        self.run = run


class InterruptedWork(KeyboardInterrupt):
    """Scoring a file, or a search, was interrupted and can go on.

    Args:
        message: Progress of the work, and the way to go on.
    """

    def __init__(self, message: str):
        super().__init__(message)
        self.message = message
