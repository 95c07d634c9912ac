"""A session that merges the runs of concurrent callers into batches, as TF Serving does.

Runs share a batch when they feed and fetch the same tensors of the same version, in any order.
Beyond TF Serving, they must also agree in element types and in all dimensions but the first, unless
`pad_variable_length_inputs` is set and the rows say how long they are: there, runs of different
shapes in one batch make all of them fail. And when a merged run fails, its requests are run one by
one, so that a bad request spoils no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from gru_serving.config.batching_options import BatchingOptions
from gru_serving.engine.batching.merge import merge, padded_groups, tells_lengths
from gru_serving.engine.batching.pending import Pending
from gru_serving.engine.batching.queue import BatchQueue, Tensors
from gru_serving.engine.batching.route import Route
from gru_serving.engine.batching.scheduler import BatchScheduler
from gru_serving.engine.batching.task import Task, longest_timeout, rows_of
from gru_serving.engine.batching.waiter import Waiter, settle, wake
from gru_serving.engine.model_session import ModelSession
from gru_serving.errors import (
    Code,
    DeadlineExceeded,
    FailedPrecondition,
    Internal,
    ResourceExhausted,
    ServingError,
)
from gru_serving.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

_MAX_ROUTES = 1024
_TIMED_OUT_IN_QUEUE = "Run() timeout exceeded while waiting in batching queue"
_NOT_THE_INPUTS_FAULT = (Code.DEADLINE_EXCEEDED, Code.CANCELLED, Code.UNAVAILABLE)


class BatchingSession:
    """A session in front of another; its methods may be called from several threads.

    Args:
        session: Runs the batches.
        scheduler: Forms them; shared with other sessions.
        options: How.
        metrics: Where batches are counted.

    Attributes:
        signatures: Those of the session.
    """

    def __init__(
        self,
        session: ModelSession,
        scheduler: BatchScheduler,
        options: BatchingOptions | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.signatures = session.signatures
        self._session = session
        self._scheduler = scheduler
        self._options = options or BatchingOptions()
        self._metrics = metrics or Metrics()
        self._lock = threading.Lock()
        self._patient = True
        self._queues: dict[tuple[frozenset[Any], frozenset[Any]], BatchQueue] = {}
        self._routes: dict[tuple[Tensors, Tensors], Route] = {}

    def tensor(self, name: str) -> Any:
        """As the session's."""
        return self._session.tensor(name)

    def run(
        self, feeds: Mapping[Any, np.ndarray], fetches: Sequence[Any], timeout_ms: int = 0
    ) -> list[np.ndarray]:
        """Run together with others; blocks until the answer is there.

        Args:
            feeds: Arrays by the handle of the tensor they stand for; the first dimension is the
                batch's.
            fetches: Handles of the tensors wanted; their first dimension must be the batch's.
            timeout_ms: Time allowed, waiting included; 0 for no limit.

        Returns:
            One array per fetch.

        Raises:
            ServingError: With TF Serving's text.
        """
        pending = self.submit(feeds, fetches, timeout_ms)
        if not all(task.wait() for task in pending.tasks):
            raise self._give_up(pending)
        return pending.result()

    async def run_soon(
        self, feeds: Mapping[Any, np.ndarray], fetches: Sequence[Any], timeout_ms: int = 0
    ) -> list[np.ndarray]:
        """As `run`, for an event loop.

        Cancelled, it leaves at once; `close` waits for a batch that is under way all the same.
        """
        loop = asyncio.get_running_loop()
        answered = loop.create_future()
        pending = self.submit(feeds, fetches, timeout_ms, Waiter(answered))
        timer = loop.call_later(timeout_ms * 1e-3, settle, answered) if timeout_ms > 0 else None
        try:
            await answered
        except asyncio.CancelledError:
            self._give_up(pending)
            raise
        finally:
            if timer is not None:
                timer.cancel()
        if not pending.done():
            raise self._give_up(pending)
        return pending.result()

    def submit(
        self,
        feeds: Mapping[Any, np.ndarray],
        fetches: Sequence[Any],
        timeout_ms: int = 0,
        waiter: Waiter | None = None,
    ) -> Pending:
        """As `run`, without waiting.

        Args:
            feeds: As for `run`.
            fetches: As for `run`.
            timeout_ms: As for `run`; the waiting caller enforces it.
            waiter: Who waits in an event loop; None where this thread will.

        Raises:
            ServingError: With TF Serving's text: the request cannot be batched, or not now.
        """
        arrays = list(feeds.values())
        size = rows_of(arrays)
        route = self._route(tuple(feeds), tuple(fetches))
        for array in arrays:
            self._metrics.input_batch_size.observe(len(array))
        deadline = None
        if timeout_ms > 0:
            deadline = time.perf_counter() + min(timeout_ms * 1e-3, threading.TIMEOUT_MAX)
        if route.feeds is not None:
            arrays = [feeds[tensor] for tensor in route.feeds]
        key = self._shape_key(arrays)
        tasks = self._scheduler.submit(route.queue, key, arrays, size, deadline, waiter)
        return Pending(self._scheduler, route.queue, tasks, route.picks)

    @contextlib.contextmanager
    def hurried(self) -> Iterator[None]:
        """Within, no batch waits to fill: for warmup requests, which come one after the other."""
        self._patient = False
        try:
            yield
        finally:
            with self._lock:
                self._patient = True
                for queue in self._queues.values():
                    queue.patient = True

    def is_brief(self, feeds: Mapping[Any, np.ndarray]) -> bool:  # noqa: ARG002
        """Never: it waits for its batch."""
        return False

    def interrupt(self) -> None:
        """End the batches under way, and with errors those that wait."""
        self._session.interrupt()

    def close(self) -> None:
        """Wait for abandoned runs, then close the session; no other run may be under way."""
        for queue in self._queues.values():
            self._scheduler.drain(queue)
        self._session.close()

    def _give_up(self, pending: Pending) -> ServingError:
        """Wait no longer; what did not start to run yet never will.

        Returns:
            What to tell the client, if it still is there.
        """
        withdrawn = pending.withdraw()
        self._count_waits(withdrawn, time.perf_counter())
        if len(withdrawn) == len(pending.tasks):
            return ResourceExhausted(_TIMED_OUT_IN_QUEUE)
        return DeadlineExceeded("Timed out waiting for notification")

    def _count_waits(self, tasks: Sequence[Task], now: float) -> None:
        for task in tasks:
            self._metrics.queuing_latency.observe((now - task.enqueued) * 1e6, "")

    def _route(self, feeds: Tensors, fetches: Tensors) -> Route:
        key = (feeds, fetches)
        route = self._routes.get(key)
        if route is None:
            with self._lock:
                route = Route.into(self._queue(feeds, fetches), feeds, fetches)
                # Clients choose the order; its variety must not fill the memory.
                if len(self._routes) < _MAX_ROUTES:
                    self._routes[key] = route
        return route

    def _queue(self, feeds: Tensors, fetches: Tensors) -> BatchQueue:
        """The queue of these tensors in any order, its own being the first request's."""
        key = (frozenset(feeds), frozenset(fetches))
        queue = self._queues.get(key)
        if queue is None:
            each = tuple(dict.fromkeys(fetches))
            queue = self._queues[key] = BatchQueue(
                self._options, feeds, each, self._process, self._patient
            )
        return queue

    def _shape_key(self, arrays: Sequence[np.ndarray]) -> Hashable:
        if self._options.pad_variable_length_inputs and tells_lengths(arrays):
            return tuple([(array.dtype, array.ndim) for array in arrays])
        return tuple([(array.dtype, array.shape[1:]) for array in arrays])

    def _process(self, feeds: Tensors, fetches: Tensors, tasks: list[Task]) -> None:
        """Answer every task, whatever happens."""
        now = time.perf_counter()
        self._count_waits(tasks, now)
        living = []
        for task in tasks:
            if task.deadline is None or task.deadline > now:
                living.append(task)
            else:
                task.error = ResourceExhausted(_TIMED_OUT_IN_QUEUE)
                wake([task])
        groups = [living] if living else []
        if len(living) > 1 and self._options.pad_variable_length_inputs:
            groups = padded_groups(living)
        for group in groups:
            self._answer(feeds, fetches, group)

    def _answer(self, feeds: Tensors, fetches: Tensors, tasks: list[Task]) -> None:
        error = self._try(feeds, fetches, tasks)
        if error is None:
            return
        retry = len(tasks) > 1 and error.code not in _NOT_THE_INPUTS_FAULT
        for task in tasks:
            alone = self._try(feeds, fetches, [task]) if retry else error
            if alone is not None:
                task.error = alone
                wake([task])

    def _try(self, feeds: Tensors, fetches: Tensors, tasks: list[Task]) -> ServingError | None:
        """Answer all tasks with one run; the error when that fails and none is answered."""
        try:
            self._run_together(feeds, fetches, tasks)
        except ServingError as error:
            return copy(error)  # the frames of its traceback hold the tasks, which will hold it
        except Exception as error:
            log.exception("a batch of %d requests failed", len(tasks))
            return Internal(f"{type(error).__name__}: {error}")
        return None

    def _run_together(self, feeds: Tensors, fetches: Tensors, tasks: list[Task]) -> None:
        rows = sum([task.size for task in tasks])
        filled = self._options.executed_size(rows) if rows else 0  # there is no row to repeat
        pad = self._options.pad_variable_length_inputs
        self._metrics.padding_size.observe(filled - rows, str(filled))
        self._metrics.processed_batch_size.observe(filled)
        merged = [
            merge([task.inputs[i] for task in tasks], filled - rows, pad) for i in range(len(feeds))
        ]
        self._metrics.wrapped_run_count.add()
        outputs = self._session.run(
            dict(zip(feeds, merged, strict=True)), fetches, longest_timeout(tasks)
        )
        for output in outputs:
            if output.ndim == 0:
                raise FailedPrecondition("Batched output tensor has 0 dimensions")
            if len(output) != filled:
                raise FailedPrecondition(
                    "Batched output tensor's 0th dimension does not equal the sum of the 0th "
                    "dimension sizes of the input tensors"
                )
        if len(tasks) == 1 and filled == rows:
            tasks[0].outputs = outputs
        else:
            start = 0
            for task in tasks:
                end = start + task.size
                task.outputs = [output[start:end] for output in outputs]
                start = end
        wake(tasks)
