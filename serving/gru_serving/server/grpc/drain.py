"""The last moments of a gRPC server: calls that it would cancel unread are refused."""

from __future__ import annotations

from typing import Any

import grpc

from gru_serving.errors import Unavailable
from gru_serving.server.grpc.service import refuse
from gru_serving.server.quiet_period import STOPPING, QuietPeriod
from gru_serving.telemetry.refusals import Reason, Refusals

_OURS = "/tensorflow.serving."
_PROXIED = {"via", "x-forwarded-for"}
_TO_PROXIES = (("refused", "unread"), ("refused-padding", "-" * 6000))
"""More than the 4 KiB that nginx reads of an answer's headers, less than the 8 KiB of gRPC."""


class DrainGate(grpc.GenericRpcHandler):
    """A gate before the services; once closed, it refuses their calls with UNAVAILABLE.

    A gRPC server that stops answers CANCELLED to the calls that wait to be read, which under load
    are most of those in progress. Clients retry UNAVAILABLE but not CANCELLED.

    nginx forwards both, and goes on sending calls to a replica that answers so. Headers that are
    larger than its buffer (`grpc_buffer_size`) are no answer to it: it leaves the replica out for
    a while, and its configuration can send the call to another one (`docker/gateway`). So the
    refusal of a call that came through a proxy (RFC 9110, section 7.6.3) has such headers.

    Args:
        refusals: Counter of the calls that are refused.
    """

    def __init__(self, refusals: Refusals | None = None) -> None:
        self._quiet = QuietPeriod()
        self._refusals = refusals or Refusals()

    def service(self, details: Any) -> Any:
        """A handler that refuses, or None to leave the call to its service."""
        if not self._quiet.begun or not details.method.startswith(_OURS):
            return None
        self._quiet.note()
        self._refusals.note(Reason.STOPPING, STOPPING)
        proxied = any(key in _PROXIED for key, _ in details.invocation_metadata)
        return grpc.unary_unary_rpc_method_handler(_refuse_to_proxy if proxied else _refuse)

    async def close(self) -> None:
        """Refuse new calls; returns when no more arrive, or after two seconds."""
        await self._quiet.pass_by()


async def _refuse(_: Any, context: Any) -> bytes:
    return refuse(context, Unavailable(STOPPING))


async def _refuse_to_proxy(request: Any, context: Any) -> bytes:
    await context.send_initial_metadata(_TO_PROXIES)
    return await _refuse(request, context)
