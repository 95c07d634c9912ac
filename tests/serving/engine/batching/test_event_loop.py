"""Requests from an event loop, in which nobody blocks."""

import asyncio

import numpy as np

from gru_serving.errors import (
    DeadlineExceeded,
    InvalidArgument,
    ResourceExhausted,
)
from tests.serving.engine.batching.gate import enqueued


def soon(session, x, timeout_ms=0):
    return asyncio.ensure_future(session.run_soon({"x": np.asarray(x)}, ["y"], timeout_ms))


def test_event_loop_gets_its_answers(make):
    session, gate = make(max_batch_size=100, batch_timeout_micros=100_000)

    async def ask_many():
        return await asyncio.gather(*(soon(session, [[n]], 20_000) for n in range(100)))

    answers = asyncio.run(ask_many())
    assert [int(y[0, 0]) for (y,) in answers] == list(range(0, 200, 2))
    assert [len(batch) for batch in gate.batches] == [100]


def test_a_batch_wakes_the_event_loop_once(make):
    session, gate = make(max_batch_size=100, batch_timeout_micros=100_000)

    async def ask_many():
        loop = asyncio.get_running_loop()
        wake, woken = loop.call_soon_threadsafe, []
        loop.call_soon_threadsafe = lambda *call: (woken.append(call), wake(*call))
        await asyncio.gather(*(soon(session, [[n]]) for n in range(100)))
        return len(woken)

    assert asyncio.run(ask_many()) == len(gate.batches) == 1


def test_event_loop_gets_errors(make):
    session, _ = make(max_batch_size=8, max_execution_batch_size=2,
                      enable_large_batch_splitting=True)  # fmt: skip

    async def ask_three():
        split = soon(session, [[1], [2], [3], [4], [5]])
        bad = soon(session, [[1], [2], [-3], [4]])
        large = soon(session, np.ones((9, 1)))
        return await asyncio.gather(split, bad, large, return_exceptions=True)

    (y,), bad, large = asyncio.run(ask_three())
    assert y[:, 0].tolist() == [2, 4, 6, 8, 10]
    assert isinstance(bad, InvalidArgument)
    assert str(bad) == "negative: -3"
    assert str(large) == "Task size 9 is larger than maximum input batch size 8"


def test_deadlines_and_cancellation_on_an_event_loop(make):
    session, gate = make()

    async def scenario():
        gate.open.clear()
        running = soon(session, [[1]], 300)
        while not gate.entered.acquire(blocking=False):
            await asyncio.sleep(0.001)
        waiting = soon(session, [[2]], 150)
        cancelled = soon(session, [[3]])
        await asyncio.sleep(0.05)
        assert enqueued(session) == 2
        cancelled.cancel()
        outcomes = await asyncio.gather(running, waiting, cancelled, return_exceptions=True)
        assert enqueued(session) == 0
        gate.open.set()
        assert (await soon(session, [[4]]))[0] == [[8]]
        return outcomes

    running, waiting, cancelled = asyncio.run(scenario())
    assert isinstance(running, DeadlineExceeded)
    assert isinstance(waiting, ResourceExhausted)
    assert isinstance(cancelled, asyncio.CancelledError)
    assert [batch[0, 0] for batch in gate.batches] == [1, 4]
