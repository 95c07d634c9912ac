"""The settings of a comparison; see `gru_training.config`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from gru_training.config import require_at_least, require_seed
from gru_training.errors import ConfigError

_FEWEST_RESAMPLES = 999


@dataclass(frozen=True)
class CompareConfig:
    """Compare runs on the same test rows: a table, a picture, and what chance may explain.

    All runs are compared with one, the first unless --reference names another. Without --data the
    test rows are those that the runs held out, which must be the same. For example:

    gru-train compare runs/small runs/large

    gru-train compare runs/* --reference small --data new-tickets.csv --output small-against-all

    Texts and other rows that are independent of each other get bootstrap intervals and McNemar's
    test of the accuracies; forecasts get the Diebold-Mariano test and its intervals.
    """

    run_paths: Annotated[
        tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN RUN ...")
    ]
    """Two or more run directories of one task."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """Test file that no run was trained on, with the columns of the runs; of a series only what
    comes after the runs' validation rows counts. Default: the test rows that the runs held out."""
    reference: Annotated[Path | None, tyro.conf.arg(metavar="RUN")] = None
    """The run that the others are compared with, a path or a name; default: the first."""
    output: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """New folder for report, picture and figures; default: beside the reference, named after it."""
    resamples: int = 9_999
    """Number of times that the bootstrap draws the rows."""
    seed: int = 0
    """Seed of the bootstrap."""
    debug: bool = False
    """Show TensorFlow's messages, and where an error arose."""

    def __post_init__(self) -> None:
        if len(self.run_paths) < 2:
            raise ConfigError(
                "compare needs at least two run directories, got "
                + (str(self.run_paths[0]) if self.run_paths else "none")
            )
        require_at_least("--resamples", self.resamples, _FEWEST_RESAMPLES)
        require_seed(self.seed)
