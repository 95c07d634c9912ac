"""One request on its way through the batcher, whole or in parts."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Sequence

import numpy as np

from gru_serving.engine.batching.waiter import Waiter
from gru_serving.errors import InvalidArgument


class Task:
    """One request, or the part of one that goes into one batch.

    Attributes:
        inputs: Arrays with equal first dimensions.
        size: That dimension.
        deadline: `time.perf_counter()` at which nobody waits any more; None for never.
        enqueued: The same clock when it was handed in.
        waiter: Who waits for the answer in an event loop; None where a thread does.
        outputs: The answer, once there.
        error: Or why there is none.
    """

    __slots__ = (
        *("_done", "batch", "deadline", "enqueued", "error"),
        *("inputs", "outputs", "size", "waiter"),
    )

    def __init__(self, inputs: Sequence[np.ndarray], size: int, deadline: float | None) -> None:
        self.inputs = inputs
        self.size = size
        self.deadline = deadline
        self.enqueued = time.perf_counter()
        self.waiter: Waiter | None = None
        self.batch: Batch | None = None
        self.outputs: list[np.ndarray] = []
        self.error: Exception | None = None
        # A bare lock is the cheapest thing to wait for; an Event makes three objects per task.
        self._done = threading.Lock()
        self._done.acquire()

    def release(self) -> None:
        """Let the thread go on that waits: the answer is there."""
        self._done.release()

    def wait(self) -> bool:
        """Wait for the answer; False when the deadline came first."""
        if self.deadline is None:
            return self._done.acquire()
        return self._done.acquire(timeout=max(0.0, self.deadline - time.perf_counter()))


class Batch:
    """Tasks of one queue and one shape that will run together; as long as it waits, at least one.

    Args:
        key: The shape.

    Attributes:
        due: `time.perf_counter()` at which it runs, if a thread is free.
    """

    __slots__ = ("due", "key", "size", "tasks")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.tasks: list[Task] = []
        self.size = 0
        self.due = 0.0


def rows_of(arrays: Sequence[np.ndarray]) -> int:
    """The first dimension that the inputs of a request have in common.

    Raises:
        InvalidArgument: With TF Serving's text: they have none.
    """
    if not arrays:
        raise InvalidArgument("Batching Run() must have at least one input tensor")
    for array in arrays:
        if array.ndim == 0:
            raise InvalidArgument("Batching Run() input tensors must have at least one dimension")
        if len(array) != len(arrays[0]):
            raise InvalidArgument("Batching Run() input tensors must have equal 0th-dimension size")
    return len(arrays[0])


def longest_timeout(tasks: Sequence[Task]) -> int:
    """Milliseconds for the run of a batch: those of its most patient task; 0 for no limit."""
    deadlines = [task.deadline for task in tasks if task.deadline is not None]
    if len(deadlines) < len(tasks):
        return 0
    return max(1, int((max(deadlines) - time.perf_counter()) * 1000))
