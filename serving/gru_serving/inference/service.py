"""The path of every inference request, whatever its transport, and the other queries about models.

A transport parses the request and encodes the answer (`Request`). In between, a request finds its
version, is decoded to arrays, and runs (`Inference.answer`).
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from gru_serving.codecs.inference_messages import Answering
from gru_serving.codecs.signature import DEFAULT_SIGNATURE
from gru_serving.config.files import ShadowTarget
from gru_serving.engine.predictor import Predictor, PreparedRun
from gru_serving.engine.worker_threads import WorkerThreads
from gru_serving.inference.shadow import Answered, Shadow
from gru_serving.inference.turns import LONG_BYTES, Turn, Turns
from gru_serving.protos.get_model_metadata_pb2 import SignatureDefMap
from gru_serving.protos.get_model_status_pb2 import GetModelStatusResponse
from gru_serving.protos.model_pb2 import ModelSpec
from gru_serving.repository.catalogue import Catalogue
from gru_serving.telemetry.metrics import Metrics
from gru_serving.telemetry.request_record import Exchange, RequestRecord

AnswerT = TypeVar("AnswerT")


class Target(NamedTuple):
    """The version that a request addresses.

    Attributes:
        model: Model name.
        version: Version number; None for the highest that serves.
        label: Label that points to the version; not together with `version`.
    """

    model: str
    version: int | None = None
    label: str | None = None


class Question(NamedTuple):
    """A request that was parsed but needs its model to be decoded.

    Attributes:
        target: Version that is asked.
        signature_name: Signature name, as in the request; empty for `serving_default`.
        content: The parsed request.
    """

    target: Target
    signature_name: str
    content: Any


@dataclass(frozen=True, slots=True)
class Work(Generic[AnswerT]):
    """A request that was decoded.

    Attributes:
        run: Run of the model, with the arrays of the request.
        encode: Function that makes the bytes of the answer.
        messages: Function that makes request and response as messages for the prediction log, of
            the answer and its bytes.
        prepare: Function that prepares the same run of another version.
    """

    run: PreparedRun[AnswerT]
    encode: Callable[[AnswerT], bytes]
    messages: Callable[[AnswerT, bytes], tuple[bytes, bytes]]
    prepare: Callable[[Predictor], PreparedRun[AnswerT]]


class LoopLimits(NamedTuple):
    """Bytes up to which the event loop does the work itself, because a thread switch costs more.

    Attributes:
        read: Bytes of a request.
        write: Bytes of the outputs that an answer holds.
    """

    read: int
    write: int


class Request(ABC, Generic[AnswerT]):
    """One request as received by a transport; its methods block.

    Attributes:
        size: Bytes to read.
        api: Name in metrics: "Predict", "Classify", "Regress"; empty where TF Serving counts the
            examples only.
        kind: Name in prediction logs.
        limits: Limits of the work that the event loop does itself.
    """

    api: ClassVar[str]
    kind: ClassVar[str]
    limits: ClassVar[LoopLimits]
    size: int

    @abstractmethod
    def parse(self) -> Question:
        """Parse the bytes, as far as possible without the model."""

    @abstractmethod
    def decode(self, content: Any, predictor: Predictor, by: Answering) -> Work[AnswerT]:
        """Decode the parsed request to the model's inputs.

        Args:
            content: Content of the question.
            predictor: The version in memory.
            by: Version and signature that answer.
        """

    @property
    @abstractmethod
    def timeout_ms(self) -> int:
        """The milliseconds left for the run; 0 for no limit."""


class _Job(NamedTuple):
    """A request in progress with the version that answers it, which `lease` holds."""

    request: Request[Any]
    work: Work[Any]
    lease: ExitStack
    record: RequestRecord
    target: ShadowTarget | None
    """Version that is asked, too."""


class _Answer(NamedTuple):
    """An answer that is not encoded yet."""

    job: _Job
    outputs: Any
    size: int
    seconds: float
    shadow: Shadow | None

    def write(self) -> bytes:
        """Encode the answer, and offer the request to the shadow of its version."""
        (request, work, _, record, target), outputs, size, seconds, shadow = self
        with record.phase("encode"):
            body = work.encode(outputs)
        record.exchange = Exchange(
            request.kind, lambda: work.messages(outputs, body), request.size + size + len(body)
        )
        if shadow is not None and target is not None and record.version is not None:
            version, kept = record.version, request.size + size
            shadow.offer(
                Answered(record.model, version, target, work.prepare, outputs, seconds, kept)
            )
        return body


class Metadata(NamedTuple):
    """The signatures of a loaded version.

    Attributes:
        spec: Name and number, as responses echo them.
        signatures: Signatures as stored.
    """

    spec: ModelSpec
    signatures: SignatureDefMap


class Inference:
    """Answers requests, with the models of a repository; for one event loop.

    Args:
        repository: The models.
        threads: Threads in which models run, and large requests are read and answered.
        turns: Turns for long requests and answers; shared with other transports.
        metrics: Metrics that count the runs.
        shadow: Comparison with other versions; None for none.

    Attributes:
        repository: Models, as given.
        threads: Worker threads, as given.
        turns: Turns for long requests.
    """

    def __init__(
        self,
        repository: Catalogue,
        threads: WorkerThreads,
        turns: Turns | None = None,
        metrics: Metrics | None = None,
        shadow: Shadow | None = None,
    ) -> None:
        self.repository = repository
        self.threads = threads
        self.turns = turns or Turns()
        self._metrics = metrics or Metrics()
        self._shadow = shadow

    async def answer(self, request: Request[Any], record: RequestRecord) -> bytes:
        """Answer a request: parse, find the version, decode, run, encode.

        This takes one switch to a thread. The event loop parses small requests and encodes their
        small answers, and only the model runs in the thread; a large request is parsed, run and
        answered there. Two cases return to the loop in between: a model that merges runs into
        batches, and a long answer, which waits for its turn. A brief run stays on the loop
        altogether.

        Args:
            request: The request.
            record: Record of the request, to be filled in.

        Raises:
            ServingError: The request cannot be answered; the message is TF Serving's.
        """
        limits = request.limits
        left: _Job | _Answer | bytes
        with ExitStack() as lease:
            if request.size <= limits.read:
                left = job = self._decode(request, record, lease)
                if job.work.run.brief:
                    left = self._run(job)
                elif not job.work.run.batched:
                    left = await self.threads.run(self._run, job, time.perf_counter())
            else:
                async with self.turns.take(request.size) as turn:
                    left = await self.threads.run(
                        self._decode_and_run, request, record, lease, turn, time.perf_counter()
                    )
            if isinstance(left, _Job):
                left = await self._run_in_batch(left)
        if isinstance(left, bytes):
            return left
        if left.size <= limits.write:
            return left.write()
        async with self.turns.take(left.size):
            return await self.threads.run(left.write)

    def _decode(self, request: Request[Any], record: RequestRecord, lease: ExitStack) -> _Job:
        with record.phase("decode"):
            question = request.parse()
            (model, version, label), name, content = question
            record.model, record.signature = model, name
            held = self.repository.acquire(model, version, label)
            lease.callback(held.end)
            record.version = held.number
            record.signature = request.api and (name or DEFAULT_SIGNATURE)
            by = Answering(model, held.number, name)
            work = request.decode(content, held.predictor, by)
            return _Job(request, work, lease, record, held.shadow)

    def _decode_and_run(
        self,
        request: Request[Any],
        record: RequestRecord,
        lease: ExitStack,
        turn: Turn,
        queued: float,
    ) -> _Job | _Answer | bytes:
        record.waited(queued)
        job = self._decode(request, record, lease)
        turn.end()
        if job.work.run.batched:
            return job
        left = self._run(job)
        # The work is in a thread already, unless it is long: then it waits for its turn.
        return left.write() if isinstance(left, _Answer) and left.size <= LONG_BYTES else left

    def _run(self, job: _Job, queued: float | None = None) -> _Answer | bytes:
        """Run the model; an answer that is neither small nor long is encoded here as well."""
        if queued is not None:
            job.record.waited(queued)
        started = time.perf_counter()
        with job.record.phase("run"):
            outputs = job.work.run.run(job.request.timeout_ms)
        answer = self._ran(job, outputs, started)
        return answer.write() if job.request.limits.write < answer.size <= LONG_BYTES else answer

    async def _run_in_batch(self, job: _Job) -> _Answer:
        started = time.perf_counter()
        outputs = await job.work.run.run_in_batch(job.request.timeout_ms, job.record.trace)
        return self._ran(job, outputs, started)

    def _ran(self, job: _Job, outputs: Any, started: float) -> _Answer:
        """Count a successful run, and release the version."""
        seconds = time.perf_counter() - started
        if api := job.request.api:
            self._metrics.runtime_latency.observe(seconds * 1e6, job.record.model, api, "TF1")
        else:
            self._metrics.examples(job.record.model, job.work.run.rows)
        job.lease.close()
        size = 0
        if isinstance(outputs, Mapping):
            for array in outputs.values():
                size += array.nbytes
        return _Answer(job, outputs, size, seconds, self._shadow)

    def metadata(self, target: Target, record: RequestRecord) -> Metadata:
        """Return the signatures of a version.

        Raises:
            ServingError: The model, version or label does not exist; the message is TF Serving's.
        """
        with self.repository.acquire(*target) as (predictor, version):
            record.model, record.version = target.model, version
            spec = ModelSpec(name=target.model)
            spec.version.value = version
            return Metadata(spec, predictor.signature_defs)

    def status(self, target: Target) -> GetModelStatusResponse:
        """Return the states of the versions of a model, or of one version; labels are ignored.

        Raises:
            ServingError: The model or the version does not exist; the message is TF Serving's.
        """
        response = GetModelStatusResponse()
        for status in self.repository.status(target.model, target.version):
            entry = response.model_version_status.add(version=status.version)
            entry.state = status.state.value  # type: ignore[assignment]
            entry.status.error_code = status.error_code.value  # type: ignore[assignment]
            entry.status.error_message = status.error_message
        return response
