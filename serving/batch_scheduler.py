"""Batches in the making: queues of tasks, and the threads that take full batches from them.

Semantics of TensorFlow's SharedBatchScheduler. Callers hand in a task and block; the threads go
round the queues and run whatever is due. All queues share one lock: what happens under it is a few
list operations, far cheaper than waking a second thread would be.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from serving.batching_options import BatchingOptions, PoolOptions
from serving.errors import (
    DeadlineExceeded,
    InvalidArgument,
    ResourceExhausted,
    ServingError,
    Unavailable,
)

TIMED_OUT_IN_QUEUE = "Run() timeout exceeded while waiting in batching queue"


class Task:
    """One request, or the part of one that goes into one batch.

    Attributes:
        inputs: Arrays with equal first dimensions.
        size: That dimension.
        deadline: `time.perf_counter()` at which nobody waits any more; None for never.
        enqueued: The same clock when it was handed in.
        notify: Called from a batch thread when there is an answer; None where a thread waits.
        outputs: The answer, once there.
        error: Or why there is none.
    """

    __slots__ = (
        *("_done", "batch", "deadline", "enqueued", "error"),
        *("inputs", "notify", "outputs", "size"),
    )

    def __init__(self, inputs: Sequence[np.ndarray], size: int, deadline: float | None) -> None:
        self.inputs = inputs
        self.size = size
        self.deadline = deadline
        self.enqueued = time.perf_counter()
        self.notify: Callable[[], None] | None = None
        self.batch: Batch | None = None
        self.outputs: list[np.ndarray] = []
        self.error: Exception | None = None
        # A bare lock is the cheapest thing to wait for; an Event makes three objects per task.
        self._done = threading.Lock()
        self._done.acquire()

    def finish(self, outputs: list[np.ndarray]) -> None:
        """Answer; wakes the caller."""
        self.outputs = outputs
        self._tell()

    def fail(self, error: Exception) -> None:
        """Answer with an error; wakes the caller."""
        self.error = error
        self._tell()

    def _tell(self) -> None:
        if self.notify is None:
            self._done.release()
        else:
            self.notify()

    def wait(self) -> bool:
        """Wait for the answer; False when the deadline came first."""
        if self.deadline is None:
            return self._done.acquire()
        return self._done.acquire(timeout=max(0.0, self.deadline - time.perf_counter()))


class Batch:
    """Tasks of one queue and one shape that will run together."""

    __slots__ = ("due", "full", "queue", "size", "tasks")

    def __init__(self, queue: BatchQueue) -> None:
        self.queue = queue
        self.tasks: list[Task] = []
        self.size = 0
        self.due = 0.0
        self.full = False


class Pending:
    """One request on its way: a task, or several where it was split.

    Args:
        scheduler: Has the tasks.
        tasks: In the order of their rows.
    """

    __slots__ = ("_scheduler", "tasks")

    def __init__(self, scheduler: BatchScheduler, tasks: Sequence[Task]) -> None:
        self._scheduler = scheduler
        self.tasks = tasks

    def done(self) -> bool:
        """Whether the answer is there."""
        return all(task.outputs or task.error for task in self.tasks)

    def result(self) -> list[np.ndarray]:
        """The answer, when it is there: one array per output.

        Raises:
            ServingError: What the run raised.
        """
        tasks = self.tasks
        for task in tasks:
            if task.error is not None:
                raise task.error
        if len(tasks) == 1:
            return tasks[0].outputs
        return [np.concatenate(parts) for parts in zip(*(t.outputs for t in tasks), strict=True)]

    def give_up(self) -> ServingError:
        """Wait no longer; what did not start to run yet never will.

        Returns:
            What to tell the client, if it still is there.
        """
        withdrawn = [self._scheduler.withdraw(task) for task in self.tasks]
        if all(withdrawn):
            return ResourceExhausted(TIMED_OUT_IN_QUEUE)
        return DeadlineExceeded("Timed out waiting for notification")


class BatchQueue:
    """The tasks of one kind: same model version, input tensors and output tensors.

    Within a queue, only tasks with the same shape key share a batch. `max_enqueued_batches` holds
    for each shape, and for all of them together in rows.

    Args:
        scheduler: Runs the batches.
        options: Sizes and timeout.
        process: Answers the tasks of a batch, all of them, and raises nothing.
    """

    def __init__(
        self,
        scheduler: BatchScheduler,
        options: BatchingOptions,
        process: Callable[[list[Task]], None],
    ) -> None:
        self._scheduler = scheduler
        self.options = options
        self.process = process
        self.shapes: dict[Hashable, deque[Batch]] = {}
        self.rows = 0  # of tasks that wait
        self.running = 0

    def submit(
        self,
        key: Hashable,
        inputs: Sequence[np.ndarray],
        size: int,
        deadline: float | None,
        notify: Callable[[], None] | None = None,
    ) -> Pending:
        """Have one request answered.

        Args:
            key: Requests with different keys share no batch.
            inputs: Arrays with `size` rows.
            size: Rows.
            deadline: `time.perf_counter()` at which nobody waits any more; None for never.
            notify: Called once from a batch thread when the answer is there; None to wait for it.

        Raises:
            ServingError: Too large, or the queue is full.
        """
        return Pending(
            self._scheduler, self._scheduler.submit(self, key, inputs, size, deadline, notify)
        )

    def add(
        self,
        key: Hashable,
        inputs: Sequence[np.ndarray],
        size: int,
        deadline: float | None,
        notify: Callable[[], None] | None,
    ) -> tuple[list[Task], bool]:
        """Put a request into batches; under the scheduler's lock.

        Returns:
            Its tasks, and whether a thread should look.
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


class BatchScheduler:
    """The threads that run batches, and the lock over all queues.

    Args:
        options: How many threads, and their name.
    """

    def __init__(self, options: PoolOptions | None = None) -> None:
        options = options or PoolOptions()
        self._lock = threading.Lock()
        self._ready = threading.Condition(self._lock)
        self._drained = threading.Condition(self._lock)
        self._waiting: OrderedDict[tuple[BatchQueue, Hashable], deque[Batch]] = OrderedDict()
        self._idle = 0
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"{options.name}_{i}", daemon=True)
            for i in range(options.threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(
        self,
        queue: BatchQueue,
        key: Hashable,
        inputs: Sequence[np.ndarray],
        size: int,
        deadline: float | None,
        notify: Callable[[], None] | None = None,
    ) -> list[Task]:
        """Enqueue a request; its tasks are to be waited for, or `notify` is called at their end.

        Raises:
            ServingError: Too large, or the queue is full.
        """
        with self._lock:
            if self._closed:
                raise Unavailable("the batch scheduler is closed")
            tasks, look = queue.add(key, inputs, size, deadline, notify)
            self._waiting.setdefault((queue, key), queue.shapes[key])
            if look and self._idle:
                self._ready.notify()
        return tasks

    def withdraw(self, task: Task) -> bool:
        """Take back a task that waits for its batch to run.

        Returns:
            Whether the task has not run: False while it runs or after it.
        """
        with self._lock:
            batch = task.batch
            if batch is None or task not in batch.tasks:
                return False
            batch.tasks.remove(task)
            batch.size -= task.size
            batch.queue.rows -= task.size
            self._drained.notify_all()
            return True

    def drain(self, queue: BatchQueue) -> None:
        """Wait until nothing of a queue waits or runs; nobody may submit to it any more."""
        with self._lock:
            self._drained.wait_for(lambda: not queue.running and not queue.rows)

    def close(self) -> None:
        """End the threads, after what is enqueued has run."""
        with self._lock:
            self._closed = True
            self._ready.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._lock:
                while True:
                    batch, seconds = self._next()
                    if batch is not None:
                        break
                    if self._closed and seconds is None:
                        return
                    self._idle += 1
                    self._ready.wait(seconds)
                    self._idle -= 1
                queue, tasks = batch.queue, batch.tasks
                batch.tasks = []
                queue.rows -= batch.size
                queue.running += 1
                if self._idle and self._waiting:
                    # Whoever waits for the next batch to fall due may have been this thread.
                    self._ready.notify()
            queue.process(tasks)
            # Kept references would keep the last answer in memory while the thread is idle.
            del batch, tasks
            with self._lock:
                queue.running -= 1
                if not queue.running:
                    self._drained.notify_all()
            del queue

    def _next(self) -> tuple[Batch | None, float | None]:
        """The next batch to run, going round; or how long until one is due."""
        now = time.perf_counter()
        soonest: float | None = None
        for entry, batches in list(self._waiting.items()):
            while len(batches) > 1 and not batches[0].tasks:
                batches.popleft()
            batch = batches[0]
            if not batch.tasks:
                self._forget(entry)
            elif batch.full or batch.due <= now or self._closed:
                batches.popleft()
                if batches:
                    self._waiting.move_to_end(entry)
                else:
                    self._forget(entry)
                return batch, None
            else:
                soonest = batch.due if soonest is None else min(soonest, batch.due)
        return None, None if soonest is None else soonest - now

    def _forget(self, entry: tuple[BatchQueue, Any]) -> None:
        queue, key = entry
        del self._waiting[entry]
        del queue.shapes[key]


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
