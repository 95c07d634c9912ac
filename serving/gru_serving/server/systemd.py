"""Messages of the process to systemd, by sd_notify(3); nothing where no service manager listens."""

import asyncio
import logging
import os
import socket

log = logging.getLogger(__name__)

READY, STOPPING, ALIVE = "READY=1", "STOPPING=1", "WATCHDOG=1"


def notify(state: str) -> None:
    """Tell the service manager, if it listens, that the process is in this state."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # a name without a file
        address = f"\0{address[1:]}"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.sendto(state.encode(), address)
    except OSError as error:
        log.warning("NOTIFY_SOCKET=%s: cannot send %s: %s", address, state, error)


async def feed_watchdog() -> None:
    """Show twice in each WatchdogSec= of the service that the event loop runs, for ever."""
    microseconds = int(os.environ.get("WATCHDOG_USEC") or 0)
    meant = os.environ.get("WATCHDOG_PID") in (None, "", str(os.getpid()))
    while microseconds > 0 and meant:
        notify(ALIVE)
        await asyncio.sleep(microseconds / 2e6)
