"""What is noted of a request while it is answered: for the logs and for our own metrics."""

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
        model: Name, as asked for.
        version: That answered; None where none was found.
        signature: That answered; empty where none was asked for.
        status: Name of the canonical code.
        http_status: Of a REST answer.
        request_bytes: Size of the body or message.
        response_bytes: Likewise.
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
        """Stop the watch and tell everybody."""
        self.seconds = time.perf_counter() - self._started
        for observer in observers:
            observer(self)


CURRENT: ContextVar[RequestRecord | None] = ContextVar("request_record", default=None)


def note_exchange(kind: str, size: int, messages: Callable[[], tuple[bytes, bytes]]) -> None:
    """Hand over request and response of the inference under way, if anybody wants them.

    Args:
        kind: As in `Exchange`, like the others.
        size: Bytes.
        messages: Makes the two.
    """
    record = CURRENT.get()
    if record is not None:
        record.exchange = Exchange(kind, messages, size)


def note_status(name: str) -> None:
    """Say with which canonical code the request under way ends, if anybody wants to know."""
    record = CURRENT.get()
    if record is not None:
        record.status = name


def note(model: str, version: int | None = None, signature: str = "") -> None:
    """Say which version answers the request under way, if anybody wants to know."""
    record = CURRENT.get()
    if record is not None:
        record.model = model
        if version is not None:
            record.version = version
        record.signature = signature
