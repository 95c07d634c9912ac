"""The record of one request, for the logs and this server's own metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Exchange:
    """Request and response of one inference, as serialized messages of TF Serving's protos.

    Attributes:
        kind: "predict", "classify", "regress" or "multi_inference".
        messages: Function that makes the two; called only where they are wanted, and in another
            thread.
        size: Bytes that it keeps in memory, roughly.
    """

    kind: str
    messages: Callable[[], tuple[bytes, bytes]]
    size: int = 0


@dataclass(slots=True)
class RequestRecord:
    """One request, filled in by the parts of the server that it passes.

    Attributes:
        transport: "REST" or "GRPC".
        method: HTTP verb, or full name of the gRPC method.
        route: Path with query of a REST request; empty for gRPC.
        client: Address of the peer.
        model: Model name, as in the request.
        version: Number of the version that answered; None where none was found.
        signature: Name of the signature that answered; empty if the request named none.
        status: Name of the canonical code.
        http_status: Status of a REST answer.
        request_bytes: Size of the body or message.
        response_bytes: Size of the answer, counted in the same way.
        seconds: Time from the first byte known to the last one handed over.
        exchange: Request and response messages of an inference.
    """

    transport: str
    method: str
    route: str = ""
    client: str = ""
    model: str = ""
    version: int | None = None
    signature: str = ""
    status: str = "OK"
    http_status: int | None = None
    request_bytes: int = 0
    response_bytes: int = 0
    seconds: float = 0.0
    exchange: Exchange | None = None
    began: float = field(default_factory=time.time)
    _started: float = field(default_factory=time.perf_counter)

    def end(self, observers: Sequence[Callable[[RequestRecord], None]]) -> None:
        """Stop the clock and notify the observers."""
        self.seconds = time.perf_counter() - self._started
        for observer in observers:
            observer(self)
