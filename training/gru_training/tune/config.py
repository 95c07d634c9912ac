"""The settings of a search; see `gru_training.config`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from gru_training.config import OptionalName, require_above_zero, require_at_least
from gru_training.errors import ConfigError


@dataclass(frozen=True)
class TuneConfig:
    """Search for the settings that do best on the validation rows, then train with them.

    Any setting of the training may follow TASK; the search leaves it as it is. The first trial has
    the default settings, which are kept unless the best ones are better by a standard error. Test
    rows are not looked at before the final training.

    gru-train tune sentiment --data tickets.csv --minutes 30

    gru-train tune sentiment --data tickets.csv --units 128 --vary learning_rate=1e-4:1e-2:log

    gru-train tune forecasting --data sales.csv --target revenue --trials 40 --parallel 2

    The study is kept in a folder. The same command continues it, also after Ctrl-C or a
    crash. Several machines that share the folder can run it at the same time.
    """

    task: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TASK")]
    """sentiment, forecasting or language."""
    minutes: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = None
    """Time for the search; trials that are running at its end are stopped. Default: 30 without
    --trials, else no limit. The final training comes on top."""
    trials: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Maximum number of trials; default: as many as fit into the time."""
    parallel: int = 1
    """Trials to run at the same time, each in a process of its own."""
    pruner: Literal["median", "hyperband", "none"] = "median"
    """When to stop a trial early. median: if it is worse than half of the trials were after as many
    epochs; hyperband: if it is not among the best third of its bracket (Li et al., 2018); none:
    never."""
    vary: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SETTING=RANGE")] = ()
    """Search this range of a setting, such as units=64:256, learning_rate=1e-4:1e-2:log or
    pooling=max,mean; in addition to the settings that are searched by default."""
    only: bool = False
    """Search only the settings of --vary."""
    seeds: int = 1
    """Final trainings with the settings found, each with a seed of its own; 0: none."""
    study: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Folder of the study, new or to be continued; default: in --runs-dir, named after the data."""
    name: OptionalName = None
    """Name of the final run; default: that of the study with -best."""
    debug: bool = False
    """Show TensorFlow's messages, and the traceback of an error."""
    training_flags: Annotated[tuple[str, ...], tyro.conf.Suppress, tyro.conf.Fixed] = ()
    """Settings of the training, which the search leaves as they are."""

    def __post_init__(self) -> None:
        if self.minutes is not None:
            require_above_zero("--minutes", self.minutes)
        if self.trials is not None:
            require_at_least("--trials", self.trials, 1)
        require_at_least("--parallel", self.parallel, 1)
        require_at_least("--seeds", self.seeds, 0)
        if self.only and not self.vary:
            raise ConfigError("--only needs the settings to search, as --vary units=64:256")

    @property
    def seconds(self) -> float | None:
        """Time for the search; None for as long as it takes."""
        if self.minutes is None:
            return None if self.trials is not None else 30 * 60.0
        return 60 * self.minutes
