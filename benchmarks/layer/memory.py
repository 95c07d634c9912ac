"""Peak memory of one call, as Linux counts it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Blocks of this size and more come from the system and go back to it at once, so that the peak
# holds nothing that an earlier call has left behind. To be set before the process starts.
ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}

# Keras' own layer cannot be made in the scope.
MEASURED = ("Keras", "keras_gru", "keras_gru in RematScope")

_CALLS = 3
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def peak_bytes(start: Callable[[], Any], run: Callable[[], Any]) -> int:
    """The least peak of resident memory in three calls, beyond what was there before the first.

    What a process keeps between calls counts, so each measurement needs a process of its own.
    The first call goes before, since it may compile.

    Args:
        start: A small call of the same kind, before the measurement: what is loaded once.
        run: The call.

    Raises:
        OSError: The system does not tell: this is no Linux, or it lacks /proc/self/clear_refs.
    """
    start()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    before = _resident("VmRSS")
    run()
    return min(_peak_of_call(run) for _ in range(_CALLS)) - before


def _peak_of_call(run: Callable[[], Any]) -> int:
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    _CLEAR.write_text("5", encoding="ascii")  # proc(5): the peak starts anew
    run()
    return _resident("VmHWM")


def _resident(field: str) -> int:
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{_STATUS} has no {field}")
