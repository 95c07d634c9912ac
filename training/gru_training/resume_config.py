"""What to resume; see `gru_training.config`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class ResumeConfig:
    """Continue a training that was killed, with its original settings.

    It continues from its last checkpoint, at most half a minute of training before it was killed,
    and ends with the same weights as without the interruption. Data that have changed since are
    refused. Distributed trainings write no checkpoints.
    """

    run_path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """Directory that the run was to have, such as runs/NAME."""
    debug: bool = False
    """Show TensorFlow's messages, and the traceback of an error."""
