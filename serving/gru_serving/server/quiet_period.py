"""The last phase of a listener: it refuses requests until no more arrive."""

from __future__ import annotations

import asyncio
import time

STOPPING = "the server is stopping"

_QUIET_SECONDS, _MOST_SECONDS = 0.2, 2.0


class QuietPeriod:
    """Whether a listener refuses requests, and when the last one arrived.

    Attributes:
        begun: Whether it refuses.
    """

    def __init__(self) -> None:
        self.begun = False
        self._last = 0.0

    def note(self) -> None:
        """Record that a request was refused."""
        self._last = time.monotonic()

    async def pass_by(self) -> None:
        """Refuse new requests; returns when no more arrive, or after two seconds."""
        self.begun = True
        self._last = begun = time.monotonic()
        while time.monotonic() < min(self._last + _QUIET_SECONDS, begun + _MOST_SECONDS):
            await asyncio.sleep(_QUIET_SECONDS / 5)
