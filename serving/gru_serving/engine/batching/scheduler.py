"""The threads that run batches, and the entry point for requests.

Semantics of TensorFlow's SharedBatchScheduler. Callers hand in a request and wait for it; the
threads go round the queues and run whatever is due. All queues share one lock: what happens under
it is a few list operations, far cheaper than waking a second thread would be.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Hashable, Sequence
from operator import attrgetter

import numpy as np

from gru_serving.config.batching_options import PoolOptions
from gru_serving.engine.batching.queue import BatchQueue
from gru_serving.engine.batching.task import Task
from gru_serving.engine.batching.waiter import Waiter
from gru_serving.errors import ResourceExhausted, Unavailable

_TURN = attrgetter("turn")


class BatchScheduler:
    """The threads that run batches, and the lock over all queues.

    Args:
        options: How many threads, and their name.

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
            Its tasks.

        Raises:
            ServingError: Too large, or the queue is full.
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
                    # This thread may have been the one that was waiting for the next batch.
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
        """The next batch to run, from the queue that has waited longest for its turn."""
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
