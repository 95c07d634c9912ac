"""The last moments of a gRPC server: calls that it would cancel unread are refused."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import grpc

from serving.errors import Unavailable
from serving.grpc_service import refuse

_OURS = "/tensorflow.serving."
_PROXIED = {"via", "x-forwarded-for"}
_QUIET_SECONDS, _MOST_SECONDS = 0.2, 2.0


class DrainGate(grpc.GenericRpcHandler):
    """Stands before the services; once closed, refuses their calls with UNAVAILABLE.

    A gRPC server that stops answers CANCELLED to the calls that wait to be read, which under load
    are most of those under way. Clients try UNAVAILABLE again elsewhere, and CANCELLED not. A proxy
    does the reverse: it sends a call that was reset to another replica, and passes UNAVAILABLE on;
    calls that name one (RFC 9110, section 7.6.3) are answered until the end.
    """

    def __init__(self) -> None:
        self._closed = False
        self._last = 0.0

    def service(self, details: Any) -> Any:
        """A handler that refuses, or None to leave the call to its service."""
        if not self._closed or not details.method.startswith(_OURS):
            return None
        if any(key in _PROXIED for key, _ in details.invocation_metadata):
            return None
        self._last = time.monotonic()
        return grpc.unary_unary_rpc_method_handler(_refuse)

    async def close(self) -> None:
        """Refuse from now on; returns when calls have ceased to come, or after two seconds."""
        self._closed = True
        self._last = closed = time.monotonic()
        while time.monotonic() < min(self._last + _QUIET_SECONDS, closed + _MOST_SECONDS):
            await asyncio.sleep(_QUIET_SECONDS / 5)


async def _refuse(_: Any, context: Any) -> bytes:
    return refuse(context, Unavailable("the server is stopping"))
