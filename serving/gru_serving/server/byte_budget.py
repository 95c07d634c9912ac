"""Limits on the bytes of one request and of all requests in progress."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from gru_serving.errors import ResourceExhausted
from gru_serving.telemetry.refusals import Reason, Refusals

# Bytes of a request up to which it is not counted. The number of such requests is limited by the
# connections over REST, and by `call` over gRPC.
FREE_BYTES = 1 << 16
_CALLS_PER_MIB = 32
_STEP = 1 << 20


class _Wish(NamedTuple):
    """Bytes for which a request waits."""

    held: Held
    size: int
    granted: asyncio.Future[None]


class ByteBudget:
    """Counts the bytes of the requests in progress, for one event loop.

    A request that does not fit waits for some time in order of arrival, and is refused afterwards.
    While it waits, it is not read any further if the transport can stop reading; otherwise at most
    as many bytes as the budget may wait. The oldest request never waits, which prevents deadlocks,
    so the budget may be exceeded by one request.

    Args:
        one: Most bytes of one request.
        together: Most bytes of all requests.
        patience: Seconds to wait.
        refusals: Counter of the requests that are refused.
    """

    def __init__(
        self,
        one: int = 128 << 20,
        together: int = 512 << 20,
        patience: float = 10.0,
        refusals: Refusals | None = None,
    ) -> None:
        self.one = one
        self._together = together
        self._free = together
        self._patience = patience
        self._waiting: deque[_Wish] = deque()
        self._refusals = refusals or Refusals()
        self._most_calls = _CALLS_PER_MIB * (together >> 20)
        self._calls = 0
        self._under_way: dict[Held, None] = {}  # the oldest first

    @property
    def most(self) -> int:
        """The bytes that a request may take once it is read."""
        return max(self.one, self._together)

    @contextmanager
    def hold(self) -> Iterator[Held]:
        """Count the bytes of one request until it is answered."""
        held = Held(self)
        try:
            yield held
        finally:
            if held in self._under_way:
                del self._under_way[held]
                self.give(held.bytes)

    @contextmanager
    def call(self) -> Iterator[None]:
        """Count a gRPC call while it is in progress, since one connection may carry any number.

        Raises:
            ResourceExhausted: There are as many as the server keeps in memory.
        """
        if self._calls >= self._most_calls:
            raise self._refusal()
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    async def take(self, held: Held, size: int, in_memory: bool) -> int:
        """Count further bytes, in steps.

        Args:
            held: Request that holds them.
            size: Least number of bytes to count.
            in_memory: Whether the bytes are in memory already.

        Returns:
            Number of bytes counted; all remaining ones for a request beyond the whole budget.

        Raises:
            ResourceExhausted: The bytes do not fit.
        """
        size = min(max(size, _STEP), self._together)
        self._under_way[held] = None
        if self._is_oldest(held) or (not self._waiting and size <= self._free):
            self._free -= size
            return size
        if in_memory and sum(wish.size for wish in self._waiting) + size > self._together:
            raise self._refusal()
        loop = asyncio.get_running_loop()
        wish = _Wish(held, size, loop.create_future())
        self._waiting.append(wish)
        timer = loop.call_later(self._patience, self._give_up, wish.granted)
        try:
            await wish.granted
        except BaseException:
            if wish in self._waiting:
                self._waiting.remove(wish)
            else:  # granted, and cancelled at the same time
                self._free += size
            self._grant()
            raise
        finally:
            timer.cancel()
        return size

    def _is_oldest(self, held: Held) -> bool:
        return next(iter(self._under_way)) is held

    def _give_up(self, granted: asyncio.Future[None]) -> None:
        if not granted.done():
            granted.set_exception(self._refusal())

    def _refusal(self) -> ResourceExhausted:
        text = (
            f"the requests in progress have reached --max_requests_mib={self._together >> 20}; "
            "try again later"
        )
        self._refusals.note(Reason.BUSY, text)
        return ResourceExhausted(text)

    def give(self, size: int) -> None:
        """Release counted bytes."""
        self._free += size
        self._grant()

    def _grant(self) -> None:
        for wish in list(self._waiting):
            if wish.granted.done():  # refused, and its task is about to say so
                continue
            if wish.size > self._free and not self._is_oldest(wish.held):
                break
            self._waiting.remove(wish)
            self._free -= wish.size
            wish.granted.set_result(None)
        # The request that became the oldest may be behind others in the queue.
        for wish in self._waiting:
            if self._is_oldest(wish.held) and not wish.granted.done():
                self._waiting.remove(wish)
                self._free -= wish.size
                wish.granted.set_result(None)
                break


@dataclass(slots=True, eq=False)
class Held:
    """The bytes counted for one request.

    Attributes:
        budget: Budget that counts them.
        bytes: Number of bytes counted for the request.
    """

    budget: ByteBudget
    bytes: int = 0

    @property
    def limit(self) -> int:
        """The bytes that a request may have."""
        return self.budget.one

    async def grow(self, size: int, in_memory: bool = False) -> None:
        """Change the number of bytes counted for the request.

        Args:
            size: Number of all bytes of the request.
            in_memory: Whether the bytes are in memory already.

        Raises:
            ResourceExhausted: The bytes do not fit beside the others.
        """
        if size > max(self.bytes, FREE_BYTES):
            self.bytes += await self.budget.take(self, size - self.bytes, in_memory)

    def shrink(self, size: int) -> None:
        """Reduce the count to this many bytes."""
        if size < self.bytes:
            self.budget.give(self.bytes - size)
            self.bytes = size
