"""The programs that XLA compiles in a script: `python -m keras_gru compilations train.py`.

TensorFlow has no counter of them that Python could read. It reports each one on standard error, in
several messages of one thread: first the shapes of the arguments, then the time.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

_MODULES = "device_compilation_profiler=1,device_executable_persistor=1,local_service=3"
# Informative messages, and those about programs that were read, which TensorFlow reports as errors.
_UNSAID = re.compile(r"I\d{4} |.*(cpu_aot_loader\.cc|XlaSerializedCacheEntry: )")
_MESSAGE = re.compile(r"I\d{4} \S+\s+(?P<thread>\d+) (?P<module>\w+)\.\w+:\d+\] (?P<text>.*)")
_COMPILED = re.compile(r"Compiled (\S+) \d+ times, compile time: (\d+) us")
_ARGUMENTS = re.compile(r"Computation Layout: \((.*)\)->")
_READ = re.compile(r"Loading cached entry for: ")
_SHAPE = re.compile(r"\[([\d,]*)\]")
_LAYER_FUNCTION = re.compile(r"__inference_gru_([a-z]+)_\d+$")  # named in `kernel.execution`
_PARTS = {"forward": "GRU, forward", "backward": "GRU, backward", "other": "other functions"}
# Number of programs of one pass above which a change of the data is suggested.
_MANY = 4

Shape = tuple[int, ...]


class Compilation(NamedTuple):
    """One compiled program."""

    part: str
    """Part of the layer, `"forward"` or `"backward"`, or `"other"` for a function of the caller or
    of another library."""
    seconds: float
    """Time that its compilation or reading took, in seconds."""
    shapes: tuple[Shape, ...] = ()
    """Shapes of its arguments, if TensorFlow told them."""
    kept: bool = False
    """Whether it was read from where an earlier process had kept it."""

    @property
    def sizes(self) -> tuple[int, int, int | None, int] | None:
        """Rows, steps, features and units of a program of the layer; None if they are not known.

        The rows are those of one block of the batch; rows and steps include padding. There are no
        features if the inputs are projected before the program runs.
        """
        states = [shape for shape in self.shapes if len(shape) == 2]
        longer = [shape for shape in self.shapes if len(shape) == 3]
        if self.part == "other" or not states or not longer:
            return None
        rows, units = states[0]
        if self.part == "forward":
            _, steps, features = longer[0]
            return rows, steps, None if features == 3 * units else features, units
        steps = next((shape[0] for shape in longer if shape[1:] == states[0]), longer[0][1])
        return rows, steps, None, units


def run_counting(command: Sequence[str]) -> tuple[int, list[Compilation]]:
    """Run a Python script with its arguments.

    Its standard error is passed on, without informative messages.

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
    """Tabulate the programs with the seconds of each, and suggest how there would be fewer."""
    lines = [f"{'compiled by XLA':<18}{'rows':>6}{'steps':>7}{'features':>10}{'units':>7}{'s':>8}"]
    for one in found:
        sizes = one.sizes or (None,) * 4
        cells = ["" if size is None else str(size) for size in sizes]
        kept = "  kept by an earlier process" if one.kept else ""
        widths = zip(cells, (6, 7, 10, 7), strict=True)
        lines.append(
            f"{_PARTS[one.part]:<18}{''.join(f'{cell:>{width}}' for cell, width in widths)}"
            f"{one.seconds:>8.2f}{kept}"
        )
    seconds = sum(one.seconds for one in found)
    plural = "" if len(found) == 1 else "s"
    lines.append(f"{'together':<18}{len(found):>6} program{plural}{seconds:>22.2f}")
    return "\n".join([*lines, *_advice(found)])


def _advice(found: Sequence[Compilation]) -> Iterator[str]:
    compiled = [one for one in found if not one.kept and one.sizes is not None]
    of_rows: dict[Any, set[int]] = {}
    of_steps: dict[Any, set[int]] = {}
    for one in compiled:
        assert one.sizes is not None
        rows, steps, *others = one.sizes
        of_rows.setdefault((one.part, steps, *others), set()).add(rows)
        of_steps.setdefault((one.part, rows, *others), set()).add(steps)
    if max(map(len, of_rows.values()), default=0) >= _MANY:
        yield "Many numbers of rows: batch with drop_remainder=True, or into few sizes."
    if max(map(len, of_steps.values()), default=0) >= _MANY:
        yield "Many lengths: put sequences of similar length into a batch, and cut the longest."
    if len(compiled) >= _MANY:
        yield (
            "Later runs need not compile them: call gru_training.programs.keep_programs() before "
            "TensorFlow is imported. A run of few steps needs no programs: GRU(..., path='plain')."
        )


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    modules = ",".join(filter(None, (given.get("TF_CPP_VMODULE"), _MODULES)))
    return {**given, "TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": modules}


def _passed_on(lines: Iterable[str], found: list[Compilation]) -> Iterator[str]:
    shapes: dict[str, tuple[Shape, ...]] = {}
    read: set[str] = set()
    for line in lines:
        message = _MESSAGE.match(line)
        thread, text = (message["thread"], message["text"]) if message else ("", line)
        compiled, arguments, kept = (
            pattern.match(text) for pattern in (_COMPILED, _ARGUMENTS, _READ)
        )
        if compiled:
            of_layer = _LAYER_FUNCTION.match(compiled[1])
            part = of_layer[1] if of_layer else "other"
            found.append(
                Compilation(part, int(compiled[2]) / 1e6, shapes.pop(thread, ()), thread in read)
            )
            read.discard(thread)
        elif arguments or kept:
            told = arguments[1] if arguments else text.partition("[],")[2]
            shapes[thread] = tuple(
                tuple(map(int, filter(None, shape.split(",")))) for shape in _SHAPE.findall(told)
            )
            if kept:
                read.add(thread)
        elif not _UNSAID.match(line):
            yield line
