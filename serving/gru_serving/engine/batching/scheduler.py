"""The queues of requests that become batches, and the threads that run them.

The semantics are those of TensorFlow's SharedBatchScheduler: when a batch is full, which requests
do not fit, which exceed the limits. Callers submit a request and wait for it; the threads visit the
queues in turn and run the batches that are due. All queues share one lock. Under it only a few list
operations happen, which are far cheaper than waking a second thread would be.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from gru_serving.config.batching_options import BatchingOptions, PoolOptions
from gru_serving.errors import InvalidArgument, ResourceExhausted, Unavailable
from gru_serving.telemetry.tracing import RequestTrace


class Waiter:
    """A coroutine that waits for the tasks of one request.

    Args:
        answered: Future of its event loop; gets a result when the last task has an answer.
        trace: Spans of the request, if it is sampled.
    """

    __slots__ = ("_others", "answered", "trace")

    def __init__(self, answered: asyncio.Future[None], trace: RequestTrace | None = None) -> None:
        self.answered = answered
        self.trace = trace
        self._others: list[None] = []

    def expect(self, tasks: int) -> None:
        """Set the number of tasks to wait for, before the first has an answer."""
        self._others = [None] * (tasks - 1)

    def has_all(self) -> bool:
        """Count a task that has its answer; returns whether it was the last one."""
        try:
            self._others.pop()  # atomic: tasks end in several threads
        except IndexError:
            return True
        return False


def wake(tasks: Iterable[Task]) -> None:
    """Wake the waiters of answered tasks, with one call for each event loop.

    A loop that was woken wants the interpreter lock, and every call that wakes it releases that
    lock. With a call per task, the batch's thread would have to reacquire it many times, which
    would delay the next batch.
    """
    answered: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for task in tasks:
        if task.waiter is None:
            task.release()
        elif task.waiter.has_all():
            future = task.waiter.answered
            answered.setdefault(future.get_loop(), []).append(future)
    for loop, futures in answered.items():
        # The event loop is closed only after all callers have left.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle_all, futures)


def settle(future: asyncio.Future[None]) -> None:
    """Wake the event loop that waits; only the first call has an effect."""
    if not future.done():
        future.set_result(None)


def _settle_all(futures: Iterable[asyncio.Future[None]]) -> None:
    for future in futures:
        settle(future)


class Task:
    """One request, or the part of one that goes into one batch.

    Attributes:
        inputs: Arrays with equal first dimensions.
        size: Number of rows.
        deadline: `time.perf_counter()` at which nobody waits any more; None for never.
        enqueued: `time.perf_counter()` when it was handed in.
        waiter: Coroutine that waits for the answer; None where a thread does.
        outputs: The answer, once there.
        error: Error that came in place of an answer.
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

    @property
    def trace(self) -> RequestTrace | None:
        """Spans of the request, if it is sampled."""
        return None if self.waiter is None else self.waiter.trace

    def release(self) -> None:
        """Wake the thread that waits for the answer."""
        self._done.release()

    def wait(self) -> bool:
        """Wait for the answer; returns False if the deadline came first."""
        if self.deadline is None:
            return self._done.acquire()
        return self._done.acquire(timeout=max(0.0, self.deadline - time.perf_counter()))


class Batch:
    """Tasks of one queue and one shape that will run together; a waiting batch has at least one.

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
    """Return the first dimension that the inputs of a request share.

    Raises:
        InvalidArgument: The inputs have none in common; the message is TF Serving's.
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
    """Return the timeout of a batch in ms: the longest of its tasks; 0 for no limit."""
    deadlines = [task.deadline for task in tasks if task.deadline is not None]
    if len(deadlines) < len(tasks):
        return 0
    return max(1, int((max(deadlines) - time.perf_counter()) * 1000))


Tensors = tuple[Any, ...]

_NO_WAIT = -math.inf


class QueueFull(Unavailable):
    """So many requests wait for a batch that no more are taken."""


class BatchQueue:
    """The tasks of one kind: the same model version, input tensors and output tensors.

    Within a queue, only tasks with the same shape key share a batch. `max_enqueued_batches` limits
    the batches of each shape, and the rows of all shapes together.

    Args:
        options: Sizes and timeout.
        feeds: The input tensors, in the order in which tasks hold their arrays.
        fetches: The output tensors, in the order in which tasks get theirs.
        process: Function of `feeds`, `fetches` and the tasks of a batch, which answers all of them
            and raises nothing.
        patient: Whether a batch waits to fill.

    Attributes:
        feeds: Input tensors, as given.
        fetches: Output tensors, as given.
        patient: Whether a batch waits to fill; may change.
        turn: The number of its last batch among those of all queues; 0 before the first.
        rows: Rows of tasks that wait.
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
        """Add a request to batches; the caller holds the scheduler's lock.

        Args:
            key: Key of the request; requests with different keys share no batch.
            inputs: Arrays with `size` rows.
            size: Rows.
            deadline: `time.perf_counter()` at which nobody waits any more; None for never.
            waiter: Coroutine that waits for the answer; None where a thread does.

        Returns:
            Tasks of the request, and whether a thread should look for batches to run.

        Raises:
            ServingError: The request is too large, or the queue is full.
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
                batch.due = _NO_WAIT
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
                batch.due = _NO_WAIT  # and so for those who stay when others leave
                look = True
        self.rows += size
        self._shapes[key] = batches
        return tasks, look

    def process(self, tasks: list[Task]) -> None:
        """Answer the tasks of a batch."""
        self._process(self.feeds, self.fetches, tasks)

    def take(self, now: float) -> list[Task]:
        """Return the tasks of the next batch that is due.

        Args:
            now: `time.perf_counter()`; infinity for any batch.

        Returns:
            An empty list if no batch is due.
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
        """Remove a task that waits; returns False if it no longer does."""
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
        """Tell whether any task waits, with rows or without."""
        return bool(self._shapes)

    def due(self) -> float:
        """Return the `time.perf_counter()` at which the first batch is due; None if none waits."""
        return min(batches[0].due for batches in self._shapes.values())

    def _check_capacity(self, batches: deque[Batch], size: int, room: int) -> None:
        options = self._options
        limit = options.max_execution_batch_size
        full = "The batch scheduling queue to which this task was submitted is full"
        if options.enable_large_batch_splitting:
            capacity = (options.max_enqueued_batches - len(batches)) * limit + room
            if size > capacity:
                raise QueueFull(
                    f"{full}; task size is {size} but scheduling capacity is only {capacity} "
                    f"(num_enqueued_batches={len(batches)}, "
                    f"max_enqueued_batches={options.max_enqueued_batches}, "
                    f"open_batch_size={batches[-1].size}, max_execution_batch_size={limit})"
                )
        if (size > room and len(batches) >= options.max_enqueued_batches) or (
            self.rows and self.rows + size > options.max_enqueued_batches * limit
        ):
            waiting = max(len(batches), sum(map(len, self._shapes.values())))
            raise QueueFull(
                f"{full}; currently {waiting} batches enqueued and max_enqueued_batches is "
                f"{options.max_enqueued_batches}"
            )


def _split(
    inputs: Sequence[np.ndarray], size: int, room: int, limit: int, deadline: float | None
) -> list[Task]:
    """Split a request into tasks: one that fills the open batch, and full ones as needed."""
    ends = [*([room] if room else []), *range(room + limit, size, limit), size]
    starts = [0, *ends[:-1]]
    return [
        Task([array[start:end] for array in inputs], end - start, deadline)
        for start, end in zip(starts, ends, strict=True)
    ]


_TURN = attrgetter("turn")


class BatchScheduler:
    """The threads that run batches, and the lock over all queues.

    Args:
        options: Number and name of the threads.

    Raises:
        ResourceExhausted: The system does not give as many.
    """

    def __init__(self, options: PoolOptions | None = None) -> None:
        options = options or PoolOptions()
        self._lock = threading.Lock()
        self._ready = threading.Condition(self._lock)
        self._drained = threading.Condition(self._lock)
        self._waiting: dict[BatchQueue, None] = {}  # in the order they came
        self._turn = 0
        self._idle = 0
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"{options.name}_{i}", daemon=True)
            for i in range(options.threads)
        ]
        for count, thread in enumerate(self._threads):
            try:
                thread.start()
            except RuntimeError as error:
                del self._threads[count:]
                self.close()
                raise ResourceExhausted(
                    f"num_batch_threads: only {count} of {options.threads} threads could be "
                    f"started: {error}"
                ) from None

    def submit(
        self,
        queue: BatchQueue,
        key: Hashable,
        inputs: Sequence[np.ndarray],
        size: int,
        deadline: float | None,
        waiter: Waiter | None = None,
    ) -> list[Task]:
        """Enqueue a request; the arguments are those of `BatchQueue.add`.

        Returns:
            Tasks of the request.

        Raises:
            ServingError: The request is too large, or the queue is full.
        """
        with self._lock:
            if self._closed:
                raise Unavailable("the batch scheduler is closed")
            tasks, look = queue.add(key, inputs, size, deadline, waiter)
            self._waiting[queue] = None
            if look and self._idle:
                self._ready.notify()
            return tasks

    def withdraw(self, queue: BatchQueue, task: Task) -> bool:
        """Take back a task of this queue that waits for its batch to run.

        Returns:
            Whether the task will not run; False while it runs and after it.
        """
        with self._lock:
            if not queue.withdraw(task):
                return False
            self._forget_unless_waiting(queue)
            self._drained.notify_all()
            return True

    def drain(self, queue: BatchQueue) -> None:
        """Wait until no task of a queue waits or runs; nothing may be submitted to it any more."""
        with self._lock:
            self._drained.wait_for(lambda: not queue.running and not queue.waits())

    def close(self) -> None:
        """End the threads after everything that is enqueued has run."""
        with self._lock:
            self._closed = True
            self._ready.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._lock:
                while (work := self._next()) is None:
                    if self._closed:
                        return
                    self._idle += 1
                    self._ready.wait(self._seconds())
                    self._idle -= 1
                if self._idle and self._waiting:
                    # This thread may have been the one that waited for the next batch.
                    self._ready.notify()
            queue, tasks = work
            queue.process(tasks)
            # References that are kept would keep the last answer in memory while the thread is
            # idle.
            del work, tasks
            with self._lock:
                queue.running -= 1
                if not queue.running:
                    self._drained.notify_all()
            del queue

    def _next(self) -> tuple[BatchQueue, list[Task]] | None:
        """Return the next batch to run, from the queue that has waited longest for its turn."""
        now = math.inf if self._closed else time.perf_counter()
        for queue in sorted(self._waiting, key=_TURN):
            tasks = queue.take(now)
            if tasks:
                self._turn += 1
                queue.turn = self._turn
                queue.running += 1
                self._forget_unless_waiting(queue)
                return queue, tasks
        return None

    def _seconds(self) -> float | None:
        """Return the seconds until a batch is due; None if none waits."""
        if not self._waiting:
            return None
        due = min(queue.due() for queue in self._waiting)
        return min(due - time.perf_counter(), threading.TIMEOUT_MAX)

    def _forget_unless_waiting(self, queue: BatchQueue) -> None:
        if not queue.waits():
            del self._waiting[queue]
