"""Threads among which a run of many rows is divided.

A run with few rows stays in the thread that asks for it, and wakes no second core: the runtime's
own threads are not used, as they would share out the small products inside a recurrent step. Rows
do not depend on each other, so a large run is divided by rows instead, and each part is a run of
its own in one thread. All models of a process share the threads.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from gru_serving.config.cpus import schedulable_cpus

T = TypeVar("T")

LEAST_ROWS = 8
"""Rows of a part; for fewer a second thread costs more than it saves."""

CALM_SECONDS = 0.05
"""So long after the last time that two runs met, runs are not divided."""

_lock = threading.Lock()
_running = 0
_met = -CALM_SECONDS


@contextmanager
def running() -> Iterator[bool]:
    """Count a run for as long as it lasts; whether it is likely to have the process to itself.

    Where several clients ask, there are moments at which one of their runs is alone. The others
    come before it ends, so what matters is whether runs have met lately.
    """
    global _running, _met  # noqa: PLW0603
    now = time.monotonic()
    with _lock:
        if _running:
            _met = now
        alone = now - _met >= CALM_SECONDS
        _running += 1
    try:
        yield alone
    finally:
        with _lock:
            _running -= 1


def parts_of(rows: int, most: int) -> list[slice]:
    """The rows of a run in parts of about equal size, at most so many."""
    count = max(1, min(most, rows // LEAST_ROWS))
    ends = [rows * i // count for i in range(count + 1)]
    return [slice(low, high) for low, high in itertools.pairwise(ends)]


def in_parts(call: Callable[[slice], T], parts: Sequence[slice]) -> list[T]:
    """The results of a call on each part; the first part runs in this thread."""
    if len(parts) == 1:
        return [call(parts[0])]
    others = [_pool().submit(call, part) for part in parts[1:]]
    try:
        first = call(parts[0])
    finally:
        for other in others:
            other.exception()  # none may outlive this call
    return [first, *(other.result() for other in others)]


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, schedulable_cpus() - 1), thread_name_prefix="rows")
