import asyncio
import threading
import time
import weakref

import pytest

from gru_serving.engine.worker_threads import WorkerThreads
from tests.serving.collector import collector_off


@pytest.fixture
def threads():
    with WorkerThreads(2, "test") as threads:
        yield threads


def test_runs_elsewhere_and_comes_back(threads, caplog):
    async def main():
        return await threads.run(lambda a, *, b: (a + b, threading.current_thread()), 1, b=2)

    answer, thread = asyncio.run(main())
    assert answer == 3
    assert thread.name in {"test_0", "test_1"}
    assert caplog.text == ""  # where asyncio reports callbacks that failed


def test_errors_come_back(threads):
    async def main():
        await threads.run(int, "x")

    with pytest.raises(ValueError, match="invalid literal"):
        asyncio.run(main())


class Argument:
    """A large object."""


def test_a_call_that_fails_holds_nothing(threads):
    """Not even until the garbage collector runs: arguments may have many megabytes."""

    def fail(_):
        raise ValueError("no")

    async def main():
        argument = Argument()
        seen = weakref.ref(argument)
        with pytest.raises(ValueError, match="no"):
            await threads.run(fail, argument)
        del argument
        await asyncio.sleep(0.1)  # the thread lets go of it
        return seen() is None

    with collector_off():
        assert asyncio.run(main())


def test_as_many_at_once_as_there_are_threads(threads):
    both = threading.Barrier(2, timeout=20)

    async def main():
        return await asyncio.gather(threads.run(both.wait), threads.run(both.wait))

    assert sorted(asyncio.run(main())) == [0, 1]


def test_cancelled_before_its_turn_it_does_not_run(threads):
    go = threading.Event()
    ran = []

    async def main():
        busy = [asyncio.ensure_future(threads.run(go.wait, 20)) for _ in range(2)]
        late = asyncio.ensure_future(threads.run(ran.append, 1))
        await asyncio.sleep(0)
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
        go.set()
        assert await asyncio.gather(*busy) == [True, True]

    asyncio.run(main())
    assert ran == []


def test_cancelled_under_way_it_is_waited_for(threads):
    """What a caller holds for a call must outlive it, even if it is cancelled twice."""
    started, go, ended = threading.Event(), threading.Event(), threading.Event()

    def call():
        started.set()
        assert go.wait(20)
        ended.set()

    async def main():
        task = asyncio.ensure_future(threads.run(call))
        await asyncio.to_thread(started.wait, 20)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.01)
            assert not task.done()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()

    asyncio.run(main())


def test_close_waits_for_what_was_handed_in():
    done = []

    def slowly(number):
        time.sleep(0.02)
        done.append(number)

    async def main():
        threads = WorkerThreads(1, "test")
        tasks = [asyncio.ensure_future(threads.run(slowly, i)) for i in range(5)]
        await asyncio.sleep(0)
        await asyncio.to_thread(threads.close)
        assert done == [0, 1, 2, 3, 4]
        await asyncio.gather(*tasks)

    asyncio.run(main())


def test_the_loop_may_be_gone():
    started, go = threading.Event(), threading.Event()
    threads = WorkerThreads(1, "test")

    def call():
        started.set()
        go.wait(20)

    loop = asyncio.new_event_loop()
    task = loop.create_task(threads.run(call))
    loop.run_until_complete(asyncio.sleep(0))
    assert started.wait(20)
    loop.close()
    go.set()
    threads.close()
    task._log_destroy_pending = False
