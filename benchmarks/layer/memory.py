"""Peak memory of one call, as Linux counts it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Blocks of this size and more come from the system and go back to it at once, so that the peak
# holds nothing that an earlier call has left behind. To be set before the process starts.
ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}

_CALLS = 3
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def peak_bytes(run: Callable[[], Any]) -> int:
    """The least of three calls' peaks of resident memory, beyond what was resident before.

    Two calls go before, for compilation and caches.

    Raises:
        OSError: The system does not tell: this is no Linux, or it lacks /proc/self/clear_refs.
    """
    for _ in range(2):
        run()
    return min(_peak_of_call(run) for _ in range(_CALLS))


def _peak_of_call(run: Callable[[], Any]) -> int:
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    _CLEAR.write_text("5", encoding="ascii")  # proc(5): the peak starts anew
    before = _resident("VmRSS")
    run()
    return _resident("VmHWM") - before


def _resident(field: str) -> int:
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{_STATUS} has no {field}")
