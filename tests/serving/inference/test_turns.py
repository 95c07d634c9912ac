"""Which thread works on long requests, and when."""

import asyncio
import threading

from gru_serving.inference.turns import LONG_BYTES, Turns


def within_a_minute(run):
    asyncio.run(asyncio.wait_for(run(), 60))


def test_long_work_is_done_two_at_a_time():
    async def run():
        turns = Turns()
        at_once, most = 0, 0

        async def work(size):
            nonlocal at_once, most
            async with turns.take(size):
                at_once += 1
                most = max(most, at_once)
                await asyncio.sleep(0.01)
                at_once -= 1

        await asyncio.gather(*(work(2 * LONG_BYTES) for _ in range(6)))
        assert most == 2
        await asyncio.gather(*(work(LONG_BYTES) for _ in range(6)))
        assert most == 6

    within_a_minute(run)


def test_a_turn_can_be_ended_before_the_block_is_left():
    """Called by a thread that has read its request and now runs it."""

    async def run():
        turns = Turns()
        async with turns.take(2 * LONG_BYTES), turns.take(2 * LONG_BYTES) as turn:
            third = asyncio.ensure_future(turns.take(2 * LONG_BYTES).__aenter__())
            await asyncio.sleep(0.05)
            assert not third.done()
            reader = threading.Thread(target=turn.end)
            reader.start()
            reader.join()
            await third
            fourth = asyncio.ensure_future(turns.take(2 * LONG_BYTES).__aenter__())
            await asyncio.sleep(0.05)
            assert not fourth.done()
        # The block that ends gives one turn back, not two.
        await fourth
        fifth = asyncio.ensure_future(turns.take(2 * LONG_BYTES).__aenter__())
        await asyncio.sleep(0.05)
        assert not fifth.done()
        await (await third).__aexit__(None, None, None)
        await fifth

    within_a_minute(run)


def test_who_is_cancelled_while_waiting_takes_no_turn_along():
    async def run():
        turns = Turns()
        async with turns.take(2 * LONG_BYTES), turns.take(2 * LONG_BYTES):
            waiting = asyncio.ensure_future(turns.take(2 * LONG_BYTES).__aenter__())
            await asyncio.sleep(0.05)
            waiting.cancel()
            await asyncio.wait({waiting})
            assert waiting.cancelled()
        async with turns.take(2 * LONG_BYTES), turns.take(2 * LONG_BYTES):
            pass

    within_a_minute(run)
