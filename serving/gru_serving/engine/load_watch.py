"""The interruption of loads by a timeout or by the stop of the server."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gru_serving.errors import DeadlineExceeded, ServingError, Unavailable


class LoadWatch:
    """The time limit of one load.

    Args:
        seconds: Time allowed, in seconds; 0 for no limit.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds
        self._ends: float | None = None
        self._lock = threading.Lock()
        self._error: ServingError | None = None
        self._interrupts: list[Callable[[], None]] = []

    def begin(self) -> None:
        """Start the time limit."""
        if self._seconds > 0:
            self._ends = time.monotonic() + self._seconds

    def check(self) -> None:
        """Raise if the load was interrupted or its time is over.

        Raises:
            ServingError: The time is over, or the server stops.
        """
        if self._error is None and self._ends is not None and time.monotonic() > self._ends:
            self._expire()
        if self._error is not None:
            raise self._error

    @contextmanager
    def interrupting(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """Register a function that interrupts what runs inside the context.

        Another thread calls it.

        Any error that the interruption causes is replaced by its reason.

        Raises:
            ServingError: The time is over, or the server stops.
        """
        self.check()
        with self._lock:
            self._interrupts.append(interrupt)
        left = None if self._ends is None else max(0.0, self._ends - time.monotonic())
        timer = None
        if left is not None:
            timer = threading.Timer(min(left, threading.TIMEOUT_MAX), self._expire)
            timer.daemon = True
            timer.start()
        try:
            self.check()  # it may have been ended in between
            yield
        except Exception:
            self.check()
            raise
        finally:
            if timer is not None:
                timer.cancel()
            with self._lock:
                self._interrupts.remove(interrupt)
        self.check()

    def stop(self) -> None:
        """Interrupt the load because the server stops."""
        self._end(Unavailable("the server stops"))

    def _expire(self) -> None:
        self._end(
            DeadlineExceeded(
                f"loading took longer than --load_timeout_seconds allows ({self._seconds:g} s)"
            )
        )

    def _end(self, error: ServingError) -> None:
        with self._lock:
            if self._error is None:
                self._error = error
            interrupts = list(self._interrupts)
        for interrupt in interrupts:
            interrupt()


class LoadWatches:
    """The time limits of all loads in progress, through which a stopping server interrupts them.

    Args:
        seconds: Time allowed for each load, in seconds; 0 for no limit.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._watches: set[LoadWatch] = set()
        self._stopped = False

    @contextmanager
    def watch(self) -> Iterator[LoadWatch]:
        """Watch one load until the context ends."""
        watch = LoadWatch(self._seconds)
        with self._lock:
            self._watches.add(watch)
            stopped = self._stopped
        if stopped:
            watch.stop()
        try:
            yield watch
        finally:
            with self._lock:
                self._watches.discard(watch)

    def stop(self) -> None:
        """Interrupt all loads, and any that starts later."""
        with self._lock:
            self._stopped = True
            watches = list(self._watches)
        for watch in watches:
            watch.stop()
