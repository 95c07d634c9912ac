"""What all gRPC services here have in common: calls in threads, errors as statuses."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from gru_serving.codecs.large_request import measure, no_request
from gru_serving.engine.worker_threads import WorkerThreads
from gru_serving.errors import NO_MEMORY, Code, Internal, ResourceExhausted, ServingError
from gru_serving.inference.turns import LONG, Turn, Turns
from gru_serving.server.byte_budget import ByteBudget

log = logging.getLogger(__name__)

GRPC_STATUS = {code: grpc.StatusCode[code.name] for code in Code}
_MAX_MESSAGE = 1024

RequestT = TypeVar("RequestT", bound=Message)


class Service:
    """Runs blocking calls in threads and turns errors into statuses.

    Args:
        threads: Where.
        turns: For long requests; shared with other transports.
        budget: Counts the bytes of requests.
    """

    def __init__(
        self,
        threads: WorkerThreads,
        turns: Turns | None = None,
        budget: ByteBudget | None = None,
    ) -> None:
        self._threads = threads
        self._turns = turns or Turns()
        self._budget = budget or ByteBudget()

    async def _run(
        self,
        request_class: type[RequestT],
        call: Callable[[RequestT], Message],
        raw: bytes,
        context: Any,
    ) -> bytes:
        """Answer one request in a thread."""

        def answer(turn: Turn) -> bytes:
            if len(raw) > LONG:
                measure(request_class, raw, self._budget.most)
            request = parse_message(request_class, raw)
            turn.end()
            return call(request).SerializeToString()

        try:
            with self._budget.call(), self._budget.hold() as held:
                await held.grow(len(raw), in_memory=True)
                async with self._turns.take(len(raw)) as turn:
                    return await self._threads.run(answer, turn)
        except Exception as error:
            return fail(context, error)[1]


def parse_message(message_class: type[RequestT], raw: bytes) -> RequestT:
    """The message that was sent.

    Raises:
        Internal: It is none of that class.
    """
    try:
        return message_class.FromString(raw)
    except DecodeError:
        raise no_request(message_class) from None


def fail(context: Any, error: Exception) -> tuple[Code, bytes]:
    """End a call with the status of any exception; what should not have happened is logged.

    Returns:
        The code, and what the handler is to return.
    """
    # Nothing here may keep the error in another variable: its traceback holds the frames, and with
    # them the request, until the garbage collector runs.
    if isinstance(error, ServingError):
        return error.code, refuse(context, error)
    if isinstance(error, MemoryError):
        return Code.RESOURCE_EXHAUSTED, refuse(context, ResourceExhausted(NO_MEMORY))
    log.error("a gRPC call failed", exc_info=error)
    return Code.INTERNAL, refuse(context, Internal(f"{type(error).__name__}: {error}"))


def refuse(context: Any, error: ServingError) -> bytes:
    """End a call with the status of an error, cut to the length TF Serving allows.

    Returns:
        What the handler is to return; gRPC sends the status alone. After `context.abort`, which
        raises, the call would keep itself and its request in memory until the garbage collector
        runs.
    """
    text = error.message
    raw = text[: _MAX_MESSAGE + 1].encode("utf-8", "surrogateescape")
    if len(raw) > _MAX_MESSAGE:
        text = raw[:_MAX_MESSAGE].decode("utf-8", "ignore") + "...TRUNCATED"
    context.set_code(GRPC_STATUS[error.code])
    context.set_details(text)
    return b""
