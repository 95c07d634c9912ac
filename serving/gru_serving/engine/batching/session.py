"""A session that merges the runs of concurrent callers into batches, as TF Serving does.

Runs share a batch if they feed and fetch the same tensors of the same version, in any order. Beyond
TF Serving, they must also agree in element types and in all dimensions but the first, unless
`pad_variable_length_inputs` is set and the rows state their lengths: in TF Serving, runs of
different shapes make the whole batch fail. If a merged run fails, its requests are run one by one,
so a bad request does not affect the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import threading
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from gru_serving.codecs.batch_parts import join
from gru_serving.config.batching_options import BatchingOptions
from gru_serving.engine.batching.scheduler import (
    BatchQueue,
    BatchScheduler,
    QueueFull,
    Task,
    Tensors,
    Waiter,
    longest_timeout,
    rows_of,
    settle,
    wake,
)
from gru_serving.engine.model_session import ModelSession
from gru_serving.errors import (
    Code,
    DeadlineExceeded,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    ResourceExhausted,
    ServingError,
)
from gru_serving.telemetry.metrics import Metrics
from gru_serving.telemetry.refusals import Reason, Refusals
from gru_serving.telemetry.tracing import BatchTraces, RequestTrace

_MAX_RANK = 6
# Bytes of padding that are always allowed; beyond them, padding may add as much memory as the data.
_PADDING_ALLOWANCE = 16 << 20


def tells_lengths(arrays: Sequence[np.ndarray]) -> bool:
    """Tell whether a model can distinguish rows from padding, by an integer beside each input.

    Padding repeats the first value of an array, since no value can mean "nothing follows" and a
    mask would grow with what it masks. Without lengths, an answer would depend on the other
    requests in the batch, and a row that is too short to be accepted might become long enough.
    """
    return any(array.ndim == 1 and array.dtype.kind in "iu" for array in arrays)


def padded_groups(tasks: Sequence[Task]) -> list[list[Task]]:
    """Group the tasks of a batch so that padding each group to one shape takes little memory."""
    if _affordable(tasks):
        return [list(tasks)]
    groups: list[list[Task]] = []
    for task in sorted(tasks, key=_row_bytes):
        if groups and _affordable([*groups[-1], task]):
            groups[-1].append(task)
        else:
            groups.append([task])
    return groups


def _row_bytes(task: Task) -> float:
    return sum(array.nbytes for array in task.inputs) / max(1, task.size)


def _affordable(tasks: Sequence[Task]) -> bool:
    rows = sum(task.size for task in tasks)
    real = padded = 0
    for column in zip(*(task.inputs for task in tasks), strict=True):
        real += sum(array.nbytes for array in column)
        padded += rows * math.prod(_largest(column)) * column[0].itemsize
    return padded - real <= max(real, _PADDING_ALLOWANCE)


def _largest(arrays: Sequence[np.ndarray]) -> tuple[int, ...]:
    return tuple(map(max, zip(*(array.shape[1:] for array in arrays), strict=True)))


def merge(arrays: Sequence[np.ndarray], surplus: int, pad: bool) -> np.ndarray:
    """Merge the inputs of several requests, padded to one shape.

    Args:
        arrays: Arrays of equal rank and dtype; equal in all dimensions but the first unless `pad`.
        surplus: Rows to add: repeats of the first row of the last array that has one. 0 where none
            has.
        pad: Bring all to the shape of the largest, as TF Serving: with repeats of each array's own
            first element, at the end of each dimension.

    Raises:
        InvalidArgument: Arrays have a rank that cannot be padded, or are empty; the message is TF
            Serving's.
    """
    if pad and arrays[0].ndim > _MAX_RANK:
        raise InvalidArgument("Only tensors with rank from 1 to 6 can be padded.")
    if not pad or len({array.shape[1:] for array in arrays}) == 1:
        if surplus:
            row = next(array[:1] for array in reversed(arrays) if len(array))
            arrays = [*arrays, np.repeat(row, surplus, axis=0)]
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    return _padded(arrays, surplus)


def _padded(arrays: Sequence[np.ndarray], surplus: int) -> np.ndarray:
    largest = _largest(arrays)
    if math.prod(largest) and any(array.size == 0 for array in arrays if len(array)):
        raise InvalidArgument("Got empty tensor in batch of non-empty tensors.")
    rows = sum(map(len, arrays))
    merged = np.empty((rows + surplus, *largest), arrays[0].dtype)
    start = last = 0
    for array in arrays:
        part = merged[start : start + len(array)]
        if part.size:
            if array.shape != part.shape:
                part[...] = array.flat[0]
            part[tuple(map(slice, array.shape))] = array
        if len(array):
            last = start
        start += len(array)
    if surplus:
        merged[rows:] = merged[last]
    return merged


class Pending:
    """One request in progress: a task, or several if it was split.

    Args:
        scheduler: Scheduler that runs the tasks.
        queue: Queue in which they wait.
        tasks: Tasks in the order of their rows.
        picks: Places of the outputs that the request wants, in its order; None for all as they are.
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
        """Tell whether the answer is complete."""
        return all(task.outputs or task.error for task in self.tasks)

    def result(self) -> list[np.ndarray]:
        """Return the answer once it is complete: one array per output.

        Raises:
            ServingError: The run failed, or parts of a split request do not fit together.
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
        """Withdraw the tasks that wait for their batch, and return them."""
        return [task for task in self.tasks if self._scheduler.withdraw(self._queue, task)]


class Route(NamedTuple):
    """The mapping of requests to a queue that holds their tensors in another order.

    Attributes:
        queue: Queue of the tensors.
        feeds: The order to bring inputs into; None where it is the queue's.
        picks: The place of each output among the queue's; None where they are the same.
    """

    queue: BatchQueue
    feeds: Tensors | None
    picks: Sequence[int] | None

    @classmethod
    def into(cls, queue: BatchQueue, feeds: Tensors, fetches: Tensors) -> Route:
        """Return the route of requests with these tensors."""
        return cls(
            queue,
            None if feeds == queue.feeds else queue.feeds,
            None if fetches == queue.fetches else [queue.fetches.index(one) for one in fetches],
        )


log = logging.getLogger(__name__)

_MAX_ROUTES = 1024
_TIMED_OUT_IN_QUEUE = "Run() timeout exceeded while waiting in batching queue"
_SERVER_FAULTS = (Code.DEADLINE_EXCEEDED, Code.CANCELLED, Code.UNAVAILABLE)


class BatchingSession(ModelSession):
    """A batching session in front of another; its methods may be called from several threads.

    Args:
        session: Session that runs the batches.
        scheduler: Scheduler that forms the batches; shared with other sessions.
        options: Options of the batches.
        metrics: Metrics that count the batches.

    Attributes:
        signatures: Signatures of the session.
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
        self._refusals = Refusals(self._metrics.refused_count)
        self._lock = threading.Lock()
        self._patient = True
        self._queues: dict[tuple[frozenset[Any], frozenset[Any]], BatchQueue] = {}
        self._routes: dict[tuple[Tensors, Tensors], Route] = {}

    def tensor(self, name: str) -> Any:
        """Return the session's handle of a tensor."""
        return self._session.tensor(name)

    def run(
        self, feeds: Mapping[Any, np.ndarray], fetches: Sequence[Any], timeout_ms: int = 0
    ) -> list[np.ndarray]:
        """Run together with other requests; blocks until the answer is complete.

        Args:
            feeds: Arrays by the handle of the tensor they stand for; the first dimension is the
                batch's.
            fetches: Handles of the tensors wanted; their first dimension must be the batch's.
            timeout_ms: Time allowed, waiting included; 0 for no limit.

        Returns:
            One array per fetch.

        Raises:
            ServingError: The run fails; the message is TF Serving's.
        """
        pending = self.submit(feeds, fetches, timeout_ms)
        if not all(task.wait() for task in pending.tasks):
            raise self._give_up(pending)
        return pending.result()

    async def run_soon(
        self,
        feeds: Mapping[Any, np.ndarray],
        fetches: Sequence[Any],
        timeout_ms: int = 0,
        trace: RequestTrace | None = None,
    ) -> list[np.ndarray]:
        """Run together with other requests like `run`, without blocking an event loop.

        A cancelled call returns at once; `close` still waits for a batch that is running.
        """
        loop = asyncio.get_running_loop()
        answered = loop.create_future()
        pending = self.submit(feeds, fetches, timeout_ms, Waiter(answered, trace))
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
        """Put a request into batches, like `run`, without waiting.

        Args:
            feeds: Arrays by tensor, as for `run`.
            fetches: Tensors wanted, as for `run`.
            timeout_ms: Milliseconds allowed; the waiting caller enforces it.
            waiter: Coroutine that waits for the answer; None where this thread will.

        Raises:
            ServingError: The request cannot be batched, or not now; the message is TF Serving's.
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
        try:
            tasks = self._scheduler.submit(route.queue, key, arrays, size, deadline, waiter)
        except QueueFull as error:
            self._refusals.note(Reason.QUEUE_FULL, error.message)
            raise
        return Pending(self._scheduler, route.queue, tasks, route.picks)

    @contextlib.contextmanager
    def hurried(self) -> Iterator[None]:
        """Let no batch wait to be filled inside the context; warmup requests come one by one."""
        self._patient = False
        try:
            yield
        finally:
            with self._lock:
                self._patient = True
                for queue in self._queues.values():
                    queue.patient = True

    def interrupt(self) -> None:
        """End the running batches; those that wait fail when they run."""
        self._session.interrupt()

    def close(self) -> None:
        """Wait for abandoned runs, then close the session; no other run may be in progress."""
        for queue in self._queues.values():
            self._scheduler.drain(queue)
        self._session.close()

    def _give_up(self, pending: Pending) -> ServingError:
        """Stop waiting, and withdraw the tasks that have not started.

        Returns:
            Error for the client, if it is still connected.
        """
        withdrawn = pending.withdraw()
        self._count_waits(withdrawn, time.perf_counter())
        if len(withdrawn) == len(pending.tasks):
            return ResourceExhausted(_TIMED_OUT_IN_QUEUE)
        return DeadlineExceeded("Timed out waiting for notification")

    def _count_waits(self, tasks: Sequence[Task], now: float) -> None:
        for task in tasks:
            self._metrics.queuing_latency.observe((now - task.enqueued) * 1e6, "")
            if task.trace is not None:
                task.trace.add("queue", task.enqueued, now)

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
        """Return the queue of these tensors in any order.

        Its own order is that of the first request.
        """
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
        retry = len(tasks) > 1 and error.code not in _SERVER_FAULTS
        for task in tasks:
            alone = self._try(feeds, fetches, [task]) if retry else error
            if alone is not None:
                task.error = alone
                wake([task])

    def _try(self, feeds: Tensors, fetches: Tensors, tasks: list[Task]) -> ServingError | None:
        """Answer all tasks with one run; returns the error if it fails and none is answered."""
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
        traces = BatchTraces([task.trace for task in tasks if task.trace is not None])
        with traces.batch():
            merged = [
                merge([task.inputs[i] for task in tasks], filled - rows, pad)
                for i in range(len(feeds))
            ]
            self._metrics.wrapped_run_count.add()
            with traces.run(len(tasks), filled):
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
