"""The settings of a backtest; see `training.config`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from training.config import OptionalName, require_at_least


@dataclass(frozen=True)
class BacktestConfig:
    """Evaluate a forecasting run at several origins in time, rolling through its test part.

    The test part is split into folds that do not overlap in time. For each, the ridge regression
    and the exponential smoothing are refitted on all rows before it, and with --refit so is the
    model of the run. If the data have grown since, the new rows belong to the last folds.
    """

    run_path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """A run directory of `gru-train forecasting`."""
    folds: int = 5
    """Number of folds to split the test part into, in order of time."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """File with the series; default: the file that the run was trained on."""
    name: OptionalName = None
    """Name of the new folder beside the run; default: the run's with -backtest."""
    refit: bool = False
    """Train the run's model again for each fold, on all rows before it."""
    step: int = 1
    """Forecast from every n-th time of a fold only."""
    debug: bool = False
    """Show TensorFlow's messages, and the traceback of an error."""

    def __post_init__(self) -> None:
        require_at_least("--folds", self.folds, 1)
        require_at_least("--step", self.step, 1)
