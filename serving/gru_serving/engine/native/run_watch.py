"""Ends runs of ONNX Runtime from outside: at their deadlines, and when the model is interrupted.

The runtime looks at a run's flag between two nodes. One thread of the process watches the deadlines
of all runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from gru_serving.errors import Code, DeadlineExceeded, ServingError

_POLL_SECONDS = 0.02


class RunWatch:
    """The runs of one model that are under way."""

    def __init__(self) -> None:
        self._flags: set[Any] = set()
        self._lock = threading.Lock()
        self._interrupted = False

    @contextmanager
    def watching(self, flags: Any, deadline: float | None) -> Iterator[None]:
        """For a run with these `RunOptions`, until the deadline (`time.monotonic`).

        Raises:
            ServingError: CANCELLED where the model was interrupted, DEADLINE_EXCEEDED.
        """
        with self._lock:
            self._flags.add(flags)
        self._check(deadline)
        if deadline is not None:
            _deadlines().add(flags, deadline)
        try:
            yield
        except Exception:
            self._check(deadline)  # it failed because it was ended
            raise
        finally:
            if deadline is not None:
                _deadlines().discard(flags)
            with self._lock:
                self._flags.discard(flags)
        self._check(deadline)

    def interrupt(self) -> None:
        """End all runs, and any that is begun after this."""
        with self._lock:
            self._interrupted = True
            under_way = list(self._flags)
        for flags in under_way:
            flags.terminate = True

    def _check(self, deadline: float | None) -> None:
        if self._interrupted:
            raise ServingError("Session has been closed.", Code.CANCELLED)
        if deadline is not None and time.monotonic() > deadline:
            raise DeadlineExceeded("Timed out waiting for notification")


class _Deadlines:
    """Sets the flags of runs whose time is over, in a thread that sleeps while there are none."""

    def __init__(self) -> None:
        self._ends: dict[Any, float] = {}
        self._some = threading.Event()
        threading.Thread(target=self._watch, name="deadlines", daemon=True).start()

    def add(self, flags: Any, deadline: float) -> None:
        self._ends[flags] = deadline
        if not self._some.is_set():
            self._some.set()

    def discard(self, flags: Any) -> None:
        self._ends.pop(flags, None)

    def _watch(self) -> None:
        while True:
            self._some.wait()
            time.sleep(_POLL_SECONDS)
            if not self._ends:
                self._some.clear()
                if not self._ends:
                    continue
                self._some.set()
            now = time.monotonic()
            for flags, deadline in list(self._ends.items()):
                if now > deadline:
                    flags.terminate = True


@cache
def _deadlines() -> _Deadlines:
    return _Deadlines()
