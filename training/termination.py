"""Ending by SIGTERM, as by service managers and `kill`, and by Ctrl-C."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Within, SIGTERM raises KeyboardInterrupt, so that what is half built is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set signal handlers
        return

    def handler(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextmanager
def remembered_interrupt() -> Iterator[Callable[[], None]]:
    """Within, call the yielded function between two steps: it raises an interrupt that was lost.

    Python drops a KeyboardInterrupt that arrives in a destructor, and TensorFlow's objects have
    many. A process that ignores SIGINT, such as a job in the background, keeps ignoring it.
    """
    previous = signal.getsignal(signal.SIGINT)
    received = threading.Event()

    def handler(*_: object) -> None:
        received.set()
        raise KeyboardInterrupt

    def check() -> None:
        if received.is_set():
            raise KeyboardInterrupt

    ours = threading.current_thread() is threading.main_thread() and callable(previous)
    if ours:
        signal.signal(signal.SIGINT, handler)
    try:
        yield check
    finally:
        if ours:
            signal.signal(signal.SIGINT, previous)
