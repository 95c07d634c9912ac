"""Training as a user does: by the command, in a process of its own."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def train(path: Path, words: Sequence[str]) -> None:
    """Run `gru-train WORDS`, unless the run directory is there.

    Args:
        path: Path of the run directory.
        words: Arguments of the command, without the name and the folder of the run.
    """
    if not path.exists():
        command = [sys.executable, "-m", "gru_training", *words]
        command += ["--runs-dir", str(path.parent), "--name", path.name]
        subprocess.run(command, check=True, stdout=sys.stderr)
