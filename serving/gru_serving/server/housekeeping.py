"""What a server looks after while it serves: descriptors, and memory that is free but kept."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
from pathlib import Path
from typing import Any

from gru_serving.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

_SECONDS = 2.0
_FULL = 0.9
_OPEN = Path("/proc/self/fd")
_WORTH_IT = 32 << 20
# Memory freed after the last large request does not show up as a change in size.
_TIMES = 5


async def watch_descriptors(metrics: Metrics) -> None:
    """Keep the gauges of descriptors up to date, for ever, and warn while few are left.

    Without a descriptor a connection cannot be accepted: its client sees a reset, or waits.
    """
    if not _OPEN.is_dir():  # not Linux
        return
    import resource

    warned = False
    while True:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        try:
            count = len(await asyncio.to_thread(os.listdir, _OPEN))
        except OSError:  # it takes a descriptor to look
            count = most
        metrics.process_max_fds.set(most)
        metrics.process_open_fds.set(count)
        is_full = count > _FULL * most
        if is_full and not warned:
            log.warning(
                "%d of %d descriptors are open: connections beyond them fail. Allow more with "
                "`ulimit -n`, or put a proxy with fewer connections in front",
                count, most,
            )  # fmt: skip
        warned = is_full
        await asyncio.sleep(_SECONDS)


async def give_back_memory() -> None:
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
