"""Interruption by Ctrl-C, and by SIGTERM as sent by service managers and `kill`."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130
"""The exit status of an interrupted command, as shells report SIGINT."""

_received = threading.Event()


def _interrupt(*_: object) -> None:
    _received.set()
    raise KeyboardInterrupt


def interrupted() -> bool:
    """Tell whether a signal of a surrounding `remembered_interrupts` has come."""
    return _received.is_set()


def check_interrupt() -> None:
    """Raise an interrupt that was lost; for use between two steps.

    Raises:
        KeyboardInterrupt: A signal of a surrounding `remembered_interrupts` has come.
    """
    if _received.is_set():
        raise KeyboardInterrupt


@contextmanager
def remembered_interrupts(*numbers: signal.Signals) -> Iterator[None]:
    """Raise KeyboardInterrupt for these signals inside the context, and remember them.

    An interrupt can be lost: Python drops one that arrives in a destructor (here without the usual
    traceback), and one that arrives while TensorFlow traces a function may come out as a
    ValueError, which becomes an interrupt again at the end of this context. A process that ignores
    a signal, such as a job in the background, keeps ignoring it.

    Args:
        numbers: SIGINT, SIGTERM or both.

    Raises:
        KeyboardInterrupt: A signal came and another error ended the block.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set signal handlers
        return
    before = {number: signal.getsignal(number) for number in numbers}
    outermost = _interrupt not in before.values()
    for number, handler in before.items():
        if handler not in (signal.SIG_IGN, None):  # None: set by a library, not from Python
            signal.signal(number, _interrupt)
    print_unraisable = sys.unraisablehook

    def hook(unraisable: "sys.UnraisableHookArgs", /) -> None:
        if not (_received.is_set() and unraisable.exc_type is KeyboardInterrupt):
            print_unraisable(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    except Exception as error:
        if _received.is_set():
            raise KeyboardInterrupt from error
        raise
    finally:
        sys.unraisablehook = print_unraisable
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)
        if outermost:
            _received.clear()
