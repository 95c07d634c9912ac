"""The exchange of REST messages from an event loop, within the same limits as the blocking one."""

from __future__ import annotations

import asyncio
import io

import aiohttp
from yarl import URL

from gru_serving.client.errors import too_slow
from gru_serving.client.options import ClientOptions
from gru_serving.client.rest.client import RestMessage
from gru_serving.client.rest.connection import IDLE_SECONDS, Http, UnpackError
from gru_serving.errors import InvalidArgument

# aiohttp warns about longer bodies given as bytes, since it would copy them in one turn of the
# event loop.
_STREAMED_BYTES = 1 << 20


class AsyncRestConnection(Http):
    """Sends REST messages from an event loop, each over a connection of its own.

    aiohttp is used here because httpx iterates over all pairs of requests and connections for every
    request, which takes more than ten times the processor time at a hundred of them.
    """

    def __init__(self, url: str, options: ClientOptions) -> None:
        super().__init__(url, options)
        self._session: aiohttp.ClientSession | None = None

    async def send(self, message: RestMessage, timeout: float) -> bytes:
        """Return the body of the answer."""
        if self._session is None:
            self._session = self._open()  # a session belongs to the loop that runs now
        data = message.body
        try:
            url = URL(f"{self.url}{message.path}", encoded=True)
            async with (
                asyncio.timeout(timeout),
                self._session.request(
                    message.method,
                    url,
                    data=io.BytesIO(data)
                    if data is not None and len(data) > _STREAMED_BYTES
                    else data,
                    allow_redirects=False,
                ) as response,
            ):
                body = self.body(response.headers)
                async for part in response.content.iter_any():
                    body.add(part)
                content = body.whole()
        except TimeoutError:
            raise too_slow(self.url, timeout) from None
        except (aiohttp.ClientError, OSError) as error:
            if isinstance(error, aiohttp.InvalidURL):
                raise self._no_url(error) from None
            said: object = error
            if isinstance(error, aiohttp.ClientConnectorError):
                said = error.os_error
            elif isinstance(error, aiohttp.ClientResponseError):
                said = error.message
            closed = not isinstance(error, aiohttp.ClientConnectorError)
            broken = not isinstance(error, aiohttp.ClientConnectionError | OSError)
            raise self.unreachable(error, said, broken=broken, closed=closed) from None
        except UnpackError as error:
            raise self.not_unpacked(error) from None
        except ValueError as error:
            raise self._no_url(error) from None
        return self.content(response.status, response.headers, content)

    def _open(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            # The client itself limits the number of calls in flight.
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=IDLE_SECONDS, ssl=self.context or True
            ),
            headers=self.headers,
            cookie_jar=aiohttp.DummyCookieJar(),  # a model server needs none
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )

    def _no_url(self, error: ValueError) -> InvalidArgument:
        return InvalidArgument(f"url: {error}; got {self.url!r}")

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
