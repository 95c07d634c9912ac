"""Measurements in a fresh process, for costs that only the first use in a process has."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

COMPILATIONS = {"TF_CPP_VMODULE": "device_compilation_profiler=1", "TF_CPP_MIN_LOG_LEVEL": "0"}
"""Environment in which TensorFlow reports what it compiles: the only place where it does."""


class Answer(NamedTuple):
    """Result of the process."""

    found: dict[str, float]
    compiled: int
    """Programs that it compiled, with `COMPILATIONS` in its environment."""


def ask(arguments: Sequence[str], environment: Mapping[str, str], about: str) -> Answer:
    """Run `python -m ARGUMENTS` without a GPU and read the JSON in its last line.

    Args:
        arguments: Arguments of the command after `-m`.
        environment: Environment variables, added to those of this process.
        about: Subject of the error message, should the process fail.

    Raises:
        RuntimeError: The process failed; the message contains the end of its output.
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
