"""Writing in the background: a bounded queue with one thread behind it."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")

_REPEAT_SECONDS = 60.0


class BackgroundWriter(Generic[T]):
    """Passes items to a function in a thread of its own.

    Items that cannot be written (a full disk, a queue that grows faster than the disk writes) are
    dropped and counted; requests go on.

    Args:
        name: Name of what is written, for the log.
        write: Function that writes some items; may raise OSError.
        limit: Number of items that may wait.
        limit_bytes: Bytes of all items that wait; an item beyond that waits if no other does.
        at_once: Items handed over in one call; all of them count as lost when it fails.

    Attributes:
        dropped: Items lost so far.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[Sequence[T]], None],
        limit: int = 10_000,
        limit_bytes: int = 64 << 20,
        at_once: int = 512,
    ) -> None:
        self._name = name
        self._write = write
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._at_once = at_once
        self._waiting: deque[tuple[T, int]] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._closing = False
        self._said_at = -_REPEAT_SECONDS
        self._said = 0
        self._reason = ""
        self.dropped = 0
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def put(self, item: T, size: int = 0) -> None:
        """Queue an item to be written; returns immediately.

        Args:
            item: Entry to be written.
            size: Bytes that it keeps in memory.
        """
        with self._changed:
            many = len(self._waiting) >= self._limit
            large = self._waiting and self._bytes + size > self._limit_bytes
            if self._closing or many or large:
                self._drop(1, "it is written too slowly")
                return
            self._waiting.append((item, size))
            self._bytes += size
            if len(self._waiting) == 1:
                self._changed.notify()

    def close(self, seconds: float = 5.0) -> None:
        """Write the queued items within some time, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(seconds)
        with self._changed:
            if self._waiting:
                self._drop(len(self._waiting), "there was no time left to write them")
                self._waiting.clear()
            self._say(at_once=True)

    def _work(self) -> None:
        while True:
            with self._changed:
                while not (self._waiting or self._closing):
                    self._changed.wait(self._until_said())
                    self._say()
                if not self._waiting:
                    return
                count = min(self._at_once, len(self._waiting))
                taken = [self._waiting.popleft() for _ in range(count)]
                self._bytes -= sum(size for _, size in taken)
            try:
                self._write([item for item, _ in taken])
            except Exception as error:
                with self._changed:
                    self._drop(len(taken), str(error))
            del taken

    def _drop(self, count: int, reason: str) -> None:
        self.dropped += count
        self._reason = reason
        self._say()

    def _until_said(self) -> float | None:
        """Return the seconds until losses are due to be reported; None if there are none."""
        if self._said == self.dropped:
            return None
        return max(0.0, self._said_at + _REPEAT_SECONDS - time.monotonic())

    def _say(self, at_once: bool = False) -> None:
        seconds = self._until_said()
        if seconds is None or (seconds and not at_once):
            return
        self._said, self._said_at = self.dropped, time.monotonic()
        entries = "entry" if self.dropped == 1 else "entries"
        log.error("%s: %d %s lost so far: %s", self._name, self.dropped, entries, self._reason)
