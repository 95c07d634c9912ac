"""What a load test sends, how much of it, and for how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gru_serving.client.options import ClientOptions


@dataclass(frozen=True)
class LoadPlan:
    """What to send, how much of it, and for how long.

    Attributes:
        url: As of `connect`.
        requests: Of `gru_serving.load_test.requests.encode_requests`; sent in turn.
        concurrency: Closed loop: clients. Open loop: most connections.
        rate: Requests per second of an open loop; None for a closed loop.
        arrivals: Of an open loop: "poisson" (random, as independent users are) or "constant".
        seconds: Seconds that count.
        warmup: Seconds before them, which do not count.
        processes: Sending processes.
        timeout: Seconds allowed for one request.
        seed: Of the arrivals.
        options: How to connect.
    """

    url: str
    requests: Sequence[bytes]
    concurrency: int = 8
    rate: float | None = None
    arrivals: str = "poisson"
    seconds: float = 10.0
    warmup: float = 1.0
    processes: int = 1
    timeout: float = 30.0
    seed: int = 0
    options: ClientOptions = field(default_factory=ClientOptions)

    def __post_init__(self) -> None:
        for name in ("seconds", "timeout"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name}: expected a positive number; got {getattr(self, name)}")
        if not 0 <= self.warmup < float("inf"):
            raise ValueError(f"warmup: expected at least 0; got {self.warmup}")
        if self.rate is not None and not 0 < self.rate < float("inf"):
            raise ValueError(f"rate: expected a positive number; got {self.rate}")
        if not 1 <= self.processes <= self.concurrency:
            raise ValueError(
                "processes: expected 1 up to the concurrency; got "
                f"{self.processes} processes for {self.concurrency}"
            )
        if self.arrivals not in ("poisson", "constant"):
            raise ValueError(f"arrivals: expected poisson or constant; got {self.arrivals!r}")
        if not self.requests:
            raise ValueError("requests: expected at least one; got none")
