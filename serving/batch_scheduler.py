"""The threads that run batches, and the way in for those who want an answer.

Semantics of TensorFlow's SharedBatchScheduler. Callers hand in a request and wait for it; the
threads go round the queues and run whatever is due. All queues share one lock: what happens under
it is a few list operations, far cheaper than waking a second thread would be.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from serving.batch_queue import BatchQueue
from serving.batch_task import Batch, Task
from serving.batching_options import PoolOptions
from serving.errors import DeadlineExceeded, ResourceExhausted, ServingError, Unavailable

TIMED_OUT_IN_QUEUE = "Run() timeout exceeded while waiting in batching queue"


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
    ) -> Pending:
        """Enqueue a request; the arguments are those of `BatchQueue.add`.

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
        return Pending(self, tasks)

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
