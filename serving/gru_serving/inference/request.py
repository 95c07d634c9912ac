"""A request for an inference, from the bytes that came to those of the answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

from gru_serving.codecs.inference_messages import Answering
from gru_serving.codecs.signature import DEFAULT_SIGNATURE
from gru_serving.engine.predictor import Predictor
from gru_serving.repository.catalogue import Lease
from gru_serving.telemetry.metrics import Metrics
from gru_serving.telemetry.request_record import Exchange


class Target(NamedTuple):
    """Which version a request is for.

    Attributes:
        model: Its name.
        version: Exactly that one; None for the highest that serves.
        label: The version that the label points to; not together with `version`.
    """

    model: str
    version: int | None = None
    label: str | None = None


class Request(ABC):
    """One request, as one use case and one transport have it.

    `gru_serving.inference.service` takes its steps, in the order of the methods, and holds a
    version from `prepare` to `run`. Steps block; each may be taken in another thread.

    Attributes:
        api: Of the use case in metrics: "Predict", "Classify", "Regress".
        kind: Its name in prediction logs.
        counted: Whether TF Serving counts such requests, and not only their runs.
        quick: Whether a small one may be read and answered on the event loop.
        size: Bytes to read.
        target: Which version is asked; known once it is parsed.
        signature_name: As in the request; empty for `serving_default`.
        lease: Of the version that answers, from `prepare` on.
        brief: Whether the run is so short that the event loop may do it itself.
        batched: Whether the run is to be awaited; `run_in_batch` is the step then.
        answer_size: Bytes that there are to write, roughly.
        answer: The bytes of the answer, once it is encoded.
    """

    api: ClassVar[str]
    kind: ClassVar[str]
    counted: ClassVar[bool] = True
    quick: ClassVar[bool] = False

    size: int
    target = Target("")
    signature_name = ""
    lease: Lease | None = None
    brief = False
    batched = False
    answer_size = 0
    answer = b""

    @property
    def signature(self) -> str:
        """The name of the signature that answers, for logs; empty where there are several."""
        return self.signature_name or DEFAULT_SIGNATURE

    @property
    def answering(self) -> Answering:
        """What answers, as responses echo it."""
        return Answering(self.target.model, self.version, self.signature_name)

    @property
    def version(self) -> int:
        """The number of the version that answers."""
        assert self.lease is not None
        return self.lease.number

    def release(self) -> None:
        """Hold the version no longer, if it was found."""
        if self.lease is not None:
            self.lease.end()

    @abstractmethod
    def parse(self) -> None:
        """Read the bytes, as far as that needs no model."""

    @abstractmethod
    def prepare(self, predictor: Predictor) -> None:
        """Make the model's inputs of what was read."""

    @abstractmethod
    def run(self) -> None:
        """Run the model."""

    async def run_in_batch(self) -> None:
        """As `run`, together with others, for an event loop."""
        raise NotImplementedError

    @abstractmethod
    def encode(self) -> bytes:
        """The bytes of the answer."""

    @abstractmethod
    def exchange(self) -> Exchange:
        """Request and answer, for the prediction log."""

    def timeout_ms(self) -> int:
        """Time left for the run; 0 for no limit."""
        return 0

    def count(self, metrics: Metrics, started: float) -> None:
        """Count a run that went well.

        Args:
            metrics: Where.
            started: `time.perf_counter()` before it.
        """
        metrics.ran(self.target.model, self.api, started)
