"""The record of one request, for the logs and this server's own metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from gru_serving.telemetry.tracing import RequestTrace

_UNTRACED: AbstractContextManager[None] = nullcontext()


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
    """One request, filled in by the parts of the server that it passes through.

    Attributes:
        transport: "REST" or "GRPC".
        method: HTTP verb, or full name of the gRPC method.
        target: Path with query of a REST request, as it came; empty for gRPC.
        peer: Host and port of a REST client, or what gRPC calls its own; None where unknown.
        model: Model name, as in the request.
        version: Number of the version that answered; None where none was found.
        signature: Name of the signature that answered; empty if the request named none.
        status: Name of the canonical code.
        http_status: Status of a REST answer.
        request_bytes: Size of the body or message.
        response_bytes: Size of the answer, counted in the same way.
        seconds: Time from the first byte known to the last one handed over.
        exchange: Request and response messages of an inference.
        request_id: Id of the request, the client's or one made here; empty where no log wants it.
        traceparent: Place in a trace, as W3C Trace Context writes it; empty for none.
        trace: Spans of the request; None where it is not sampled.
        began: Seconds since the epoch when it was received.
    """

    transport: str
    method: str
    target: bytes = b""
    peer: tuple[str, int] | str | None = None
    model: str = ""
    version: int | None = None
    signature: str = ""
    status: str = "OK"
    http_status: int | None = None
    request_bytes: int = 0
    response_bytes: int = 0
    seconds: float = 0.0
    exchange: Exchange | None = None
    request_id: str = ""
    traceparent: str = ""
    trace: RequestTrace | None = None
    began: float = field(default_factory=time.time)
    _started: float = field(default_factory=time.perf_counter)

    @property
    def route(self) -> str:
        """Path with query of a REST request; empty for gRPC."""
        return self.target.decode("utf-8", "replace")

    @property
    def client(self) -> str:
        """Address of the client, "127.0.0.1:1234"; empty where it is not known."""
        if not isinstance(self.peer, str):
            return "{}:{}".format(*self.peer) if self.peer else ""
        kind, _, address = unquote(self.peer).partition(":")
        return address if kind in ("ipv4", "ipv6") else f"{kind}:{address}"

    @property
    def trace_id(self) -> str:
        """Id of the trace that the request belongs to, in hexadecimal; empty for none."""
        return self.traceparent[3:35]

    @property
    def began_ns(self) -> int:
        """Nanoseconds since the epoch when it was received."""
        return int(self.began * 1e9)

    @property
    def mention(self) -> str:
        """Words for a line of the log that concerns the request; empty where it has no id."""
        return f" (request {self.request_id})" if self.request_id else ""

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Return a part of the request's way, which its trace shows if it has one."""
        return _UNTRACED if self.trace is None else self.trace.phase(name)

    def waited(self, since: float) -> None:
        """Note that the request waited for a thread, since that `time.perf_counter()`."""
        if self.trace is not None:
            self.trace.add("queue", since)

    def end(self, observers: Sequence[Callable[[RequestRecord], None]]) -> None:
        """Stop the clock and notify the observers."""
        self.seconds = time.perf_counter() - self._started
        for observer in observers:
            observer(self)
