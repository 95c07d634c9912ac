"""The same question, asked by the blocking and by the asynchronous client."""

import asyncio

from gru_serving.client import connect, connect_async


def both(url, **options):
    """The status of a model, asked by each kind of client: a list of two functions."""

    def blocking():
        with connect(url, **options) as client:
            return client.status("m")

    async def asynchronous():
        async with connect_async(url, **options) as client:
            return await client.status("m")

    return [blocking, lambda: asyncio.run(asynchronous())]
