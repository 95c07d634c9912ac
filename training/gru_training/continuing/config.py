"""What to continue, and what of it a new run keeps; see `gru_training.config`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from gru_training.config import OptionalName, require_above_zero, require_at_least
from gru_training.errors import ConfigError


@dataclass(frozen=True)
class Continuation:
    """What a run goes on from. Set by `gru-train continue`, and kept in `config.json`."""

    from_run: Path
    """The run it started from."""
    new_data: Path
    """The file with the new rows."""
    replay: float | None = None
    """Share of the older training rows that the network reads in each epoch; None for as many as
    there are new ones."""
    only_new: bool = False
    """Whether the older rows were left alone."""
    refit_scaler: bool = False
    """Of series: whether scale and known inputs were fitted anew."""


@dataclass(frozen=True)
class ContinueConfig:
    """Continue training a run with new rows, and write a new run; the old one stays as it is.

    The network begins with the weights of the old run and learns at a lower rate. In each epoch it
    reads all new rows and a share of the old ones, so that it does not forget those (--replay).
    Old rows stay in their part: what was held out is never trained on. New rows are split by the
    same settings. New words and new classes are added behind the known ones. What is fitted
    quickly, such as the n-gram regression and the temperature, is fitted on all rows anew.

    The old run is scored beside the new one: on old test rows, new test rows and both. If the new
    run does worse on the old validation rows by more than chance, a warning says so.

    The result is a run like any other, which can be continued in turn.

    gru-train continue runs/tickets --data july.csv --name tickets-july
    """

    run_path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The run to continue, such as runs/NAME."""
    data: Annotated[Path, tyro.conf.arg(metavar="FILE")]
    """The new rows, with the column names of the run's own data."""
    replay: Annotated[float | None, tyro.conf.arg(metavar="SHARE")] = None
    """Share of the old training rows to read in each epoch, drawn anew, from 0 to 1; default: as
    many rows as there are new ones, of texts at least 0.3."""
    only_new: bool = False
    """Read no old rows, for the case that they are gone. What was learned from them may be
    forgotten."""
    refit_scaler: bool = False
    """Of series: measure mean and deviation, and what known inputs add, on old and new training
    rows; default: those of the old run, in which its network has learned to read."""
    drop_bad: bool = False
    """Leave out new rows that cannot be used, as in the training."""
    drop_small_classes: bool = False
    """Leave out new classes with fewer than three rows."""
    learning_rate: Annotated[float | None, tyro.conf.arg(metavar="RATE")] = None
    """Adam's step size; default: that of the old run, of series a quarter of it."""
    epochs: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Maximum number of passes over the rows; default: 3, of series 4, or the old run's if that is
    less."""
    patience: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Stop after this many epochs without a better validation result; default: 2."""
    name: OptionalName = None
    """Name of the new run directory; default: made from the data and the time."""
    runs_dir: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """Folder of the new run directory; default: where the old run is."""
    debug: bool = False
    """Show TensorFlow's messages, and the traceback of an error."""

    def __post_init__(self) -> None:
        if self.replay is not None and not 0 <= self.replay <= 1:
            raise ConfigError(f"--replay must be 0 to 1, got {self.replay}")
        if self.only_new and self.replay is not None:
            raise ConfigError("--only-new excludes --replay, which is for old rows")
        if self.learning_rate is not None:
            require_above_zero("--learning-rate", self.learning_rate)
        for flag, value in (("--epochs", self.epochs), ("--patience", self.patience)):
            if value is not None:
                require_at_least(flag, value, 1)
