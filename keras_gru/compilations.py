"""The programs that XLA compiles in a script: `python -m keras_gru compilations train.py`.

TensorFlow counts them nowhere that Python could read; it reports each on standard error.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

_MODULE = "device_compilation_profiler=1"
_COMPILATION_LINE = re.compile(r"\] Compiled (\S+) \d+ times, compile time: (\d+) us")
_LAYER_FUNCTION = re.compile(r"__inference_gru_([a-z]+)_\d+$")  # named in `kernel.execution`
_PARTS = {"forward": "GRU, forward", "backward": "GRU, backward", "other": "other functions"}
_INFO = re.compile(r"I\d{4} ")


class Compilation(NamedTuple):
    """One program.

    Attributes:
        part: Part of the layer, `"forward"` or `"backward"`, or `"other"` for a function of the
            caller or of another library.
        seconds: Time that its compilation took, in seconds.
    """

    part: str
    seconds: float


def run_counting(command: Sequence[str]) -> tuple[int, list[Compilation]]:
    """Run a Python script with its arguments.

    Its standard error is passed on, without the messages that only inform.

    Returns:
        Exit status of the script, and its compilations in their order.
    """
    found: list[Compilation] = []
    with subprocess.Popen(
        [sys.executable, *command], stderr=subprocess.PIPE, text=True, env=_environment(os.environ)
    ) as process:
        assert process.stderr is not None
        for line in _passed_on(process.stderr, found):
            sys.stderr.write(line)
    return process.returncode, found


def summary(found: Sequence[Compilation]) -> str:
    """Tabulate the number of programs and the seconds that their compilation took, by part."""
    seconds: dict[str, list[float]] = defaultdict(list)
    for part, took in found:
        seconds[part].append(took)
    rows = [(shown, seconds[part]) for part, shown in _PARTS.items() if part in seconds]
    rows.append(("together", [one.seconds for one in found]))
    lines = [f"{shown:<18}{len(took):>8}{sum(took):>9.2f}" for shown, took in rows]
    return "\n".join([f"{'compiled by XLA':<18}{'programs':>8}{'seconds':>9}", *lines])


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    modules = ",".join(filter(None, (given.get("TF_CPP_VMODULE"), _MODULE)))
    return {**given, "TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": modules}


def _passed_on(lines: Iterable[str], found: list[Compilation]) -> Iterator[str]:
    for line in lines:
        compiled = _COMPILATION_LINE.search(line)
        if compiled:
            of_layer = _LAYER_FUNCTION.match(compiled[1])
            part = of_layer[1] if of_layer else "other"
            found.append(Compilation(part, int(compiled[2]) / 1e6))
        elif not _INFO.match(line):
            yield line
