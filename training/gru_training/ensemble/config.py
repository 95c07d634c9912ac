"""The settings of an average of runs; see `gru_training.config`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from gru_training.config import OptionalName, RunConfig, require_at_least
from gru_training.errors import ConfigError

_FEWEST = 2


@dataclass(frozen=True)
class EnsembleConfig:
    """Average runs into one run, and distil it into one network if asked.

    The runs are of one task, with the same rows held out. What comes out is a run like any other:
    it answers, is compared, exported and served, and its report shows what was gained. For example:

    gru-train ensemble runs/seed-0 runs/seed-1 runs/seed-2

    gru-train ensemble runs/reviews --seeds 3 --distil

    The second command trains two more runs like runs/reviews first, with the next seeds on the same
    split, and at the end a network of the same size that learns what the average answers.
    """

    run_paths: Annotated[
        tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN [RUN ...]")
    ]
    """Two or more run directories of one task; one with --seeds."""
    seeds: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Average this many runs with the settings of the one named: train those that are missing, with
    the next seeds on the same split."""
    distil: bool = False
    """Also train one network with the settings of the first run on what the average answers."""
    name: OptionalName = None
    """Name of the new run, and before -distilled of the distilled one; default: that of the first
    run and -ensemble."""
    runs_dir: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """Folder of the new runs; default: that of the first run."""
    debug: bool = False
    """Show TensorFlow's messages, and where an error arose."""

    def __post_init__(self) -> None:
        RunConfig(name=self.name)  # refuses what is no plain name
        if self.seeds is not None:
            require_at_least("--seeds", self.seeds, _FEWEST)
            if len(self.run_paths) != 1:
                raise ConfigError(
                    f"--seeds needs one run directory, whose settings it uses, got "
                    f"{len(self.run_paths)}"
                )
        elif len(self.run_paths) < _FEWEST:
            raise ConfigError(
                "ensemble needs two or more run directories, or one and --seeds N, got "
                + (str(self.run_paths[0]) if self.run_paths else "none")
            )
