"""`gru-serve serve`: an engine that can stand where `tensorflow_model_server` stands."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Collection, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from serving.additions import Additions
from serving.byte_budget import ByteBudget
from serving.errors import InvalidArgument, ServingError
from serving.exposure import exposure
from serving.flags import Flags, HelpRequested, check, notes, parse_flags, usage
from serving.free_memory import give_back
from serving.imports import for_good, without_keras
from serving.metrics import DEFAULT_PATH, Metrics
from serving.server_log import start_log
from serving.transports import GrpcTransport, RestTransport, prefer_classic_polling
from serving.worker_threads import WorkerThreads

if TYPE_CHECKING:
    from serving.config_files import ServedModel
    from serving.repository import Repository
    from serving.version_loader import VersionLoader

log = logging.getLogger(__name__)

FAILED = 255
ANSWER_SECONDS = 2.0
UNLOAD_SECONDS = 5.0
# Batch threads and the event loop take turns at the interpreter. With Python's own 5 ms, a batch
# begins only when the loop is through with all that came; then the one waits for the other.
BATCHING_TURN_SECONDS = 0.0005


def main(argv: Sequence[str]) -> int:
    """Serve until SIGTERM or SIGINT.

    Args:
        argv: Flags of TF Serving (`serving.flags`).

    Returns:
        0 after a stop by signal; 255, as TF Serving, when the server could not start.
    """
    try:
        flags = parse_flags(argv)
    except HelpRequested:
        print(usage())
        return FAILED
    except InvalidArgument as error:
        print(f"{error}\n{usage()}")
        return FAILED
    if flags.version:
        print(_versions())
        return 0
    start_log()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    prefer_classic_polling()
    try:
        check(flags)
        for note in notes(flags):
            log.warning(note)
        if warning := exposure(flags):
            log.warning(warning)
        if flags.enable_batching:
            sys.setswitchinterval(BATCHING_TURN_SECONDS)
        _run(Server(flags).run())
    except ServingError as error:
        print(f"Failed to start server. Error: {error.status}", flush=True)
        return FAILED
    return 0


def _run(server: Coroutine[Any, Any, None]) -> None:
    try:
        import uvloop
    except ImportError:  # not on Windows; the same, some 100 us slower per request
        asyncio.run(server)
    else:
        uvloop.run(server)


def _versions() -> str:
    own, tensorflow = _installed("keras-gru"), _installed("tensorflow", "tensorflow-cpu")
    return f"TensorFlow ModelServer: keras-gru {own}\nTensorFlow Library: {tensorflow}"


def _installed(*packages: str) -> str:
    """The version of the first of these packages that is there."""
    from importlib.metadata import PackageNotFoundError, version

    for package in packages:
        with contextlib.suppress(PackageNotFoundError):
            return version(package)
    return "(not installed)"


class Server:
    """Repository, transports and their life in one process.

    Args:
        flags: Checked flags.
    """

    def __init__(self, flags: Flags) -> None:
        self._flags = flags
        self._stop = asyncio.Event()
        self._metrics = Metrics()
        self._loader: VersionLoader | None = None
        self._stuck = False

    async def run(self) -> None:
        """Load, serve, drain; returns after SIGTERM or SIGINT.

        Raises:
            ServingError: The server could not start.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        models = _models(self._flags)
        metrics_path = _metrics_path(self._flags)
        # Ports are claimed first: a taken one shall not cost the time to load the models.
        grpc = GrpcTransport(self._flags)
        async with contextlib.AsyncExitStack() as closing:
            rest = _rest_transport(self._flags)
            if rest is not None:
                closing.callback(rest.close)
            repository = self._repository(models)
            additions = Additions(self._flags, repository, self._metrics if metrics_path else None)
            closing.push_async_callback(asyncio.to_thread, additions.close)
            closing.push_async_callback(self._close, repository)
            if await self._load(repository):
                await self._serve(repository, grpc, rest, metrics_path, additions)
        log.info("Stopped.")
        if self._stuck:
            _leave()

    async def _close(self, repository: Repository) -> None:
        """Free the models; what cannot be interrupted is not waited for."""
        closed = asyncio.ensure_future(asyncio.to_thread(repository.close))
        await asyncio.wait({closed}, timeout=UNLOAD_SECONDS)
        if not closed.done():
            log.warning("Leaving a load or a run that cannot be interrupted.")
            self._stuck = True

    async def _load(self, repository: Repository) -> bool:
        """Load the first versions; False when told to stop meanwhile."""
        loading = asyncio.ensure_future(asyncio.to_thread(repository.start))
        stopping = asyncio.ensure_future(self._stop.wait())
        either: set[asyncio.Future[Any]] = {loading, stopping}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not loading.done():
            log.info("Stopping before the models are loaded ...")
            self._give_up(repository)
            await asyncio.wait({loading}, timeout=UNLOAD_SECONDS)
            if loading.done():
                loading.exception()  # of no interest any more
            return False
        stopping.cancel()
        await loading
        return True

    def _give_up(self, repository: Repository) -> None:
        """Load nothing any more, and end the loads under way."""
        repository.give_up()
        if self._loader is not None:
            self._loader.stop()

    async def _serve(
        self,
        repository: Repository,
        grpc: GrpcTransport,
        rest: RestTransport | None,
        metrics_path: str,
        additions: Additions,
    ) -> None:
        flags = self._flags
        budget = ByteBudget(flags.max_request_mib << 20, flags.max_requests_mib << 20)
        with (
            WorkerThreads(max(1, flags.grpc_max_threads), "grpc") as grpc_threads,
            WorkerThreads(max(1, flags.rest_api_num_threads), "rest") as rest_threads,
        ):
            polling = asyncio.ensure_future(self._poll_config(repository))
            trimming = asyncio.ensure_future(give_back())
            try:
                await grpc.start(repository, grpc_threads, self._metrics, additions, budget)
                if rest is not None:
                    await rest.start(
                        repository, rest_threads, self._metrics, metrics_path, additions, budget
                    )
                await self._stop.wait()
                log.info(
                    "Stopping: no new requests, up to %d s for those under way ...",
                    flags.drain_seconds,
                )
            finally:
                polling.cancel()
                trimming.cancel()
                self._give_up(repository)
                ending = asyncio.ensure_future(self._end_runs(repository))
                # What is ended still has an answer to send.
                seconds = flags.drain_seconds + ANSWER_SECONDS
                stops = [grpc.stop(seconds)]
                if rest is not None:
                    stops.append(rest.stop(seconds))
                await asyncio.gather(*stops)
                ending.cancel()
                # Nobody waits for an answer now. A run whose client left would be waited for, and
                # be it for ever.
                await asyncio.to_thread(repository.interrupt)

    async def _end_runs(self, repository: Repository) -> None:
        """End the requests that take longer than the time to drain."""
        await asyncio.sleep(self._flags.drain_seconds)
        log.warning("Ending the requests that are still under way ...")
        await asyncio.to_thread(repository.interrupt)

    async def _poll_config(self, repository: Repository) -> None:
        """Read and apply the model config file again and again; what fails is logged."""
        seconds = self._flags.model_config_file_poll_wait_seconds
        while self._flags.model_config_file and seconds > 0:
            await asyncio.sleep(seconds)
            try:
                known = repository.configured_names()
                models = await asyncio.to_thread(_models, self._flags, known)
                await asyncio.to_thread(repository.reconfigure, models)
            except ServingError as error:
                log.error("PollFilesystemAndReloadConfig failed to ReloadConfig: %s", error.status)
            except Exception:
                log.exception("reading %s failed; trying again", self._flags.model_config_file)

    def _repository(self, models: list[ServedModel] | None) -> Repository:
        with for_good(), without_keras():
            from serving.loader_flags import repository_options, version_loader
            from serving.repository import Repository

        self._loader = loader = version_loader(self._flags, self._metrics)
        return Repository(models, loader, repository_options(self._flags), loader.note_metadata)


def _leave() -> None:
    """End the process whatever its threads do; Python would wait for them."""
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)


def _models(flags: Flags, known: Collection[str] = ()) -> list[ServedModel] | None:
    from serving.config_files import read_model_config, single_model

    if flags.model_config_file:
        may_log = bool(flags.prediction_log_directory)
        return read_model_config(flags.model_config_file, may_log, known)
    return [single_model(flags.model_name, flags.model_base_path)]


def _metrics_path(flags: Flags) -> str:
    """Where REST serves Prometheus' metrics; empty for nowhere."""
    if not flags.monitoring_config_file:
        return ""
    from serving.config_files import read_monitoring_config

    config = read_monitoring_config(flags.monitoring_config_file).prometheus_config
    return (config.path or DEFAULT_PATH) if config.enable else ""


def _rest_transport(flags: Flags) -> RestTransport | None:
    if flags.rest_api_port == 0:
        return None
    if flags.rest_api_port == flags.port:
        log.error(
            "--rest_api_port cannot be same as --port. Please use a different port for HTTP/REST "
            "API. Skipped exporting HTTP/REST API."
        )
        return None
    return RestTransport(flags)
