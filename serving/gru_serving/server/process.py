"""The server process: options from flags, listeners, signals, start, stop, housekeeping."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gru_serving.config.batching_options import BatchingOptions, PoolOptions
from gru_serving.config.cpus import schedulable_cpus
from gru_serving.config.files import (
    ServedModel,
    read_model_config,
    read_text_proto,
    single_model,
)
from gru_serving.config.flags import Flags
from gru_serving.engine.batching.scheduler import BatchScheduler
from gru_serving.engine.load_options import LoadOptions, SessionOptions, read_session_config
from gru_serving.engine.version_loader import VersionLoader
from gru_serving.engine.worker_threads import WorkerThreads
from gru_serving.errors import ServingError
from gru_serving.inference.service import Inference
from gru_serving.inference.shadow import Shadow
from gru_serving.inference.turns import Turns
from gru_serving.protos.batching_parameters_pb2 import BatchingParameters
from gru_serving.protos.monitoring_config_pb2 import MonitoringConfig
from gru_serving.repository.catalogue import Catalogue
from gru_serving.repository.repository import Repository, RepositoryOptions
from gru_serving.server.additions import Additions
from gru_serving.server.byte_budget import ByteBudget
from gru_serving.server.systemd import READY, STOPPING, feed_watchdog, notify
from gru_serving.telemetry.metrics import DEFAULT_PATH, Metrics
from gru_serving.telemetry.refusals import Refusals

if TYPE_CHECKING:
    from gru_serving.server.grpc.listener import GrpcListener
    from gru_serving.server.rest.listener import RestListener


def version_loader(flags: Flags, metrics: Metrics) -> VersionLoader:
    """Make the version loader that these flags configure; starts the batch threads, if any.

    Raises:
        ServingError: A file that the flags name cannot be read, or asks for the impossible.
    """
    options, pool = load_options(flags)
    return VersionLoader(options, metrics, None if pool is None else BatchScheduler(pool))


def load_options(flags: Flags) -> tuple[LoadOptions, PoolOptions | None]:
    """Return the options for loading versions, and those of the batch threads where there are any.

    Raises:
        ServingError: A file that the flags name cannot be read, or asks for the impossible.
    """
    batching = pool = None
    if flags.enable_batching:
        batching, pool = _batching(flags)
    repeats = max(1, flags.num_request_iterations_for_warmup)
    options = LoadOptions(
        tags=tuple(flags.saved_model_tags.split(",")),
        session=_session_options(flags),
        warmup_iterations=repeats if flags.enable_model_warmup else 0,
        check_method_names=flags.enable_signature_method_name_check,
        batching=batching,
        per_model_batching=flags.enable_per_model_batching_parameters,
        prefer_tflite=flags.prefer_tflite_model,
        tflite_interpreters=max(1, flags.num_tflite_pools)
        * max(1, flags.num_tflite_interpreters_per_pool),
        trial=flags.trial_load,
        runtime=flags.runtime,
        seconds=max(0, flags.load_timeout_seconds),
        signers=tuple(Path(name) for name in flags.trusted_signers.split(",") if name),
    )
    return options, pool


def repository_options(flags: Flags) -> RepositoryOptions:
    """Return the options for scanning and loading versions."""
    return RepositoryOptions(
        poll_seconds=flags.file_system_poll_wait_seconds,
        max_load_retries=flags.max_num_load_retries,
        retry_seconds=flags.load_retry_interval_micros / 1e6,
        initial_threads=4 * schedulable_cpus(),
        load_threads=max(0, flags.num_load_threads),
        isolate_models=flags.isolate_models,
        always_present=flags.servable_versions_always_present,
        unload_threads=max(0, flags.num_unload_threads),
        allow_labels_for_unavailable=flags.allow_version_labels_for_unavailable_models,
    )


def _batching(flags: Flags) -> tuple[BatchingOptions, PoolOptions]:
    if not flags.batching_parameters_file:
        return BatchingOptions(), PoolOptions()
    parameters = read_text_proto(flags.batching_parameters_file, BatchingParameters())
    pool = PoolOptions.from_proto(parameters)
    if flags.enable_per_model_batching_parameters:
        return BatchingOptions(), pool
    return BatchingOptions.from_proto(parameters), pool


def _session_options(flags: Flags) -> SessionOptions:
    """Return the session's options.

    The two separate numbers of threads together take precedence over the common one.
    """
    intra = flags.tensorflow_intra_op_parallelism
    inter = flags.tensorflow_inter_op_parallelism
    if intra <= 0 and inter <= 0:
        intra = inter = flags.tensorflow_session_parallelism
    config = b""
    if flags.tensorflow_session_config_file:
        config = read_session_config(flags.tensorflow_session_config_file)
    return SessionOptions(
        max(0, intra), max(0, inter), max(0.0, flags.per_process_gpu_memory_fraction), config
    )


log = logging.getLogger(__name__)

_SECONDS = 2.0
_MAX_OPEN_SHARE = 0.9
_OPEN_FILES = Path("/proc/self/fd")
_MIN_RELEASED_BYTES = 32 << 20
# Memory freed after the last large request does not appear as a change in size.
_TIMES = 5


async def watch_descriptors() -> None:
    """Warn while few descriptors are left, for ever.

    Without a free descriptor a connection cannot be accepted: its client sees a reset, or waits.
    """
    if not _OPEN_FILES.is_dir():  # not Linux
        return
    import resource

    warned = False
    while True:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        try:
            count = len(await asyncio.to_thread(os.listdir, _OPEN_FILES)) - 1  # that of the look
        except OSError:  # it takes a descriptor to look
            count = most
        is_full = count > _MAX_OPEN_SHARE * most
        if is_full and not warned:
            log.warning(
                "%d of %d descriptors are open: connections beyond them fail. Allow more with "
                "`ulimit -n`, or put a proxy with fewer connections in front",
                count, most,
            )  # fmt: skip
        warned = is_full
        await asyncio.sleep(_SECONDS)


async def give_back_memory() -> None:
    """Return unused memory to the system whenever the process has grown or shrunk.

    Large requests, even those that gRPC refuses, leave free memory in the C library; more of it is
    free when a process begins to shrink than when it has just grown.
    """
    trim = _trim()
    if trim is None:
        return
    before = _resident()
    left = 0
    while True:
        await asyncio.sleep(_SECONDS)
        if abs(_resident() - before) > _MIN_RELEASED_BYTES:
            left = _TIMES
        if left:
            left -= 1
            await asyncio.to_thread(trim, 0)
            before = _resident()


def _trim() -> Any:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # no glibc
        return None


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


# Batch threads and the event loop alternate at the interpreter lock. With Python's own interval of
# 5 ms, a batch begins only when the loop is idle, and then the loop waits for the batch.
BATCHING_TURN_SECONDS = 0.0005
ANSWER_SECONDS = 2.0
UNLOAD_SECONDS = 5.0


class Server:
    """Repository, listeners and their lifecycle in one process.

    Args:
        flags: Flags after their check.
    """

    def __init__(self, flags: Flags) -> None:
        self._flags = flags
        self._stop = asyncio.Event()
        self._metrics = Metrics()
        self._loader: VersionLoader | None = None
        self._stuck = False

    async def run(self) -> None:
        """Load, serve, drain; returns after SIGTERM, SIGINT or SIGHUP.

        Raises:
            ServingError: The server could not start.
        """
        self._obey_signals()
        models = self._models()
        metrics_path = _metrics_path(self._flags)
        from gru_serving.server.grpc.listener import GrpcListener

        # Ports are claimed first, so that a port in use is reported before the models are loaded.
        async with contextlib.AsyncExitStack() as closing:
            grpc = GrpcListener(self._flags)
            closing.callback(grpc.close)
            rest = _rest_listener(self._flags)
            if rest is not None:
                closing.callback(rest.close)
            repository = self._repository(models)
            refusals = Refusals(self._metrics.refused_count)
            shown = self._metrics if metrics_path else None
            additions = Additions(self._flags, repository, shown, refusals)
            closing.push_async_callback(asyncio.to_thread, additions.close)
            closing.push_async_callback(self._close, repository)
            if await self._load(repository):
                await self._serve(repository, grpc, rest, metrics_path, additions)
        log.info("Stopped.")
        if self._stuck:
            _leave()

    def _obey_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._stop.set)
        loop.add_signal_handler(signal.SIGINT, self._stop.set)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
            loop.add_signal_handler(signal.SIGHUP, self._stop.set)

    async def _close(self, repository: Catalogue) -> None:
        """Free the models without waiting for calls that cannot be interrupted."""
        closed = asyncio.ensure_future(asyncio.to_thread(repository.close))
        await asyncio.wait({closed}, timeout=UNLOAD_SECONDS)
        if not closed.done():
            log.warning("Leaving a load or a run that cannot be interrupted.")
            self._stuck = True

    async def _load(self, repository: Catalogue) -> bool:
        """Load the first versions; returns False if the server is stopped meanwhile."""
        loading = asyncio.ensure_future(asyncio.to_thread(repository.start))
        stopping = asyncio.ensure_future(self._stop.wait())
        either: set[asyncio.Future[Any]] = {loading, stopping}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not loading.done():
            notify(STOPPING)
            log.info("Stopping before the models are loaded ...")
            self._give_up(repository)
            await asyncio.wait({loading}, timeout=UNLOAD_SECONDS)
            if loading.done():
                loading.exception()  # of no interest any more
            return False
        stopping.cancel()
        await loading
        return True

    def _give_up(self, repository: Catalogue) -> None:
        """Start no further loads and cancel those in progress."""
        repository.give_up()
        if self._loader is not None:
            self._loader.stop()

    async def _serve(
        self,
        repository: Catalogue,
        grpc: GrpcListener,
        rest: RestListener | None,
        metrics_path: str,
        additions: Additions,
    ) -> None:
        flags = self._flags
        budget = ByteBudget(
            flags.max_request_mib << 20, flags.max_requests_mib << 20, refusals=additions.refusals
        )
        turns = Turns()
        with (
            WorkerThreads(max(1, flags.grpc_max_threads), "grpc") as grpc_threads,
            WorkerThreads(max(1, flags.rest_api_num_threads), "rest") as rest_threads,
            Shadow(
                repository, self._metrics, max(1, schedulable_cpus() // flags.workers)
            ) as shadow,
        ):
            chores = [
                asyncio.ensure_future(chore)
                for chore in (
                    self._poll_config(repository),
                    give_back_memory(),
                    watch_descriptors(),
                    feed_watchdog(),
                )
            ]
            try:
                metrics = self._metrics
                inference = Inference(repository, grpc_threads, turns, metrics, shadow)
                await grpc.start(inference, metrics, budget, additions)
                if rest is not None:
                    inference = Inference(repository, rest_threads, turns, metrics, shadow)
                    await rest.start(inference, metrics, metrics_path, budget, additions)
                self._opened()
                await self._stop.wait()
                notify(STOPPING)
                log.info(
                    "Stopping: no new requests, up to %d s for those in progress ...",
                    flags.drain_seconds,
                )
            finally:
                for chore in chores:
                    chore.cancel()
                self._give_up(repository)
                ending = asyncio.ensure_future(self._end_runs(repository))
                # Cancelled requests still have to send their error.
                seconds = flags.drain_seconds + ANSWER_SECONDS
                stops = [grpc.stop(seconds)]
                if rest is not None:
                    stops.append(rest.stop(seconds))
                await asyncio.gather(*stops)
                ending.cancel()
                # Nobody waits for an answer now; a run whose client has left could otherwise block
                # forever.
                await asyncio.to_thread(repository.interrupt)

    def _opened(self) -> None:
        """Tell the service manager that the ports are open."""
        notify(READY)

    async def _end_runs(self, repository: Catalogue) -> None:
        """End the requests that take longer than the time to drain."""
        await asyncio.sleep(self._flags.drain_seconds)
        log.warning("Cancelling the requests that are still in progress ...")
        await asyncio.to_thread(repository.interrupt)

    async def _poll_config(self, repository: Catalogue) -> None:
        """Reread and apply the model config file periodically; log failures."""
        seconds = self._flags.model_config_file_poll_wait_seconds
        while self._flags.model_config_file and seconds > 0:
            await asyncio.sleep(seconds)
            try:
                known = repository.configured_names()
                models = await asyncio.to_thread(self._models, known)
                await asyncio.to_thread(repository.reconfigure, models)
            except ServingError as error:
                log.error("PollFilesystemAndReloadConfig failed to ReloadConfig: %s", error.status)
            except Exception:
                log.exception("reading %s failed; trying again", self._flags.model_config_file)

    def _models(self, known: Collection[str] = ()) -> list[ServedModel] | None:
        """Read the models to serve, of which some are known already."""
        flags = self._flags
        if flags.model_config_file:
            may_log = bool(flags.prediction_log_directory)
            return read_model_config(flags.model_config_file, may_log, known)
        return [single_model(flags.model_name, flags.model_base_path)]

    def _repository(self, models: list[ServedModel] | None) -> Catalogue:
        for model in models or ():
            log.info("Starting to serve %s from %s ...", model.name, model.base_path)
        self._loader = loader = version_loader(self._flags, self._metrics)
        options = repository_options(self._flags)
        return Repository(models, loader, options, loader.note_metadata, loader.forget)


def run_server(server: Server, flags: Flags) -> None:
    """Run a server until it ends.

    Args:
        server: Server to run.
        flags: Flags of the server.

    Raises:
        ServingError: The server could not start.
    """
    if flags.enable_batching:
        sys.setswitchinterval(BATCHING_TURN_SECONDS)
    try:
        import uvloop
    except ImportError:  # then asyncio's loop, which takes 100 us more per request
        asyncio.run(server.run())
    else:
        uvloop.run(server.run())


def _leave() -> None:
    """End the process without waiting for its threads, as Python would."""
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)


def _metrics_path(flags: Flags) -> str:
    """Return the path at which REST serves Prometheus' metrics; empty for none."""
    if not flags.monitoring_config_file:
        return ""
    config = read_text_proto(flags.monitoring_config_file, MonitoringConfig()).prometheus_config
    return (config.path or DEFAULT_PATH) if config.enable else ""


def _rest_listener(flags: Flags) -> RestListener | None:
    if flags.rest_api_port == 0:
        return None
    if flags.rest_api_port == flags.port:
        log.error(
            "--rest_api_port cannot be same as --port. Please use a different port for HTTP/REST "
            "API. Skipped exporting HTTP/REST API."
        )
        return None
    from gru_serving.server.rest.listener import RestListener

    return RestListener(flags)
