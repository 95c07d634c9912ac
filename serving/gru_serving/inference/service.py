"""The steps of every inference request, and the other queries about models."""

from __future__ import annotations

import time
from typing import NamedTuple

from gru_serving.engine.worker_threads import WorkerThreads
from gru_serving.inference.request import Request, Target
from gru_serving.inference.turns import LONG, Turn, Turns
from gru_serving.protos.get_model_metadata_pb2 import SignatureDefMap
from gru_serving.protos.get_model_status_pb2 import GetModelStatusResponse
from gru_serving.protos.model_pb2 import ModelSpec
from gru_serving.repository.repository import Repository
from gru_serving.telemetry.metrics import Metrics
from gru_serving.telemetry.request_record import note, note_exchange


class LoopLimits(NamedTuple):
    """Bytes up to which the event loop does the work itself, because a thread switch costs more.

    Attributes:
        read: Of a request.
        write: Of the outputs that an answer holds.
    """

    read: int
    write: int


class Metadata(NamedTuple):
    """The signatures of a loaded version.

    Attributes:
        spec: Name and number, as responses echo them.
        signatures: As stored.
    """

    spec: ModelSpec
    signatures: SignatureDefMap


class Inference:
    """Answers requests, with the models of a repository; for one event loop.

    Args:
        repository: The models.
        threads: Where models run, and where large requests are read and answered.
        limits: What the event loop does itself.
        turns: For long requests and answers; shared with other transports.
        metrics: Where runs are counted.

    Attributes:
        repository: As given.
        threads: As given.
        turns: As given.
    """

    def __init__(
        self,
        repository: Repository,
        threads: WorkerThreads,
        limits: LoopLimits,
        turns: Turns | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.repository = repository
        self.threads = threads
        self.turns = turns or Turns()
        self._limits = limits
        self._metrics = metrics or Metrics()

    async def answer(self, request: Request) -> bytes:
        """The bytes that answer a request.

        It takes one trip to a thread. The event loop reads small requests and writes their small
        answers, and only the model runs in the thread; there a large one is read, run and answered.
        Two things bring it back to the loop in between: a model that merges runs into batches, and
        a long answer, which waits for its turn. A brief run stays on the loop altogether.

        Raises:
            ServingError: With TF Serving's text.
        """
        answer: bytes | None = None
        try:
            if request.quick and request.size <= self._limits.read:
                self._read(request)
                if request.brief:
                    answer = self._run(request, self._limits.write)
                elif not request.batched:
                    answer = await self.threads.run(self._run, request, self._limits.write)
            else:
                async with self.turns.take(request.size) as turn:
                    answer = await self.threads.run(self._read_and_run, request, turn)
            if request.batched:
                started = time.perf_counter()
                await request.run_in_batch()
                request.count(self._metrics, started)
        finally:
            request.release()
        if answer is not None:
            return answer
        if request.answer_size <= self._limits.write:
            return _write(request)
        async with self.turns.take(request.answer_size):
            return await self.threads.run(_write, request)

    def _read(self, request: Request) -> None:
        request.parse()
        model, version, label = request.target
        request.lease = lease = self.repository.acquire(model, version, label)
        note(model, lease.number, request.signature)
        request.prepare(lease.predictor)

    def _read_and_run(self, request: Request, turn: Turn) -> bytes | None:
        self._read(request)
        turn.end()
        return None if request.batched else self._run(request)

    def _run(self, request: Request, left: int = -1) -> bytes | None:
        """The answer; None where it is left to the loop.

        Args:
            request: Read already.
            left: Bytes up to which it is; long answers are anyway, as they wait for their turn.
        """
        started = time.perf_counter()
        request.run()
        request.count(self._metrics, started)
        request.release()
        return _write(request) if left < request.answer_size <= LONG else None

    def metadata(self, target: Target) -> Metadata:
        """The signatures of a version.

        Raises:
            ServingError: With TF Serving's text: no such model, version or label.
        """
        with self.repository.acquire(*target) as (predictor, version):
            note(target.model, version)
            spec = ModelSpec(name=target.model)
            spec.version.value = version
            return Metadata(spec, predictor.signature_defs)

    def status(self, target: Target) -> GetModelStatusResponse:
        """The states of the versions of a model, or of one version; labels do not matter.

        Raises:
            ServingError: With TF Serving's text: no such model or version.
        """
        response = GetModelStatusResponse()
        for status in self.repository.status(target.model, target.version):
            entry = response.model_version_status.add(version=status.version)
            entry.state = status.state.value  # type: ignore[assignment]
            entry.status.error_code = status.error_code.value  # type: ignore[assignment]
            entry.status.error_message = status.error_message
        return response


def _write(request: Request) -> bytes:
    request.answer = request.encode()
    note_exchange(request.exchange)
    return request.answer
