"""Requests of one kind on their way into batches.

The rules are those of TensorFlow's SharedBatchScheduler: when a batch is full, what does not fit,
what is too much. Everything here happens under the scheduler's lock.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from gru_serving.config.batching_options import BatchingOptions
from gru_serving.engine.batching.task import Batch, Task
from gru_serving.engine.batching.waiter import Waiter
from gru_serving.errors import InvalidArgument, Unavailable

Tensors = tuple[Any, ...]

_AT_ONCE = -math.inf


class BatchQueue:
    """The tasks of one kind: same model version, input tensors and output tensors.

    Within a queue, only tasks with the same shape key share a batch. `max_enqueued_batches` holds
    for each shape, and for all of them together in rows.

    Args:
        options: Sizes and timeout.
        feeds: The input tensors, in the order in which tasks hold their arrays.
        fetches: The output tensors, in the order in which tasks get theirs.
        process: Given `feeds`, `fetches` and the tasks of a batch, answers all of them and raises
            nothing.
        patient: Whether a batch waits to fill.

    Attributes:
        feeds: As given.
        fetches: As given.
        patient: As given; may change.
        turn: The number of its last batch among those of all queues; 0 before the first.
        rows: Of tasks that wait.
        running: Batches under way.
    """

    def __init__(
        self,
        options: BatchingOptions,
        feeds: Tensors,
        fetches: Tensors,
        process: Callable[[Tensors, Tensors, list[Task]], None],
        patient: bool = True,
    ) -> None:
        self.feeds = feeds
        self.fetches = fetches
        self.patient = patient
        self._options = options
        self._process = process
        self.turn = 0
        self.rows = 0
        self.running = 0
        self._shapes: OrderedDict[Hashable, deque[Batch]] = OrderedDict()

    def add(
        self,
        key: Hashable,
        inputs: Sequence[np.ndarray],
        size: int,
        deadline: float | None,
        waiter: Waiter | None,
    ) -> tuple[list[Task], bool]:
        """Put a request into batches; under the scheduler's lock.

        Args:
            key: Requests with different keys share no batch.
            inputs: Arrays with `size` rows.
            size: Rows.
            deadline: `time.perf_counter()` at which nobody waits any more; None for never.
            waiter: Who waits for the answer in an event loop; None where a thread does.

        Returns:
            Its tasks, and whether a thread should look.

        Raises:
            ServingError: Too large, or the queue is full.
        """
        options = self._options
        if size > options.max_batch_size:
            raise InvalidArgument(
                f"Task size {size} is larger than maximum input batch size {options.max_batch_size}"
            )
        batches = self._shapes.get(key) or deque([Batch(key)])
        limit = options.max_execution_batch_size
        room = limit - batches[-1].size
        self._check_capacity(batches, size, room)
        if size <= room or not options.enable_large_batch_splitting:
            tasks = [Task(inputs, size, deadline)]
        else:
            tasks = _split(inputs, size, room, limit, deadline)
        if waiter is not None:
            waiter.expect(len(tasks))
        look = False
        for task in tasks:
            task.waiter = waiter
            batch = batches[-1]
            if batch.size + task.size > limit:
                batch.due = _AT_ONCE
                batch = Batch(key)
                batches.append(batch)
            if not batch.tasks:
                wait = options.batch_timeout_micros * 1e-6 if self.patient else 0.0
                batch.due = task.enqueued + wait
                look = True
            batch.tasks.append(task)
            batch.size += task.size
            task.batch = batch
            if batch.size >= limit:
                batch.due = _AT_ONCE  # and so for those who stay when others leave
                look = True
        self.rows += size
        self._shapes[key] = batches
        return tasks, look

    def process(self, tasks: list[Task]) -> None:
        """Answer the tasks of a batch."""
        self._process(self.feeds, self.fetches, tasks)

    def take(self, now: float) -> list[Task]:
        """The tasks of the next batch that is due.

        Args:
            now: `time.perf_counter()`; infinity for any batch.

        Returns:
            Empty where nothing is to run yet.
        """
        for key, batches in self._shapes.items():
            batch = batches[0]
            if batch.due <= now:
                self._shapes.move_to_end(key)
                self._remove(batch)
                self.rows -= batch.size
                tasks, batch.tasks = batch.tasks, []
                return tasks
        return []

    def withdraw(self, task: Task) -> bool:
        """Take a task back; False where it does not wait any more."""
        batch = task.batch
        if batch is None or task not in batch.tasks:
            return False
        batch.tasks.remove(task)
        batch.size -= task.size
        self.rows -= task.size
        if not batch.tasks:
            self._remove(batch)
        return True

    def _remove(self, batch: Batch) -> None:
        batches = self._shapes[batch.key]
        batches.remove(batch)
        if not batches:
            del self._shapes[batch.key]

    def waits(self) -> bool:
        """Whether any task does, with rows or without."""
        return bool(self._shapes)

    def due(self) -> float:
        """`time.perf_counter()` at which the first batch has to run; where one waits."""
        return min(batches[0].due for batches in self._shapes.values())

    def _check_capacity(self, batches: deque[Batch], size: int, room: int) -> None:
        options = self._options
        limit = options.max_execution_batch_size
        full = "The batch scheduling queue to which this task was submitted is full"
        if options.enable_large_batch_splitting:
            capacity = (options.max_enqueued_batches - len(batches)) * limit + room
            if size > capacity:
                raise Unavailable(
                    f"{full}; task size is {size} but scheduling capacity is only {capacity} "
                    f"(num_enqueued_batches={len(batches)}, "
                    f"max_enqueued_batches={options.max_enqueued_batches}, "
                    f"open_batch_size={batches[-1].size}, max_execution_batch_size={limit})"
                )
        if (size > room and len(batches) >= options.max_enqueued_batches) or (
            self.rows and self.rows + size > options.max_enqueued_batches * limit
        ):
            waiting = max(len(batches), sum(map(len, self._shapes.values())))
            raise Unavailable(
                f"{full}; currently {waiting} batches enqueued and max_enqueued_batches is "
                f"{options.max_enqueued_batches}"
            )


def _split(
    inputs: Sequence[np.ndarray], size: int, room: int, limit: int, deadline: float | None
) -> list[Task]:
    """A request as tasks: one that fills the open batch, and as many full ones as it takes."""
    ends = [*([room] if room else []), *range(room + limit, size, limit), size]
    starts = [0, *ends[:-1]]
    return [
        Task([array[start:end] for array in inputs], end - start, deadline)
        for start, end in zip(starts, ends, strict=True)
    ]
