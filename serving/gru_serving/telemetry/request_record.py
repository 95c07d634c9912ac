"""The record of one request, for the logs and this server's own metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Exchange:
    """Request and response of one inference, as serialized messages of TF Serving's protos.

    Attributes:
        kind: "predict", "classify", "regress" or "multi_inference".
        messages: Makes the two; called only where they are wanted, and in another thread.
        size: Bytes that it keeps in memory, roughly.
    """

    kind: str
    messages: Callable[[], tuple[bytes, bytes]]
    size: int = 0


@dataclass
class RequestRecord:
    """One request.

    Attributes:
        transport: "REST" or "GRPC".
        method: HTTP verb, or full name of the gRPC method.
        route: Path with query of a REST request; empty for gRPC.
        client: Address of the peer.
        model: Name, as in the request.
        version: That answered; None where none was found.
        signature: The one that answered; empty if the request named none.
        status: Name of the canonical code.
        http_status: Of a REST answer.
        request_bytes: Size of the body or message.
        response_bytes: Of the answer, counted in the same way.
        seconds: From the first byte known to the last one handed over.
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


CURRENT: ContextVar[RequestRecord | None] = ContextVar("request_record", default=None)


def note_exchange(exchange: Callable[[], Exchange]) -> None:
    """Record request and response of the current inference, if it has a record.

    Args:
        exchange: Tells them.
    """
    record = CURRENT.get()
    if record is not None:
        record.exchange = exchange()


def note_status(name: str) -> None:
    """Record the canonical code of the current request, if it has a record."""
    record = CURRENT.get()
    if record is not None:
        record.status = name


def note(model: str, version: int | None = None, signature: str = "") -> None:
    """Record the version that answers the current request, if it has a record."""
    record = CURRENT.get()
    if record is not None:
        record.model = model
        if version is not None:
            record.version = version
        record.signature = signature
