"""The process that decides which versions serve, and the workers that it has load them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, cast

from gru_serving.config.files import ServedModel
from gru_serving.config.flags import Flags
from gru_serving.engine.load_options import LoadOptions
from gru_serving.engine.load_watch import LoadWatch
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.version_loader import VersionLoader
from gru_serving.errors import Code, RefusedVersion, ServingError, Unavailable
from gru_serving.repository.catalogue import Catalogue
from gru_serving.repository.repository import Repository, RepositoryOptions
from gru_serving.server.listening import claim
from gru_serving.server.process import (
    ANSWER_SECONDS,
    UNLOAD_SECONDS,
    Server,
    load_options,
    repository_options,
)
from gru_serving.server.systemd import STOPPING, feed_watchdog, notify
from gru_serving.server.workers.peer import Clock, GoneError, Peer
from gru_serving.server.workers.replica import Snapshot
from gru_serving.telemetry.metrics import Counter, Gauge, Histogram, Metrics

log = logging.getLogger(__name__)

_PACKAGES = Path(__file__).resolve().parents[3]
_WATCH_SECONDS = 10.0
_PATIENCE_SECONDS = 60.0
"""Time without an answer after which a worker counts as stuck, and is ended."""
_END_SECONDS = 10.0
"""Time for the end of a process once it has nothing to answer any more."""
_COUNT_SECONDS = 2.0
_SHORT_LIFE_SECONDS = 30.0
_LONGEST_PAUSE_SECONDS = 30.0


@dataclass(eq=False)
class WorkerProcess:
    """A worker, as its owner sees it.

    Attributes:
        number: Number of the worker, which its replacement keeps.
        process: The process.
        joined: Outcome of its start.
        serves: Whether its ports are open.
        families: Metrics that it had when it was asked last.
        began: Time of its start, by `time.monotonic()`.
        peer: Connection by which its methods are called.
    """

    number: int
    process: subprocess.Popen[bytes]
    joined: Future[None] = field(default_factory=Future)
    serves: bool = False
    families: Sequence[Counter | Histogram] = ()
    began: float = field(default_factory=time.monotonic)
    peer: Peer = field(init=False)

    def call(self, name: str, *arguments: Any) -> Future[Any]:
        """Call a method of the worker."""
        return self.peer.call(name, *arguments)


@dataclass(frozen=True)
class Copies:
    """A version in the memory of all workers; what the owner has for a predictor.

    Attributes:
        number: Number of the copies.
        runtime: Name of what runs the model.
        left: Signatures that this leaves to TensorFlow.
        fleet: The workers.
    """

    number: int
    runtime: str
    left: frozenset[str]
    fleet: Fleet

    def interrupt(self) -> None:
        """Do nothing: each worker ends its own requests."""

    def close(self) -> None:
        """Free the version everywhere, once no request holds it."""
        self.fleet.unload(self.number)


class Fleet:
    """The workers of a server: started, replaced when they end, and kept at the same versions.

    Args:
        flags: Flags of the server.
        metrics: Metrics of the owner; they take those of workers that have ended.
        reconfigure: Function that serves other models, for the workers' requests to reload.
    """

    def __init__(
        self,
        flags: Flags,
        metrics: Metrics,
        reconfigure: Callable[[Sequence[ServedModel] | None], None],
    ) -> None:
        self._flags = replace(
            flags, max_requests_mib=max(1, flags.max_requests_mib // flags.workers)
        )
        self._metrics = metrics
        self._reconfigure = reconfigure
        self._stopping = threading.Event()
        self._starting = threading.Lock()
        self._processes: set[WorkerProcess] = set()
        self._failures = dict.fromkeys(range(1, flags.workers + 1), 0)
        # For changes: what is loaded and in force is the same for all members while one holds it.
        self._lock = threading.RLock()
        self._members: list[WorkerProcess] = []
        self._numbers = itertools.count(1)
        self._loaded: dict[int, Path] = {}
        self._snapshot = b""
        self._time = 0
        self._shared = os.memfd_create("clock")
        os.ftruncate(self._shared, 8)
        self._clock = Clock(self._shared)

    def start(self) -> None:
        """Start the workers; returns when all are there, with closed ports.

        Raises:
            ServingError: A worker could not start.
        """
        for worker in [self._spawn(number) for number in self._failures]:
            self._wait(worker.joined)
            self._join(worker)

    def serve(self) -> None:
        """Open the ports of all workers.

        Raises:
            ServingError: A port could not be opened.
        """
        for worker, answer in [(worker, worker.call("serve")) for worker in self._members]:
            self._opened(worker, answer)
        threading.Thread(target=self._watch, name="watch", daemon=True).start()

    def load(self, directory: Path, watch: LoadWatch) -> Copies:
        """Load a version in all workers.

        Raises:
            ServingError: A worker could not load it, and none keeps it; or the watch ends the load.
        """
        number = next(self._numbers)
        asked: dict[WorkerProcess, Future[tuple[str, frozenset[str]]]] = {}
        gone: set[WorkerProcess] = set()
        try:
            while len(gone) < self._flags.workers:
                with self._lock:
                    members = [worker for worker in self._members if worker not in gone]
                    missing = [worker for worker in members if worker not in asked]
                    if members and not missing:
                        self._loaded[number] = directory
                        return Copies(number, *asked[members[0]].result(), self)
                asked |= {worker: worker.call("load", number, directory) for worker in missing}
                for worker in missing:
                    try:
                        self._wait(asked[worker], watch.check)
                    except GoneError:  # its replacement will load it
                        gone.add(worker)
                if not members:
                    self._stopping.wait(0.1)  # for a replacement
                    watch.check()
            raise RefusedVersion(
                f"{len(gone)} processes have ended while they loaded {directory}", Code.INTERNAL
            )
        except BaseException:
            for worker, answer in asked.items():
                answer.add_done_callback(partial(_unload_loaded, worker, number))
            raise

    def unload(self, number: int) -> None:
        """Free a version in all workers; returns when all have."""
        with self._lock:
            self._loaded.pop(number, None)
            answers = [worker.call("unload", number) for worker in self._members]
        wait(answers)

    def forget(self, model: str, version: int, directory: Path) -> None:
        """Drop the metrics of a version in all workers."""
        wait([worker.call("forget", model, version, directory) for worker in self._members])

    def publish(self, snapshot: Snapshot) -> None:
        """Have all workers answer by a snapshot, from one moment on."""
        pickled = pickle.dumps(snapshot)
        with self._lock:
            if pickled == self._snapshot:
                return
            self._snapshot, time = pickled, self._time + 1
            staged = {one.call("stage", time, pickled): one for one in self._members}
            for answer in wait(staged).done:
                if answer.exception() is not None:  # it has ended, or is to: it cannot follow
                    staged[answer].process.kill()
            self._time = time
            self._clock.advance(time)

    def counts(self) -> list[Counter | Histogram]:
        """Return the metrics of the whole server; for a worker that is stuck, its last ones."""
        members = list(self._members)
        self._count(members, _COUNT_SECONDS)
        whole = Metrics()
        whole.absorb(self._metrics.families())
        for worker in members:
            whole.absorb(worker.families)
        return whole.families()

    def _count(self, workers: Sequence[WorkerProcess], seconds: float) -> list[WorkerProcess]:
        """Note the metrics of workers; returns those that did not answer in time."""
        answers = {worker: worker.call("counts") for worker in workers}
        late = wait(answers.values(), seconds).not_done
        for worker, answer in answers.items():
            if answer not in late and answer.exception() is None:
                worker.families = answer.result()
        return [worker for worker, answer in answers.items() if answer in late]

    def _watch(self) -> None:
        """End workers that are stuck, and note the metrics of the others, until the server stops.

        A stuck worker would keep its connections, and hold up every change of versions.
        """
        while not self._stopping.wait(_WATCH_SECONDS):
            with self._starting:
                there = [worker for worker in self._processes if worker.joined.done()]
            for worker in self._count(there, _PATIENCE_SECONDS):
                log.error("Worker %d has not answered for a minute; ending it", worker.number)
                worker.process.kill()

    def give_up(self) -> None:
        """Start no workers any more."""
        self._stopping.set()

    def stop(self) -> None:
        """Have the workers answer what they have begun, and end; returns when they have ended."""
        self.give_up()
        with self._starting:
            processes = list(self._processes)
        for worker in processes:
            worker.call("stop")
        ends = time.monotonic() + (
            self._flags.drain_seconds + ANSWER_SECONDS + UNLOAD_SECONDS + _END_SECONDS
        )
        for worker in processes:
            try:
                worker.process.wait(max(0.0, ends - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.warning("Worker %d does not end; killing it", worker.number)
                worker.process.kill()

    def _spawn(self, number: int) -> WorkerProcess:
        ours, theirs = Pipe()
        with theirs, self._starting:
            if self._stopping.is_set():
                raise Unavailable("the server stops")
            passed = (theirs.fileno(), self._shared)
            # A service manager hears of the owner alone.
            environment = {
                key: value
                for key, value in os.environ.items()
                if key not in ("NOTIFY_SOCKET", "WATCHDOG_USEC")
            }
            path = os.pathsep.join(filter(None, [str(_PACKAGES), os.environ.get("PYTHONPATH")]))
            try:
                process = subprocess.Popen(
                    [sys.executable, "-P", "-m", f"{__package__}.worker", *map(str, passed)],
                    stdin=subprocess.DEVNULL,
                    env={**environment, "PYTHONPATH": path},
                    pass_fds=passed,
                )
            except OSError as error:
                raise Unavailable(f"cannot start a worker: {error}") from None
            worker = WorkerProcess(number, process)
            methods: dict[str, Callable[..., Any]] = {
                "joined": partial(worker.joined.set_result, None),
                "failed": partial(_fail, worker),
                "left": partial(setattr, worker, "families"),
                "reconfigure": self._reconfigure,
                "counts": self.counts,
            }
            with contextlib.suppress(OSError):  # it has ended, which its peer finds
                ours.send((self._flags, number))
            worker.peer = Peer(ours, methods, partial(self._ended, worker))
            self._processes.add(worker)
        return worker

    def _join(self, worker: WorkerProcess) -> None:
        """Bring a worker to where the others are, and count on it from now on."""
        with self._lock:
            for answer in [worker.call("load", *pair) for pair in self._loaded.items()]:
                self._wait(answer)
            if self._snapshot:
                self._wait(worker.call("stage", self._time, self._snapshot))
            self._members.append(worker)

    def _opened(self, worker: WorkerProcess, answer: Future[None]) -> None:
        """Wait until a worker's ports are open; from then on it is replaced when it ends."""
        self._wait(answer)
        with self._lock:
            if worker not in self._members:
                raise GoneError(f"worker {worker.number} ended as it opened its ports")
            worker.serves = True

    def _ended(self, worker: WorkerProcess) -> None:
        """Replace a worker that has ended; runs in the thread that has listened to it."""
        status = worker.process.wait()
        _fail(worker, GoneError(f"worker {worker.number} ended with {_status_name(status)}"))
        with self._starting:
            self._processes.discard(worker)
        with self._lock:
            if worker in self._members:
                self._members.remove(worker)
            self._metrics.absorb(one for one in worker.families if not isinstance(one, Gauge))
        # Whoever waits for a worker to serve knows of its end.
        if self._stopping.is_set() or not worker.serves:
            return
        log.error("Worker %d ended with %s", worker.number, _status_name(status))
        if time.monotonic() - worker.began > _SHORT_LIFE_SECONDS:
            self._failures[worker.number] = 0
        self._replace(worker.number)

    def _replace(self, number: int) -> None:
        while True:
            failures = self._failures[number]
            self._failures[number] += 1
            pause = min(_LONGEST_PAUSE_SECONDS, 2.0 ** (failures - 1)) if failures else 0.0
            if self._stopping.wait(pause):
                return
            worker = None
            try:
                worker = self._spawn(number)
                self._wait(worker.joined)
                self._join(worker)
                self._opened(worker, worker.call("serve"))
            except ServingError as error:
                if self._stopping.is_set():
                    return
                log.error("Starting worker %d failed, trying again: %s", number, error.status)
                if worker is not None:
                    worker.process.kill()
            else:
                log.info("Worker %d was replaced", number)
                return

    def _wait(self, answer: Future[Any], check: Callable[[], None] | None = None) -> Any:
        """Wait for an answer of a worker until the server stops."""
        while not wait([answer], 0.1).done:
            if check is not None:
                check()
            elif self._stopping.is_set():
                raise Unavailable("the server stops")
        return answer.result()


def _fail(worker: WorkerProcess, error: ServingError) -> None:
    with contextlib.suppress(Exception):  # it had joined
        worker.joined.set_exception(error)


def _unload_loaded(worker: WorkerProcess, number: int, loaded: Future[Any]) -> None:
    if loaded.exception() is None:
        worker.call("unload", number)


def _status_name(status: int) -> str:
    return f"status {status}" if status >= 0 else signal.Signals(-status).name


class FleetLoader(VersionLoader):
    """Checks and tries versions here, and has the workers load them.

    Args:
        options: Options for loading versions.
        metrics: Metrics of the owner.
        fleet: The workers.
    """

    def __init__(self, options: LoadOptions, metrics: Metrics, fleet: Fleet) -> None:
        super().__init__(options, metrics)
        self._fleet = fleet

    def _load(self, directory: Path, watch: LoadWatch) -> Predictor:
        copies = self._fleet.load(directory, watch)
        self._runtimes[directory] = copies.runtime
        # Nobody asks the owner for an answer.
        return cast(Predictor, copies)

    def forget(self, model: str, version: int, directory: Path) -> None:
        """See the base class."""
        super().forget(model, version, directory)
        self._fleet.forget(model, version, directory)


class FleetRepository(Repository):
    """The models of a server with workers.

    Args:
        models: Models to serve; None where that is not configured yet.
        loader: Loader that has the workers load.
        options: Options for finding and loading versions.
        fleet: The workers.
    """

    def __init__(
        self,
        models: Sequence[ServedModel] | None,
        loader: VersionLoader,
        options: RepositoryOptions,
        fleet: Fleet,
    ) -> None:
        super().__init__(models, loader, options, loader.note_metadata, loader.forget)
        self._fleet = fleet

    def start(self) -> None:
        """See the base class."""
        self._fleet.start()
        super().start()
        if not self._stopping.is_set():
            self._fleet.serve()

    def announce(self) -> None:
        """See the base class; returns when all workers answer by it."""
        copies, models = {}, {}
        for name, model in self.models.items():
            known = {}
            for number, version in model.known.items():
                if isinstance(held := cast(object, version.predictor), Copies):
                    copies[name, number] = held.number
                known[number] = replace(version, predictor=None, tried=None, seen=None, listed={})
            models[name] = replace(model, known=known, aspired={})
        self._fleet.publish(Snapshot(self.configured, models, copies))

    def give_up(self) -> None:
        """See the base class."""
        super().give_up()
        self._fleet.give_up()

    def close(self) -> None:
        """See the base class; ends the workers."""
        self._fleet.stop()
        super().close()


class Owner(Server):
    """A server whose requests are answered by several processes.

    Args:
        flags: Flags after their check, with more than one worker.
    """

    async def run(self) -> None:
        """See the base class."""
        self._obey_signals()
        models = self._models()
        flags = self._flags
        with contextlib.ExitStack() as held:
            for name in ("port", "rest_api_port"):
                if port := getattr(flags, name):
                    held.enter_context(claim(flags.bind_address, port, name))
            repository = self._repository(models)
            async with contextlib.AsyncExitStack() as closing:
                closing.push_async_callback(self._close, repository)
                if await self._load(repository):
                    self._opened()
                    polling = asyncio.ensure_future(self._poll_config(repository))
                    fed = asyncio.ensure_future(feed_watchdog())
                    await self._stop.wait()
                    notify(STOPPING)
                    log.info("Stopping %d workers ...", flags.workers)
                    polling.cancel()
                    fed.cancel()
                    self._give_up(repository)
                    await asyncio.to_thread(self._fleet.stop)
        log.info("Stopped.")

    def _repository(self, models: list[ServedModel] | None) -> Catalogue:
        for model in models or ():
            log.info("Starting to serve %s from %s ...", model.name, model.base_path)
        options, _ = load_options(self._flags)
        self._fleet = fleet = Fleet(
            self._flags,
            self._metrics,
            lambda models: repository.reconfigure(models),  # noqa: PLW0108 (made below)
        )
        self._loader = loader = FleetLoader(options, self._metrics, fleet)
        repository = FleetRepository(models, loader, repository_options(self._flags), fleet)
        return repository
