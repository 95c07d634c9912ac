"""Asking a process of its own, for what only the first use in a process shows."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

COMPILATIONS = {"TF_CPP_VMODULE": "device_compilation_profiler=1", "TF_CPP_MIN_LOG_LEVEL": "0"}
"""Environment in which TensorFlow reports what it compiles: the only place where it does."""


class Answer(NamedTuple):
    """What the process found."""

    found: dict[str, float]
    compiled: int
    """Programs that it compiled, with `COMPILATIONS` in its environment."""


def ask(arguments: Sequence[str], environment: Mapping[str, str], about: str) -> Answer:
    """Run `python -m ARGUMENTS` without a GPU and read the JSON in its last line.

    Args:
        arguments: After `-m`.
        environment: Beside that of this process.
        about: What failed, for the error.

    Raises:
        RuntimeError: The process failed; holds the end of what it wrote.
    """
    run = subprocess.run(
        [sys.executable, "-m", *arguments],
        env={**os.environ, **environment, "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise RuntimeError(f"{about} failed:\n{run.stderr[-2000:]}")
    found = json.loads(run.stdout.splitlines()[-1])
    return Answer(found, run.stderr.count("] Compiled __inference"))
