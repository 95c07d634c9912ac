"""The last moments of a gRPC server: calls that it would cancel unread are refused."""

from __future__ import annotations

from typing import Any

import grpc

from serving.errors import Unavailable
from serving.server.grpc.service import refuse
from serving.server.quiet_period import QuietPeriod

_OURS = "/tensorflow.serving."
_PROXIED = {"via", "x-forwarded-for"}


class DrainGate(grpc.GenericRpcHandler):
    """A gate before the services; once closed, it refuses their calls with UNAVAILABLE.

    A gRPC server that stops answers CANCELLED to the calls that wait to be read, which under load
    are most of those in progress. Clients retry UNAVAILABLE but not CANCELLED. A proxy does the
    reverse: it sends a call that was reset to another replica, and forwards UNAVAILABLE; calls that
    name one (RFC 9110, section 7.6.3) are answered until the end.
    """

    def __init__(self) -> None:
        self._quiet = QuietPeriod()

    def service(self, details: Any) -> Any:
        """A handler that refuses, or None to leave the call to its service."""
        if not self._quiet.begun or not details.method.startswith(_OURS):
            return None
        if any(key in _PROXIED for key, _ in details.invocation_metadata):
            return None
        self._quiet.note()
        return grpc.unary_unary_rpc_method_handler(_refuse)

    async def close(self) -> None:
        """Refuse new calls; returns when no more arrive, or after two seconds."""
        await self._quiet.pass_by()


async def _refuse(_: Any, context: Any) -> bytes:
    return refuse(context, Unavailable("the server is stopping"))
