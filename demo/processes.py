"""Processes that end with the demo, however it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

_STOP_TIMEOUT = 10.0  # seconds
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def stop_on_signals() -> None:
    """Turn the signals that ask a program to stop into a KeyboardInterrupt."""
    for number in _STOP_SIGNALS:
        under_nohup = signal.getsignal(number) is signal.SIG_IGN
        if number != signal.SIGHUP or not under_nohup:
            signal.signal(number, _interruption)


class _Interruption:
    """The handler of these signals: the first one interrupts, later ones are ignored.

    While a child is being started, the interruption waits: otherwise the child would be lost.
    """

    def __init__(self) -> None:
        self._held = self._came = False

    def __call__(self, *_: object) -> None:
        if self._came:
            return
        self._came = True
        if not self._held:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def held_back(self) -> Iterator[None]:
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._came:
            raise KeyboardInterrupt


_interruption = _Interruption()
_children: list[subprocess.Popen[bytes]] = []


@contextlib.contextmanager
def child(*arguments: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process in a session of its own, which does not outlive the context.

    Ctrl-C reaches only this process, which then ends the child and all that the child started.
    """
    with _interruption.held_back():
        process = subprocess.Popen([sys.executable, *arguments], start_new_session=True, **options)
        _children.append(process)
    try:
        yield process
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a child and all processes of its group: ask first, then kill."""
    for number, patience in ((signal.SIGTERM, _STOP_TIMEOUT), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    _children.remove(process)


def stop_all() -> None:
    """End all children that still run."""
    while _children:
        _stop(_children[-1])


def run(*arguments: str) -> None:
    """Run Python with these arguments, and wait for it.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    with child(*arguments) as process:
        if status := process.wait():
            raise subprocess.CalledProcessError(status, arguments)
