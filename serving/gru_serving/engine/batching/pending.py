"""A request that was submitted to the batcher, as its caller sees it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from gru_serving.codecs.batch_parts import join
from gru_serving.engine.batching.queue import BatchQueue
from gru_serving.engine.batching.scheduler import BatchScheduler
from gru_serving.engine.batching.task import Task


class Pending:
    """One request on its way: a task, or several where it was split.

    Args:
        scheduler: Runs the tasks.
        queue: Where they wait.
        tasks: In the order of their rows.
        picks: Which outputs of the tasks the request wants, in its order; None for all as they are.
    """

    __slots__ = ("_picks", "_queue", "_scheduler", "tasks")

    def __init__(
        self,
        scheduler: BatchScheduler,
        queue: BatchQueue,
        tasks: Sequence[Task],
        picks: Sequence[int] | None,
    ) -> None:
        self._scheduler = scheduler
        self._queue = queue
        self._picks = picks
        self.tasks = tasks

    def done(self) -> bool:
        """Whether the answer is there."""
        return all(task.outputs or task.error for task in self.tasks)

    def result(self) -> list[np.ndarray]:
        """The answer, when it is there: one array per output.

        Raises:
            ServingError: What the run raised, or parts of a split request that do not fit together.
        """
        tasks = self.tasks
        for task in tasks:
            if task.error is not None:
                # Requests of a batch share the error; its traceback would keep tensors alive.
                raise copy(task.error)
        outputs = tasks[0].outputs
        if len(tasks) > 1:
            # Padded lengths may depend on the rest of a batch; success must not.
            outputs = [join(parts) for parts in zip(*(t.outputs for t in tasks), strict=True)]
        return outputs if self._picks is None else [outputs[i] for i in self._picks]

    def withdraw(self) -> list[Task]:
        """Take back the tasks that wait for their batch to run, and tell which they were."""
        return [task for task in self.tasks if self._scheduler.withdraw(self._queue, task)]
