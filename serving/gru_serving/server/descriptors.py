"""The descriptors of the process: how many are open, and a warning before there are no more."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

from gru_serving.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

_SECONDS = 2.0
_FULL = 0.9
_OPEN = Path("/proc/self/fd")


async def watch_descriptors(metrics: Metrics) -> None:
    """Keep the gauges of descriptors up to date, for ever, and warn while few are left.

    Without a descriptor a connection cannot be accepted: its client sees a reset, or waits.
    """
    if not _OPEN.is_dir():  # not Linux
        return
    import resource  # missing in Python for Windows

    warned = False
    while True:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        count = len(await asyncio.to_thread(os.listdir, _OPEN))
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
