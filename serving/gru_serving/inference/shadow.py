"""Shadow traffic: requests that another version answers too, for a comparison of the answers.

A request is handed over when its own answer is ready. One thread asks the shadow version, compares
the two answers, counts, and drops both. It runs while the server has nothing better to do: the
event loop must be prompt, and fewer runs under way than there are cores. Otherwise requests wait in
a short queue, and those beyond it are shed. The thread has the priority of all others: a nicer one
that had to wait for a core while it holds the interpreter's lock would keep the event loop waiting.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np

from gru_serving.config.files import ShadowTarget
from gru_serving.engine.examples import VALUES, Classification
from gru_serving.engine.golden import TOLERANCE, compare
from gru_serving.engine.predictor import Predictor, PreparedRun
from gru_serving.errors import Code, ServingError
from gru_serving.repository.catalogue import Catalogue
from gru_serving.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

AGREED, DISAGREED, FAILED, SHED, ABSENT = "agreed", "disagreed", "failed", "shed", "absent"

_MAX_WAITING, _MAX_WAITING_BYTES = 64, 64 << 20
_PROMPT_SECONDS = 0.001
"""Time within which an event loop with a core to spare comes to a new callback."""
_PROBE_SECONDS = 0.005
"""Time for which the promptness of the loop is taken as known."""
_RUN_MS = 30_000
_QUIET_SECONDS = 60.0
_END_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Answered:
    """A request that has its answer.

    Attributes:
        model: Model name.
        version: Number of the version that answered.
        target: Version that is asked, too.
        prepare: Function that prepares the same run of another version.
        answer: Answer of the run.
        seconds: Time that the run took.
        size: Bytes that this keeps in memory, roughly.
    """

    model: str
    version: int
    target: ShadowTarget
    prepare: Callable[[Predictor], PreparedRun[Any]]
    answer: Any
    seconds: float
    size: int

    @property
    def labels(self) -> tuple[str, str, str]:
        """Labels of the metrics: the model, the version that answered, and its shadow."""
        return self.model, str(self.version), str(self.target.version)


class Shadow:
    """Compares the answers of versions with those of the shadows that the configuration names.

    Made in the event loop that answers the requests; a context manager that ends its thread.

    Args:
        repository: Models with their shadows.
        metrics: Metrics that count the comparisons.
        cores: Number of cores that this process may use.
    """

    def __init__(self, repository: Catalogue, metrics: Metrics, cores: int) -> None:
        self._repository = repository
        self._metrics = metrics
        self._cores = cores
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Answered] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="shadow", daemon=True)
        self._probed = self._said = float("-inf")

    def __enter__(self) -> Shadow:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._closing.set()
        with self._changed:
            self._waiting.clear()
            self._changed.notify()
        self._thread.join(_END_SECONDS)

    def offer(self, request: Answered) -> None:
        """Compare a request if it is sampled and its shadow is another version; returns at once."""
        target = request.target
        if target.version == request.version or random.random() >= target.share:
            return
        with self._changed:
            full = len(self._waiting) >= _MAX_WAITING or self._closing.is_set()
            if not full and (not self._waiting or self._bytes + request.size < _MAX_WAITING_BYTES):
                self._bytes += request.size
                self._waiting.append(request)
                self._changed.notify()
                return
        self._count(request, SHED)

    def _count(self, request: Answered, outcome: str) -> None:
        self._metrics.shadow_count.add(*request.labels, outcome)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing.is_set())
            while not (self._closing.is_set() or self._has_core()):
                self._closing.wait(_PROBE_SECONDS)
            with self._changed:
                if self._closing.is_set():
                    return
                request = self._waiting.popleft()
                self._bytes -= request.size
            try:
                self._count(request, self._ask(request))
            except Exception as error:
                self._count(request, FAILED)
                self._say(request, error)
            del request  # its arrays must not stay in memory while the thread waits

    def _has_core(self) -> bool:
        """Tell whether a run would take nothing from those that clients wait for."""
        if self._repository.leases() >= self._cores:
            return False
        if time.monotonic() < self._probed + _PROBE_SECONDS:
            return True
        seen, began = threading.Event(), time.monotonic()
        try:
            self._loop.call_soon_threadsafe(seen.set)
        except RuntimeError:  # the loop is closed
            return False
        seen.wait(1.0)
        now = time.monotonic()
        if now - began > _PROMPT_SECONDS:
            return False
        self._probed = now
        return True

    def _ask(self, request: Answered) -> str:
        """Ask the shadow; returns the outcome."""
        try:
            lease = self._repository.acquire(request.model, request.target.version)
        except ServingError as error:
            if error.code is Code.NOT_FOUND:
                return ABSENT
            raise
        with lease as (predictor, _):
            run = request.prepare(predictor)
            started = time.perf_counter()
            answer = run.run(_RUN_MS)
            seconds = time.perf_counter() - started
        del run
        for value, answering in ((request.seconds, "live"), (seconds, "shadow")):
            self._metrics.shadow_latency.observe(value * 1e6, *request.labels, answering)
        asked = request.target.tolerance
        tolerance = TOLERANCE if asked is None else asked
        equal, largest = _compare(_arrays(request.answer), _arrays(answer), tolerance)
        self._metrics.shadow_difference.observe(largest, *request.labels)
        return AGREED if equal else DISAGREED

    def _say(self, request: Answered, error: Exception) -> None:
        """Log a failure of a shadow, at most one in a minute."""
        if time.monotonic() < self._said + _QUIET_SECONDS:
            return
        self._said = time.monotonic()
        known = isinstance(error, ServingError)
        log.warning(
            "version %d of %s, the shadow of version %d, failed (clients have their answers): %s",
            request.target.version,
            request.model,
            request.version,
            error.status if isinstance(error, ServingError) else repr(error),
            exc_info=None if known else error,
        )


def _compare(
    live: Mapping[str, np.ndarray], shadow: Mapping[str, np.ndarray], tolerance: float
) -> tuple[bool, float]:
    """Tell whether all outputs of the first are equal in the second, and how far numbers differ."""
    equal, largest = True, 0.0
    for name, wanted in live.items():
        got = shadow.get(name)
        if got is None or got.shape != wanted.shape:
            equal = False
            continue
        differing, gap = compare(wanted, got, tolerance)
        equal = equal and not differing.any()
        largest = max(largest, float(gap.max(initial=0)))
    return equal, largest


def _arrays(answer: Any) -> Mapping[str, np.ndarray]:
    """Return an answer of any kind of request as arrays by name."""
    if isinstance(answer, Classification):
        return answer.arrays()
    if isinstance(answer, np.ndarray):
        return {VALUES: answer}
    if isinstance(answer, list):  # MultiInference has one for each of its tasks
        return {
            f"{i}/{name}": array
            for i, one in enumerate(answer)
            for name, array in _arrays(one).items()
        }
    named: Mapping[str, np.ndarray] = answer
    return named
