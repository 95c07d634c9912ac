"""Bodies of REST requests: read, counted and unpacked."""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import Callable
from typing import TypeVar

from starlette.types import Receive

from serving.byte_budget import ByteBudget, Held
from serving.errors import ResourceExhausted
from serving.worker_threads import WorkerThreads

Headers = list[tuple[bytes, bytes]]
Body = bytes | bytearray
T = TypeVar("T")

# Bodies up to this size are read on the event loop: that takes less than the way to a thread and
# back.
LARGE = 1 << 14
# TF Serving's limit. It has none for bodies that are not packed.
MAX_UNPACKED = 100 << 20
# Up to this size is unpacked at once; beyond it, in turn.
_SMALL = 1 << 20
_PIECE = 1 << 16
# Deflate packs nothing tighter.
_MOST_RATIO = 1032
_LINGER_SECONDS = 10.0
_LINGER_BYTES = 1 << 30


class BodyTooLarge(ResourceExhausted):
    """Answered with 413."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the body is larger than --max_request_mib={limit >> 20} allows")


async def read_body(receive: Receive, headers: Headers, held: Held) -> Body | None:
    """The whole body; None when the client went away meanwhile.

    Raises:
        ResourceExhausted: It is too large, or does not fit beside the others under way.
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
    """Read on for a while: clients that still send would miss an answer at a closed connection."""

    async def discard() -> None:
        count = 0
        while count < _LINGER_BYTES:
            message = await receive()
            count += len(message.get("body", b""))
            if message["type"] == "http.disconnect" or not message.get("more_body", False):
                return

    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(discard(), _LINGER_SECONDS)


def is_packed(headers: Headers) -> bool:
    """Whether the body is said to be packed."""
    encodings = (value for name, value in headers if name == b"content-encoding")
    return b"gzip" in next(encodings, b"")


async def parse_body(
    parse: Callable[[Body], T],
    body: Body,
    headers: Headers,
    held: Held,
    budget: ByteBudget,
    threads: WorkerThreads,
) -> tuple[T, int]:
    """What a body says, and its size; one that cannot be unpacked counts as empty.

    Small bodies are parsed at once, all others in a thread, and long ones in turn.

    Raises:
        ServingError: As `parse`.
        ResourceExhausted: As `read_body`.
    """
    if is_packed(headers):
        small = await threads.run(unpack, body, _SMALL)
        if small is None:
            return await _parse_long(parse, body, held, budget, threads)
        body = small
    if len(body) <= LARGE:
        return parse(body), len(body)
    async with budget.turn(len(body)):
        return await threads.run(parse, body), len(body)


async def _parse_long(
    parse: Callable[[Body], T], packed: Body, held: Held, budget: ByteBudget, threads: WorkerThreads
) -> tuple[T, int]:
    limit = min(MAX_UNPACKED, held.limit)
    most = min(limit, len(packed) * _MOST_RATIO)
    await held.grow(len(packed) + most)
    async with budget.turn(most):
        body = await threads.run(unpack, packed, limit)
        if body is None:
            if limit < MAX_UNPACKED:
                raise BodyTooLarge(limit)
            body = b""
        held.shrink(len(packed) + len(body))
        return await threads.run(parse, body), len(body)


def unpack(packed: Body, limit: int) -> Body | None:
    """What is packed, piece by piece.

    Returns:
        Nothing in it for what is not packed, or goes on after its end; None beyond the limit.
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
        # What the unpacker may still hold back.
        while not unpacker.eof and (part := unpacker.decompress(b"", 8 * _PIECE)):
            whole += part
            if len(whole) > limit:
                return None
    except zlib.error:
        return b""
    return whole if unpacker.eof and not unpacker.unused_data else b""
