"""The batcher's coroutine callers: no thread of theirs waits."""

import asyncio
import threading

import numpy as np
import pytest

from serving.batch_scheduler import BatchScheduler
from serving.batching import BatchingSession
from serving.batching_options import BatchingOptions, PoolOptions
from serving.errors import DeadlineExceeded, InvalidArgument, ResourceExhausted

from .test_batching import PATIENT, Gate


@pytest.fixture
def make():
    made = []

    def build(**options):
        gate = Gate()
        scheduler = BatchScheduler(PoolOptions(1, "test"))
        made.append((scheduler, gate))
        return BatchingSession(gate, scheduler, BatchingOptions(**options)), gate

    yield build
    for scheduler, gate in made:
        gate.open.set()
        scheduler.close()


def ask(session, x, timeout_ms=0):
    return asyncio.ensure_future(session.answer({"x": np.asarray(x)}, ["y"], timeout_ms))


async def hold(session, gate):
    """Occupy the one batch thread; what comes next has to wait."""
    gate.open.clear()
    first = ask(session, [[0]])
    assert await asyncio.to_thread(gate.entered.acquire, timeout=10)
    return first


def test_they_share_a_batch_and_no_thread_waits(make):
    session, gate = make(max_batch_size=32, batch_timeout_micros=PATIENT)

    async def main():
        before = threading.active_count()
        asked = [ask(session, [[n]]) for n in range(32)]
        await asyncio.sleep(0)
        assert threading.active_count() == before
        return await asyncio.gather(*asked)

    answers = asyncio.run(main())
    assert [int(answer[0][0, 0]) for answer in answers] == list(range(0, 64, 2))
    (batch,) = gate.batches
    assert len(batch) == 32


def test_they_share_with_threads(make):
    session, gate = make(max_batch_size=2, batch_timeout_micros=PATIENT)

    async def main():
        blocked = asyncio.create_task(asyncio.to_thread(session.run, {"x": np.ones((1, 1))}, ["y"]))
        return await asyncio.gather(blocked, ask(session, [[2.0]]))

    blocked, awaited = asyncio.run(main())
    assert (blocked[0], awaited[0]) == (2, 4)
    assert len(gate.batches) == 1


def test_a_large_request_is_split_and_joined(make):
    session, gate = make(
        max_batch_size=10, max_execution_batch_size=4, enable_large_batch_splitting=True
    )
    (y,) = asyncio.run(session.answer({"x": np.arange(9).reshape(9, 1)}, ["y"]))
    np.testing.assert_array_equal(y, 2 * np.arange(9).reshape(9, 1))
    assert sorted(map(len, gate.batches)) == [1, 4, 4]


def test_errors_come_back(make):
    session, _ = make()
    with pytest.raises(InvalidArgument, match="negative: -1"):
        asyncio.run(session.answer({"x": np.array([[-1]])}, ["y"]))


def test_deadline_in_the_queue(make):
    session, gate = make()

    async def main():
        first = await hold(session, gate)
        with pytest.raises(ResourceExhausted, match="exceeded while waiting in batching queue"):
            await ask(session, [[1]], timeout_ms=30)
        gate.open.set()
        await first

    asyncio.run(main())
    assert len(gate.batches) == 1  # the late one never ran


def test_deadline_while_it_runs(make):
    session, gate = make()

    async def main():
        gate.open.clear()
        with pytest.raises(DeadlineExceeded, match="Timed out waiting for notification"):
            await ask(session, [[1]], timeout_ms=50)
        gate.open.set()

    asyncio.run(main())


def test_cancelled_ones_leave_the_queue(make):
    session, gate = make()

    async def main():
        first = await hold(session, gate)
        gone, stays = ask(session, [[1]]), ask(session, [[2]])
        await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        gate.open.set()
        assert (await stays)[0] == 4
        await first

    asyncio.run(main())
    assert [batch.tolist() for batch in gate.batches] == [[[0]], [[2]]]


def test_the_loop_may_be_gone(make):
    session, gate = make()
    gate.open.clear()
    loop = asyncio.new_event_loop()
    task = loop.create_task(session.answer({"x": np.ones((1, 1))}, ["y"]))
    loop.run_until_complete(asyncio.sleep(0))
    assert gate.entered.acquire(timeout=10)
    loop.close()
    task._log_destroy_pending = False
    gate.open.set()
    # The thread survived it.
    assert session.run({"x": np.ones((1, 1))}, ["y"])[0] == 2
