"""Writing that requests do not wait for: a bounded queue and one thread behind it."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")

_SAY_AGAIN_SECONDS = 60.0


class BackgroundWriter(Generic[T]):
    """Hands items to a function in a thread of its own.

    What cannot be written (a full disk, a queue that grows faster than the disk writes) is dropped
    and counted; requests go on.

    Args:
        name: Of what is written, for the log.
        write: Writes some items; may raise OSError.
        limit: Items that may wait.
        at_once: Items handed over in one call; all of them count as lost when it fails.

    Attributes:
        dropped: Items lost so far.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[Sequence[T]], None],
        limit: int = 10_000,
        at_once: int = 512,
    ) -> None:
        self._name = name
        self._write = write
        self._limit = limit
        self._at_once = at_once
        self._waiting: deque[T] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._said = -_SAY_AGAIN_SECONDS
        self.dropped = 0
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def put(self, item: T) -> None:
        """Have an item written soon; returns at once."""
        with self._changed:
            if self._closing or len(self._waiting) >= self._limit:
                self._drop(1, "it is written too slowly")
                return
            self._waiting.append(item)
            if len(self._waiting) == 1:
                self._changed.notify()

    def close(self, seconds: float = 5.0) -> None:
        """Write what waits, within some time, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(seconds)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                if not self._waiting:
                    return
                count = min(self._at_once, len(self._waiting))
                items = [self._waiting.popleft() for _ in range(count)]
            try:
                self._write(items)
            except Exception as error:
                with self._changed:
                    self._drop(len(items), str(error))

    def _drop(self, count: int, reason: str) -> None:
        self.dropped += count
        if time.monotonic() - self._said >= _SAY_AGAIN_SECONDS:
            self._said = time.monotonic()
            log.error("%s: %d entries lost so far: %s", self._name, self.dropped, reason)
