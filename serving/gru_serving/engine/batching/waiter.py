"""Who waits for an answer: a thread, or a coroutine of an event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gru_serving.engine.batching.task import Task


class Waiter:
    """A coroutine that waits for the tasks of one request.

    Args:
        answered: Of its event loop; gets a result when the last task has an answer.
    """

    __slots__ = ("_others", "answered")

    def __init__(self, answered: asyncio.Future[None]) -> None:
        self.answered = answered
        self._others: list[None] = []

    def expect(self, tasks: int) -> None:
        """So many tasks there are; before the first has an answer."""
        self._others = [None] * (tasks - 1)

    def has_all(self) -> bool:
        """Called once for each task that has its answer; whether it was the last one."""
        try:
            self._others.pop()  # atomic: tasks end in several threads
        except IndexError:
            return True
        return False


def wake(tasks: Iterable[Task]) -> None:
    """Wake those who wait for tasks that have their answers, each event loop once.

    A loop that was woken wants the interpreter's lock, and every call that wakes it lets go of that
    lock: with a call for each of the tasks, the batch's thread would get it back late so many
    times, and the next batch would begin the later for it.
    """
    answered: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for task in tasks:
        if task.waiter is None:
            task.release()
        elif task.waiter.has_all():
            future = task.waiter.answered
            answered.setdefault(future.get_loop(), []).append(future)
    for loop, futures in answered.items():
        # The loop is closed only after all callers have left.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle_all, futures)


def settle(future: asyncio.Future[None]) -> None:
    """Let the loop go on that waits for it; once, whoever comes first."""
    if not future.done():
        future.set_result(None)


def _settle_all(futures: Iterable[asyncio.Future[None]]) -> None:
    for future in futures:
        settle(future)
