"""The threads that run batches, and the way in for those who want an answer.

Semantics of TensorFlow's SharedBatchScheduler. Callers hand in a request and wait for it; the
threads go round the queues and run whatever is due. All queues share one lock: what happens under
it is a few list operations, far cheaper than waking a second thread would be.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter

import numpy as np

from serving.batch_queue import BatchQueue
from serving.batch_task import Task
from serving.batching_options import PoolOptions
from serving.errors import DeadlineExceeded, ResourceExhausted, ServingError, Unavailable

_TURN = attrgetter("turn")
TIMED_OUT_IN_QUEUE = "Run() timeout exceeded while waiting in batching queue"


class Pending:
    """One request on its way: a task, or several where it was split.

    Args:
        scheduler: Runs the tasks.
        queue: Where they wait.
        tasks: In the order of their rows.
    """

    __slots__ = ("_queue", "_scheduler", "tasks")

    def __init__(self, scheduler: BatchScheduler, queue: BatchQueue, tasks: Sequence[Task]) -> None:
        self._scheduler = scheduler
        self._queue = queue
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
        withdrawn = [self._scheduler.withdraw(self._queue, task) for task in self.tasks]
        if all(withdrawn):
            return ResourceExhausted(TIMED_OUT_IN_QUEUE)
        return DeadlineExceeded("Timed out waiting for notification")


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
        self._waiting: dict[BatchQueue, None] = {}  # in the order they came
        self._turn = 0
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
    ) -> Pending:
        """Enqueue a request; the arguments are those of `BatchQueue.add`.

        Raises:
            ServingError: Too large, or the queue is full.
        """
        with self._lock:
            if self._closed:
                raise Unavailable("the batch scheduler is closed")
            tasks, look = queue.add(key, inputs, size, deadline, notify)
            self._waiting[queue] = None
            if look and self._idle:
                self._ready.notify()
        return Pending(self, queue, tasks)

    def withdraw(self, queue: BatchQueue, task: Task) -> bool:
        """Take back a task of this queue that waits for its batch to run.

        Returns:
            Whether the task has not run: False while it runs or after it.
        """
        with self._lock:
            if not queue.withdraw(task):
                return False
            self._forget_unless_waiting(queue)
            self._drained.notify_all()
            return True

    def drain(self, queue: BatchQueue) -> None:
        """Wait until nothing of a queue waits or runs; nobody may submit to it any more."""
        with self._lock:
            self._drained.wait_for(lambda: not queue.running and not queue.waits())

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
                while (work := self._next()) is None:
                    if self._closed:
                        return
                    self._idle += 1
                    self._ready.wait(self._seconds())
                    self._idle -= 1
                if self._idle and self._waiting:
                    # Whoever waits for the next batch to fall due may have been this thread.
                    self._ready.notify()
            queue, tasks = work
            queue.process(tasks)
            # Kept references would keep the last answer in memory while the thread is idle.
            del work, tasks
            with self._lock:
                queue.running -= 1
                if not queue.running:
                    self._drained.notify_all()
            del queue

    def _next(self) -> tuple[BatchQueue, list[Task]] | None:
        """What to run now: of the queue whose last turn is longest ago."""
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
        """How long until a batch is due; None where none waits."""
        if not self._waiting:
            return None
        due = min(queue.due() for queue in self._waiting)
        return min(due - time.perf_counter(), threading.TIMEOUT_MAX)

    def _forget_unless_waiting(self, queue: BatchQueue) -> None:
        if not queue.waits():
            del self._waiting[queue]
