"""Turns for long requests and answers, of which only a few are processed at a time."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType

LONG_BYTES = 1 << 20
"""Bytes beyond which a request or an answer waits for its turn."""

_TURNS = 2


class Turns:
    """The turns of one server, for its event loop.

    However many threads there are, the interpreter runs one at a time, and small requests need
    threads and time too.
    """

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(_TURNS)

    def take(self, size: int) -> Turn:
        """Return a turn to process this many bytes; few bytes do not wait.

        Args:
            size: Bytes to be read or written.
        """
        return Turn(self._free if size > LONG_BYTES else None)


class Turn:
    """An asynchronous context manager that waits for the turn and releases it at the end.

    Args:
        free: The turns that nobody has; None where their number is not limited.
    """

    __slots__ = ("_free", "_loop")

    def __init__(self, free: asyncio.Semaphore | None) -> None:
        self._free = free

    async def __aenter__(self) -> Turn:
        if self._free is not None:
            self._loop = asyncio.get_running_loop()
            free, self._free = self._free, None
            await free.acquire()
            self._free = free
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._give()

    def end(self) -> None:
        """Release the turn now; may be called from any thread."""
        if self._free is not None:
            # The event loop is closed only when nobody waits any more.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._give)

    def _give(self) -> None:
        if self._free is not None:
            free, self._free = self._free, None
            free.release()
