"""Requests of one kind on their way into batches.

The rules are those of TensorFlow's SharedBatchScheduler: when a batch is full, what does not fit,
what is too much. Everything here happens under the scheduler's lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from serving.batch_task import Batch, Task
from serving.batching_options import BatchingOptions
from serving.errors import InvalidArgument, Unavailable


class BatchQueue:
    """The tasks of one kind: same model version, input tensors and output tensors.

    Within a queue, only tasks with the same shape key share a batch. `max_enqueued_batches` holds
    for each shape, and for all of them together in rows.

    Args:
        options: Sizes and timeout.
        process: Answers the tasks of a batch, all of them, and raises nothing.
    """

    def __init__(
        self,
        options: BatchingOptions,
        process: Callable[[list[Task]], None],
    ) -> None:
        self.options = options
        self.process = process
        self.shapes: dict[Hashable, deque[Batch]] = {}
        self.rows = 0  # of tasks that wait
        self.running = 0

    def add(
        self,
        key: Hashable,
        inputs: Sequence[np.ndarray],
        size: int,
        deadline: float | None,
        notify: Callable[[], None] | None,
    ) -> tuple[list[Task], bool]:
        """Put a request into batches; under the scheduler's lock.

        Args:
            key: Requests with different keys share no batch.
            inputs: Arrays with `size` rows.
            size: Rows.
            deadline: `time.perf_counter()` at which nobody waits any more; None for never.
            notify: Called once from a batch thread when the answer is there; None to wait for it.

        Returns:
            Its tasks, and whether a thread should look.

        Raises:
            ServingError: Too large, or the queue is full.
        """
        options = self.options
        if size > options.max_batch_size:
            raise InvalidArgument(
                f"Task size {size} is larger than maximum input batch size {options.max_batch_size}"
            )
        batches = self.shapes.get(key) or deque([Batch(self)])
        limit = options.max_execution_batch_size
        room = limit - batches[-1].size
        self._check_capacity(batches, size, room)
        if size <= room or not options.enable_large_batch_splitting:
            tasks = [Task(inputs, size, deadline)]
        else:
            tasks = _split(inputs, size, room, limit, deadline)
        if notify is not None and len(tasks) > 1:
            notify = _after(len(tasks), notify)
        look = False
        for task in tasks:
            task.notify = notify
            batch = batches[-1]
            if batch.size + task.size > limit:
                batch.full = look = True
                batch = Batch(self)
                batches.append(batch)
            if not batch.tasks:
                batch.due = task.enqueued + options.batch_timeout_micros * 1e-6
                look = True
            batch.tasks.append(task)
            batch.size += task.size
            task.batch = batch
            if batch.size >= limit:
                batch.full = look = True
        self.rows += size
        self.shapes[key] = batches
        return tasks, look

    def _check_capacity(self, batches: deque[Batch], size: int, room: int) -> None:
        options = self.options
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
            waiting = max(len(batches), sum(map(len, self.shapes.values())))
            raise Unavailable(
                f"{full}; currently {waiting} batches enqueued and max_enqueued_batches is "
                f"{options.max_enqueued_batches}"
            )


def _after(count: int, notify: Callable[[], None]) -> Callable[[], None]:
    """What to call so often, for `notify` to be called the last time."""
    left = [None] * (count - 1)

    def countdown() -> None:
        try:
            left.pop()  # atomic: tasks end in several threads
        except IndexError:
            notify()

    return countdown


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
