"""One request in a batch, and who waits for it: a thread or a coroutine."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from serving.batch_scheduler import Batch

Caller = TypeVar("Caller", "BlockedCaller", "AwaitingCaller")


class BlockedCaller:
    """A thread that waits for its answer."""

    __slots__ = ("_done",)

    def __init__(self) -> None:
        # A bare lock is the cheapest thing to wait for; an Event makes three objects per task.
        self._done = threading.Lock()
        self._done.acquire()

    def wake(self) -> None:
        """The answer is there."""
        self._done.release()

    def wait(self, seconds: float | None) -> bool:
        """Wait for the answer; False when the time is over before."""
        return self._done.acquire(timeout=-1 if seconds is None else seconds)


class AwaitingCaller:
    """A coroutine that waits for its answer; its thread goes on with others."""

    __slots__ = ("_answered", "_loop")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._answered: asyncio.Future[bool] = self._loop.create_future()

    def wake(self) -> None:
        """The answer is there."""
        # The loop is closed only where nobody waits any more.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle, True)

    async def wait(self, seconds: float | None) -> bool:
        """Wait for the answer; False when the time is over before."""
        if seconds is None:
            return await self._answered
        over = self._loop.call_later(seconds, self._settle, False)
        try:
            return await self._answered
        finally:
            over.cancel()

    def _settle(self, answered: bool) -> None:
        if not self._answered.done():
            self._answered.set_result(answered)


class Task(Generic[Caller]):
    """One request, or the part of one that goes into one batch.

    Attributes:
        inputs: Arrays with equal first dimensions.
        size: That dimension.
        deadline: `time.perf_counter()` at which nobody waits any more; None for never.
        caller: Who waits for it.
        enqueued: The same clock when it was handed in.
        outputs: The answer, once there.
        error: Or why there is none.
    """

    __slots__ = ("batch", "caller", "deadline", "enqueued", "error", "inputs", "outputs", "size")

    def __init__(
        self, inputs: Sequence[np.ndarray], size: int, deadline: float | None, caller: Caller
    ) -> None:
        self.caller: Caller = caller
        self.inputs = inputs
        self.size = size
        self.deadline = deadline
        self.enqueued = time.perf_counter()
        self.batch: Batch | None = None
        self.outputs: list[np.ndarray] = []
        self.error: Exception | None = None

    def finish(self, outputs: list[np.ndarray]) -> None:
        """Answer; wakes the caller."""
        self.outputs = outputs
        self.caller.wake()

    def fail(self, error: Exception) -> None:
        """Answer with an error; wakes the caller."""
        self.error = error
        self.caller.wake()

    def seconds_left(self) -> float | None:
        """Until the deadline; None where there is none."""
        if self.deadline is None:
            return None
        return max(0.0, self.deadline - time.perf_counter())
