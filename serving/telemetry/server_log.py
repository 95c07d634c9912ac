"""The server's own log on stderr: one line per message, whatever the names in it."""

from __future__ import annotations

import logging
import sys

from serving.printable import printable

_LONGEST = 4096


class OneLine(logging.Formatter):
    """Escapes and cuts messages, which show names that clients choose; tracebacks stay."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """The line without a traceback."""
        record.message = printable(record.message, _LONGEST)
        return super().formatMessage(record)


def start_log() -> None:
    """Have all messages from INFO on written to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine("%(asctime)s %(levelname).1s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
