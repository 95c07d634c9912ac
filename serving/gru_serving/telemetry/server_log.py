"""The server's log on stderr: one line per message, whatever names it contains."""

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from gru_serving.printable import printable

log = logging.getLogger(__name__)

STILL_SECONDS = 5.0
_MAX_CHARACTERS = 4096


class OneLine(logging.Formatter):
    """Escapes and cuts messages, which contain names that clients choose; tracebacks stay."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Format the line without a traceback."""
        record.message = printable(record.message, _MAX_CHARACTERS)
        return super().formatMessage(record)


@contextmanager
def still(what: str, every: float = STILL_SECONDS) -> Iterator[None]:
    """Log repeatedly that something is still in progress, and for how long.

    Args:
        what: Name of the work in progress.
        every: Seconds between two lines; there is none for what takes less.
    """
    started, done = time.monotonic(), threading.Event()

    def tell() -> None:
        while not done.wait(every):
            log.info("Still %s, %.0f s ...", what, time.monotonic() - started)

    thread = threading.Thread(target=tell, name="still", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def start_log(process: str = "") -> None:
    """Send all messages from INFO on to stderr.

    Args:
        process: Name of the process before each message, where there are several.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine(f"%(asctime)s %(levelname).1s {process}%(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
