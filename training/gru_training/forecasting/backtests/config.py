"""The settings of a backtest; see `gru_training.config`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from gru_training.config import OptionalName, require_at_least
from gru_training.errors import ConfigError

Metric = Literal["mse", "mae", "mase", "rmsse", "smape", "crps"]


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
    warm_start: bool = False
    """With --refit, begin with the networks of the fold before (the first fold with the run's),
    and train them for a quarter of the epochs."""
    gap: int = 0
    """Rows before each fold that no model is fitted on, as if they came too late for it; they are
    read for forecasts."""
    metric: Metric = "mse"
    """What the table and the picture show; backtest.json has all of them. The CRPS exists for the
    run's model alone."""
    adaptive: bool = False
    """Also measure intervals that learn from their misses as time goes on (adaptive conformal
    inference, Gibbs and Candès 2021)."""
    step: int = 1
    """Forecast from every n-th time of a fold only."""
    debug: bool = False
    """Show TensorFlow's messages, and the traceback of an error."""

    def __post_init__(self) -> None:
        require_at_least("--folds", self.folds, 1)
        require_at_least("--step", self.step, 1)
        require_at_least("--gap", self.gap, 0)
        if self.warm_start and not self.refit:
            raise ConfigError("--warm-start needs --refit")
