"""Returns memory to the system that is free but still held by the process."""

from __future__ import annotations

import asyncio
import ctypes
import os
from pathlib import Path
from typing import Any

_SECONDS = 2.0
_WORTH_IT = 32 << 20
# Memory freed after the last large request does not show up as a change in size.
_TIMES = 5


async def give_back() -> None:
    """Whenever the process has grown or shrunk, have the C library return what it keeps, for ever.

    Large requests leave free memory behind, even those that gRPC itself refuses; and more of it
    is free when a process begins to shrink than when it had just grown.
    """
    trim = _trim()
    if trim is None:
        return
    before = _resident()
    left = 0
    while True:
        await asyncio.sleep(_SECONDS)
        if abs(_resident() - before) > _WORTH_IT:
            left = _TIMES
        if left:
            left -= 1
            await asyncio.to_thread(trim, 0)
            before = _resident()


def _trim() -> Any:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # no glibc
        return None


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
