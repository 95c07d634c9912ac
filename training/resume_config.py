"""What to resume; see :mod:`training.config`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class ResumeConfig:
    """Go on with a training that was killed, with the settings it was begun with.

    It goes on from its last checkpoint, at most half a minute of training before it was killed,
    and ends with the same weights as without the break. Data that have changed since
    are refused. Distributed trainings write no checkpoints.
    """

    run_path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """Where the run was to be, as runs/NAME."""
    debug: bool = False
    """Show TensorFlow's messages, and where an error arose."""
