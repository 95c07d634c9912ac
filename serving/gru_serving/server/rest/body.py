"""Bodies of REST requests: reading, counting and decompression."""

import asyncio
import contextlib
import zlib

from starlette.types import Receive

from gru_serving.engine.worker_threads import WorkerThreads
from gru_serving.errors import ResourceExhausted
from gru_serving.server.byte_budget import Held

Headers = list[tuple[bytes, bytes]]
Body = bytes | bytearray

# TF Serving's limit for decompressed bodies; it has none for other bodies.
MAX_UNPACKED = 100 << 20
# Size up to which bodies are decompressed immediately; larger ones wait for their turn.
_INLINE_BYTES = 1 << 20
_PIECE = 1 << 16
# Greatest compression ratio of deflate.
_MOST_RATIO = 1032
_LINGER_SECONDS = 10.0
_LINGER_BYTES = 1 << 30


class BodyTooLarge(ResourceExhausted):
    """A body beyond the limit, which is answered with 413."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the body is larger than --max_request_mib={limit >> 20} allows")


async def read_body(receive: Receive, headers: Headers, held: Held) -> Body | None:
    """Read the whole body; None if the client disconnects meanwhile.

    Raises:
        ResourceExhausted: The body is too large, or does not fit beside the others under way.
    """
    message = await receive()
    if message["type"] == "http.disconnect":
        return None
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        await held.grow(len(body))
        return body
    for name, value in headers:
        if name == b"content-length" and value.isdigit() and int(value[:20]) > held.limit:
            raise BodyTooLarge(held.limit)
    whole = bytearray(body)
    while message.get("more_body", False):
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        whole += message.get("body", b"")
        if len(whole) > held.limit:
            raise BodyTooLarge(held.limit)
        await held.grow(len(whole))
    return whole


async def discard_body(receive: Receive) -> None:
    """Read on for a while: clients that still send would miss an answer on a closed connection."""

    async def discard() -> None:
        count = 0
        while count < _LINGER_BYTES:
            message = await receive()
            count += len(message.get("body", b""))
            if message["type"] == "http.disconnect" or not message.get("more_body", False):
                return

    with contextlib.suppress(asyncio.TimeoutError, asyncio.CancelledError):
        await asyncio.wait_for(discard(), _LINGER_SECONDS)


class PackedBody:
    """A body that is large once it is decompressed, which is left to the thread that reads it.

    Args:
        packed: Body as it came.
        held: Bytes counted for the request.
    """

    def __init__(self, packed: Body, held: Held) -> None:
        self._packed = packed
        self._held = held
        self._limit = min(MAX_UNPACKED, held.limit)
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        return min(self._limit, len(self._packed) * _MOST_RATIO)

    async def count(self) -> None:
        """Count the bytes of the decompressed body in the budget.

        Raises:
            ResourceExhausted: The unpacked body would not fit, see `read_body`.
        """
        await self._held.grow(len(self._packed) + len(self))

    def unpack(self) -> Body:
        """Decompress the content, which counts from now on; empty if that fails.

        Raises:
            ResourceExhausted: The content is too large.
        """
        body = unpack(self._packed, self._limit)
        if body is None:
            if self._limit < MAX_UNPACKED:
                raise BodyTooLarge(self._limit)
            body = b""
        self._loop.call_soon_threadsafe(self._held.shrink, len(self._packed) + len(body))
        return body


async def open_body(body: Body, held: Held, threads: WorkerThreads) -> Body | PackedBody:
    """Decompress a body unless it is large; empty if that fails.

    Raises:
        ResourceExhausted: The unpacked body would not fit, see `read_body`.
    """
    small = await threads.run(unpack, body, _INLINE_BYTES)
    if small is not None:
        return small
    left = PackedBody(body, held)
    await left.count()
    return left


def unpack(packed: Body, limit: int) -> Body | None:
    """Decompress the body piece by piece.

    Returns:
        Decompressed body; empty if it is not compressed or has data after its end, None beyond the
        limit.
    """
    unpacker = zlib.decompressobj(wbits=31)
    whole = bytearray()
    view = memoryview(packed)
    try:
        for start in range(0, len(packed), _PIECE):
            if unpacker.eof:
                return b""
            rest = bytes(view[start : start + _PIECE])
            while rest and not unpacker.eof:
                whole += unpacker.decompress(rest, 8 * _PIECE)
                if len(whole) > limit:
                    return None
                rest = unpacker.unconsumed_tail
        # Data that the decompressor may still hold back.
        while not unpacker.eof and (part := unpacker.decompress(b"", 8 * _PIECE)):
            whole += part
            if len(whole) > limit:
                return None
    except zlib.error:
        return b""
    return whole if unpacker.eof and not unpacker.unused_data else b""
