"""The threads that run blocking calls for an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Job(Generic[T]):
    """A call in progress; whoever gets its `turn` decides whether it runs."""

    call: Callable[[], T]
    future: asyncio.Future[T]
    turn: threading.Lock = field(default_factory=threading.Lock)
    under_way: bool = True
    ended: asyncio.Future[None] | None = None

    def run(self) -> None:
        setter: Callable[[Any], None]
        outcome: Any
        try:
            setter, outcome = self.future.set_result, self.call()
        except BaseException as error:
            setter, outcome = self.future.set_exception, error
        # The event loop is closed only after all callers have left.
        with contextlib.suppress(RuntimeError):
            self.future.get_loop().call_soon_threadsafe(self._deliver, setter, outcome)
        # The traceback of an error refers to this frame: without this, the frame and the call's
        # arguments would stay in memory until the garbage collector runs.
        del self, setter, outcome

    def _deliver(self, setter: Callable[[Any], None], outcome: Any) -> None:
        self.under_way = False
        if not self.future.done():
            setter(outcome)
        if self.ended is not None and not self.ended.done():
            self.ended.set_result(None)

    async def wait(self) -> None:
        """Wait until the call has ended, however often the waiting task is cancelled."""
        while self.under_way:
            self.ended = self.future.get_loop().create_future()
            with contextlib.suppress(asyncio.CancelledError):
                await self.ended


class WorkerThreads:
    """A fixed number of threads with the transfer of calls and results from and to an event loop.

    It is like `loop.run_in_executor` with a ThreadPoolExecutor, without its second future, locks
    and counting, which halves the cost per call, a large part of a request to a small model.

    Args:
        count: Number of threads.
        name: Name of the threads, for people with debuggers.
    """

    def __init__(self, count: int, name: str) -> None:
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}_{i}", daemon=True)
            for i in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> WorkerThreads:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call in a thread.

        A call that is cancelled before its turn is not run. If it is cancelled later, this waits
        for its end, so that what the caller holds for the call outlives it.
        """
        job: _Job[T] = _Job(
            partial(contextvars.copy_context().run, call, *args, **kwargs),
            asyncio.get_running_loop().create_future(),
        )
        self._jobs.put(job)
        try:
            return await job.future
        except asyncio.CancelledError:
            if not job.turn.acquire(blocking=False):
                await job.wait()
            raise
        finally:
            del job  # likewise, by its future

    def close(self) -> None:
        """End the threads after the calls submitted so far."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if job.turn.acquire(blocking=False):
                job.run()
            # The last answer must not stay in memory while the thread waits.
            del job
