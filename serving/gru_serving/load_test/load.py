"""Load on a server: closed loop (clients that each wait for their answers) or open loop.

In an open loop requests are due at times that do not depend on the answers, and a latency counts
from the time a request was due, not from when it could be sent: a server that stalls is charged for
every request that had to wait (no coordinated omission).

Requests are encoded once. Several processes send them, so that the generator is not the limit.
"""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import os
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from gru_serving.errors import ServingError, Unavailable
from gru_serving.load_test.connections import connect
from gru_serving.load_test.plan import LoadPlan

_START_SECONDS = 60.0


@dataclass(frozen=True)
class LoadResult:
    """What came of it; one entry per request that was due within the seconds that count.

    Attributes:
        due: When it was to be sent, seconds from the start.
        sent: When it was sent.
        done: When its answer was complete.
        codes: "OK" or what went wrong.
        answered: Requests answered OK within the seconds that count, whenever they were due: those
            that waited since the warmup too, as the server worked for them.
        cpu: Share of a core that the busiest sending process used.
    """

    due: np.ndarray
    sent: np.ndarray
    done: np.ndarray
    codes: np.ndarray
    answered: int
    cpu: float


def run_load(plan: LoadPlan, tick: Callable[[float], None] = lambda _: None) -> LoadResult:
    """Send the load and wait for its end.

    Args:
        plan: What to do.
        tick: Called some times a second with the seconds since the start.

    Raises:
        Unavailable: The sending processes could not connect.
        KeyboardInterrupt: They are stopped then.
    """
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(plan.processes + 1)
    workers, pipes = [], []
    for number in range(plan.processes):
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(
            target=_work, args=(plan, number, barrier, theirs), daemon=True, name=f"load-{number}"
        )
        worker.start()
        theirs.close()
        workers.append(worker)
        pipes.append(ours)
    try:
        try:
            barrier.wait(_START_SECONDS)
        except Exception:
            raise Unavailable(_first_failure(pipes)) from None
        started = time.monotonic()
        results = []
        for pipe in pipes:
            while not pipe.poll(0.1):
                tick(time.monotonic() - started)
            results.append(_received(pipe))
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()
    columns = [np.concatenate([result[k] for result in results]) for k in range(4)]
    answered = int((_counts(plan, columns[2]) & (columns[3] == "OK")).sum())
    counted = _counts(plan, columns[0])
    due, sent, done, codes = (column[counted] for column in columns)
    return LoadResult(due, sent, done, codes, answered, max(result[4] for result in results))


def _counts(plan: LoadPlan, times: np.ndarray) -> np.ndarray:
    """Which times lie within the seconds that count."""
    within: np.ndarray = (times >= plan.warmup) & (times < plan.warmup + plan.seconds)
    return within


def _received(pipe: Connection) -> Any:
    try:
        result = pipe.recv()
    except EOFError:
        raise Unavailable("a sending process ended early") from None
    if isinstance(result, str):
        raise Unavailable(result)
    return result


def _first_failure(pipes: Sequence[Connection]) -> str:
    for pipe in pipes:
        if pipe.poll(1.0):
            try:
                result = pipe.recv()
            except EOFError:
                continue
            if isinstance(result, str):
                return result
    return "the sending processes did not start"


def _work(plan: LoadPlan, number: int, barrier: Any, pipe: Connection) -> None:
    """A sending process; sends (due, sent, done, codes, cpu), or a text when it fails."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started us ends us
    try:
        pipe.send(asyncio.run(_send(plan, number, barrier)))
    except Exception as error:
        barrier.abort()
        said = f"{plan.url}: {type(error).__name__}: {error}"
        pipe.send(error.message if isinstance(error, ServingError) else said)


async def _send(plan: LoadPlan, number: int, barrier: Any) -> Any:
    clients = len(range(number, plan.concurrency, plan.processes))
    parent = multiprocessing.parent_process()
    if parent is not None:  # if killed, it cannot end us: the load would go on without it
        asyncio.get_running_loop().add_reader(parent.sentinel, os._exit, 1)
    asks = await connect(plan, clients)
    first = number % len(plan.requests)
    requests = itertools.cycle([*plan.requests[first:], *plan.requests[:first]])
    await asyncio.get_running_loop().run_in_executor(None, barrier.wait, _START_SECONDS)
    log: list[tuple[float, float, float, str]] = []
    start, cpu = time.monotonic(), time.process_time()
    end = plan.warmup + plan.seconds
    clock = time.monotonic

    async def one(ask: Callable[[bytes], Awaitable[str]], due: float | None) -> None:
        sent = clock() - start
        code = await ask(next(requests))
        log.append((sent if due is None else due, sent, clock() - start, code))

    if plan.rate is None:

        async def client(ask: Callable[[bytes], Awaitable[str]]) -> None:
            while clock() - start < end:
                await one(ask, None)

        await asyncio.gather(*(client(ask) for ask in asks))
    else:
        free: asyncio.Queue[Callable[[bytes], Awaitable[str]]] = asyncio.Queue()
        for ask in asks:
            free.put_nowait(ask)

        sending: set[asyncio.Task[None] | None] = set()

        async def served(due: float) -> None:
            try:
                ask = await free.get()
            except asyncio.CancelledError:
                log.append((due, clock() - start, clock() - start, "not sent"))
                return
            sending.add(asyncio.current_task())
            try:
                await one(ask, due)
            finally:
                free.put_nowait(ask)

        tasks = set()
        for due in _arrivals(plan, number):
            wait = due - (clock() - start)
            if wait > 0:
                await asyncio.sleep(wait)
            task = asyncio.ensure_future(served(due))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        if tasks:
            _, waiting = await asyncio.wait(set(tasks), timeout=plan.timeout)
            for task in waiting - sending:  # what has been sent ends within its own time limit
                task.cancel()
            await asyncio.gather(*waiting)
    share = (time.process_time() - cpu) / max(1e-9, clock() - start)
    times = np.array([entry[:3] for entry in log], float).reshape(-1, 3).T
    return *times, np.array([entry[3] for entry in log], object), share


def _arrivals(plan: LoadPlan, number: int) -> list[float]:
    """When this process' requests are due."""
    assert plan.rate is not None
    rate, end = plan.rate / plan.processes, plan.warmup + plan.seconds
    if plan.arrivals == "constant":
        return list(np.arange(number / plan.rate, end, 1 / rate))
    draw = np.random.default_rng((plan.seed, number))
    gaps = draw.exponential(1 / rate, int(end * rate + 10 * (end * rate) ** 0.5 + 10))
    times = np.cumsum(gaps)
    return list(times[times < end])
