"""Interceptors of the gRPC services: token check and request records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote

import grpc

from gru_serving.errors import Code, ServingError
from gru_serving.server.grpc.service import refuse
from gru_serving.server.tokens import REFUSAL, Tokens
from gru_serving.telemetry.refusals import Reason, Refusals
from gru_serving.telemetry.request_record import CURRENT, RequestRecord

_OURS = "/tensorflow.serving."
_OPEN = "/grpc.health.v1.Health/"


class TokenGuard(grpc.aio.ServerInterceptor):
    """Refuses calls without a token; health checks pass.

    Args:
        tokens: Those that are good.
        refusals: Counter of the calls that are refused.
    """

    def __init__(self, tokens: Tokens, refusals: Refusals | None = None) -> None:
        self._tokens = tokens
        self._refusals = refusals or Refusals()

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        """The handler of a call, or one that refuses it, of a method that is none as well."""
        handler = await continuation(details)
        if details.method.startswith(_OPEN):
            return handler
        metadata = details.invocation_metadata or ()
        given = [value for key, value in metadata if key == "authorization"]
        if len(given) == 1 and self._tokens.allow(given[0]):
            return handler
        self._refusals.note(Reason.NO_TOKEN, REFUSAL)
        if handler is not None and handler.request_streaming:
            return grpc.stream_stream_rpc_method_handler(_refuse)
        return grpc.unary_unary_rpc_method_handler(_refuse)


async def _refuse(_: Any, context: Any) -> bytes:
    return refuse(context, ServingError(REFUSAL, Code.UNAUTHENTICATED))


class Observed(grpc.aio.ServerInterceptor):
    """Keeps a record of every call of TF Serving's services.

    Args:
        observers: Told when a call is over.
    """

    def __init__(self, observers: Sequence[Callable[[RequestRecord], None]]) -> None:
        self._observers = observers

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        """The handler of a call, with a record kept around it."""
        handler = await continuation(details)
        if handler is None or handler.unary_unary is None or not details.method.startswith(_OURS):
            return handler
        inner = handler.unary_unary

        async def observed(request: bytes, context: Any) -> Any:
            record = RequestRecord("GRPC", details.method, client=_peer(context))
            record.request_bytes = len(request)
            CURRENT.set(record)  # for the rest of this call's task
            try:
                answer: bytes = await inner(request, context)
                if context.code():  # 0 where none was set
                    record.status = _status(context)
                record.response_bytes = len(answer)
                return answer
            except asyncio.CancelledError:
                record.status = Code.CANCELLED.name
                raise
            except BaseException:
                record.status = _status(context)
                raise
            finally:
                record.end(self._observers)

        return grpc.unary_unary_rpc_method_handler(observed)


def _status(context: Any) -> str:
    code = context.code()
    return code.name if isinstance(code, grpc.StatusCode) else Code.UNKNOWN.name


def _peer(context: Any) -> str:
    """Address of the client, "127.0.0.1:1234"."""
    kind, _, address = unquote(context.peer()).partition(":")
    return address if kind in ("ipv4", "ipv6") else f"{kind}:{address}"
