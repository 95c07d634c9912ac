"""Counting bytes: who waits, who is refused, who goes first."""

import asyncio
from contextlib import ExitStack

import pytest

from gru_serving.errors import ResourceExhausted
from gru_serving.server.byte_budget import FREE_BYTES, ByteBudget

MIB = 1 << 20


def test_what_fits_and_what_is_small_never_waits():
    async def run():
        budget = ByteBudget(10 * MIB, 10 * MIB)
        with budget.hold() as first, budget.hold() as second:
            await first.grow(5 * MIB)
            await second.grow(5 * MIB)
            with budget.hold() as small:
                await small.grow(FREE_BYTES)

    asyncio.run(asyncio.wait_for(run(), 60))


def test_others_wait_their_turn():
    async def run():
        budget = ByteBudget(10 * MIB, 10 * MIB)
        got = []

        async def request(name, size):
            with budget.hold() as held:
                await held.grow(size)
                got.append(name)

        with budget.hold() as held:
            await held.grow(9 * MIB)
            tasks = [asyncio.create_task(request(*one)) for one in [("a", 8 * MIB), ("b", MIB)]]
            await asyncio.sleep(0.05)
            assert got == []  # the second one would fit, but came later
        await asyncio.gather(*tasks)
        assert got == ["a", "b"]

    asyncio.run(asyncio.wait_for(run(), 60))


def test_the_oldest_goes_on_so_that_not_all_wait_for_each_other():
    async def run():
        budget = ByteBudget(10 * MIB, 10 * MIB, patience=60)
        order = []

        async def request(name, both):
            with budget.hold() as held:
                await held.grow(5 * MIB)
                await both.wait()
                await held.grow(10 * MIB)
                order.append(name)

        both = asyncio.Event()
        tasks = [asyncio.create_task(request(name, both)) for name in ("first", "second")]
        await asyncio.sleep(0.05)
        both.set()
        await asyncio.gather(*tasks)
        assert order == ["first", "second"]

    asyncio.run(asyncio.wait_for(run(), 60))


def test_patience_ends_and_nothing_is_lost():
    async def run():
        budget = ByteBudget(10 * MIB, 10 * MIB, patience=0.05)
        with budget.hold() as held:
            await held.grow(10 * MIB)
            for _ in range(3):
                with (
                    budget.hold() as other,
                    pytest.raises(ResourceExhausted, match="mib=10; try"),
                ):
                    await other.grow(MIB)
            with budget.hold() as late:
                waiting = asyncio.create_task(late.grow(MIB))
                await asyncio.sleep(0.01)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
            held.shrink(4 * MIB)
            with budget.hold() as other:
                await other.grow(6 * MIB)
        with budget.hold() as first, budget.hold() as second:
            await first.grow(4 * MIB)
            await second.grow(6 * MIB)

    asyncio.run(asyncio.wait_for(run(), 60))


def test_what_is_in_memory_waits_up_to_the_budget_only():
    async def run():
        budget = ByteBudget(10 * MIB, 10 * MIB, patience=60)
        with ExitStack() as later:
            with budget.hold() as held:
                await held.grow(10 * MIB)
                holds = [later.enter_context(budget.hold()) for _ in range(3)]
                tasks = [asyncio.create_task(one.grow(5 * MIB, in_memory=True)) for one in holds]
                await asyncio.sleep(0.05)
                assert [task.done() for task in tasks] == [False, False, True]
                with pytest.raises(ResourceExhausted):
                    await tasks[2]
            await asyncio.gather(*tasks[:2])

    asyncio.run(asyncio.wait_for(run(), 60))
