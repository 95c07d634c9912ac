"""A process that answers requests with the versions that the owner's process has it load.

Its command line names the descriptors of its connection to the owner and of the shared clock. It
ends with the owner.
"""

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from gru_serving.config.files import ServedModel
from gru_serving.config.flags import Flags
from gru_serving.errors import ServingError
from gru_serving.repository.catalogue import Catalogue
from gru_serving.server.process import Server, run_server, version_loader
from gru_serving.server.workers.peer import Clock, GoneError, Peer
from gru_serving.server.workers.replica import Ask, Replica
from gru_serving.telemetry.metrics import Metrics
from gru_serving.telemetry.server_log import start_log

log = logging.getLogger(__name__)

FAILURE_STATUS = 1
_HANDOVER_SECONDS = 2.0


class WorkerMetrics(Metrics):
    """Metrics of a worker, which are a part of the server's.

    Args:
        ask: Function that calls a method of the owner.
    """

    def __init__(self, ask: Ask) -> None:
        super().__init__()
        self._ask = ask

    def whole(self) -> Metrics:
        """See the base class."""
        whole = Metrics()
        whole.absorb(self._ask("counts").result())
        return whole

    @contextmanager
    def loading(self, path: str) -> Iterator[None]:  # noqa: ARG002
        """See the base class; the owner counts the load of all workers as one."""
        yield


class Worker(Server):
    """The listeners of a server whose versions another process decides on.

    Args:
        flags: Flags of the server, with this worker's part of the limits.
        connection: Connection to the owner.
        clock: Clock that says which of the owner's snapshots is in force.
    """

    def __init__(self, flags: Flags, connection: Connection, clock: Clock) -> None:
        super().__init__(flags)
        self._connection = connection
        self._peer: Peer | None = None
        self._metrics = WorkerMetrics(self._ask)
        # The owner has tried the version, and checked who signed it.
        trusting = replace(flags, trial_load="never", trusted_signers="")
        self._loader = loader = version_loader(trusting, self._metrics)
        self._replica = Replica(loader, clock, self._ask, flags.isolate_models)
        self._serving: Future[None] = Future()

    async def run(self) -> None:
        """See the base class; also returns when the owner says so, or ends."""
        loop = asyncio.get_running_loop()

        def stop() -> None:
            with contextlib.suppress(RuntimeError):  # it has stopped by itself
                loop.call_soon_threadsafe(self._stop.set)

        replica = self._replica
        methods: dict[str, Callable[..., Any]] = {
            "stage": replica.stage,
            "load": replica.load,
            "unload": replica.unload,
            "forget": replica.forget,
            "serve": self._serve_now,
            "counts": self._metrics.families,
            "stop": stop,
        }
        self._peer = Peer(self._connection, methods, stop)
        try:
            await super().run()
        except ServingError as error:
            if not self._serving.done():
                self._serving.set_exception(error)
            self._hand_over("failed", error)
            raise
        self._hand_over("left", self._metrics.families())

    def _ask(self, name: str, *arguments: Any) -> Future[Any]:
        assert self._peer is not None
        return self._peer.call(name, *arguments)

    def _hand_over(self, name: str, what: Any) -> None:
        with contextlib.suppress(GoneError, TimeoutError):
            self._ask(name, what).result(_HANDOVER_SECONDS)

    def _serve_now(self) -> None:
        """Open the ports; returns when they are open."""
        self._replica.serve()
        self._serving.result()

    def _obey_signals(self) -> None:
        # Ctrl-C and a terminal's end reach all of its processes, and are for the owner to obey.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stop.set)

    def _models(self, known: Collection[str] = ()) -> list[ServedModel] | None:  # noqa: ARG002
        return None

    def _repository(self, models: list[ServedModel] | None) -> Catalogue:  # noqa: ARG002
        return self._replica

    async def _load(self, repository: Catalogue) -> bool:
        self._ask("joined")
        return await super()._load(repository)

    def _opened(self) -> None:
        self._serving.set_result(None)


def main(descriptors: Sequence[str]) -> int:
    """Answer requests until the owner ends it; returns the exit status."""
    control, clock = map(int, descriptors)
    connection = Connection(control)
    flags, number = connection.recv()
    start_log(f"worker {number}: ")
    # The owner polls the config file.
    flags = replace(flags, model_config_file_poll_wait_seconds=0)
    try:
        run_server(Worker(flags, connection, Clock(clock)), flags)
    except ServingError as error:
        log.error("%s", error.status)
        return FAILURE_STATUS
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
