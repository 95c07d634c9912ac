"""`gru-serve serve`: an engine that can stand where `tensorflow_model_server` stands."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from serving.errors import InvalidArgument, ServingError, Unavailable
from serving.flags import Flags, HelpRequested, check, notes, parse_flags, usage
from serving.metrics import DEFAULT_PATH, Metrics

if TYPE_CHECKING:
    from pathlib import Path

    from serving.config_files import ServedModel
    from serving.predictor import Predictor
    from serving.repository import Repository

log = logging.getLogger(__name__)

FAILED = 255
DRAIN_SECONDS = 20.0


def main(argv: Sequence[str]) -> int:
    """Serve until SIGTERM or SIGINT.

    Args:
        argv: Flags of TF Serving (`serving.flags`).

    Returns:
        0 after a stop by signal; 255, as TF Serving, when the server could not start.
    """
    try:
        flags = parse_flags(argv)
        if flags.version:
            print(_versions())
            return 0
        check(flags)
    except HelpRequested:
        print(usage())
        return FAILED
    except InvalidArgument as error:
        if str(error).startswith("Couldn't interpret"):
            print(f"{error}\n{usage()}")
        else:
            _say_failure(error)
        return FAILED
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname).1s %(message)s"
    )
    for note in notes(flags):
        log.warning(note)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        return asyncio.run(Server(flags).run())
    except ServingError as error:
        _say_failure(error)
        return FAILED


def _say_failure(error: ServingError) -> None:
    print(f"Failed to start server. Error: {error.status}", flush=True)


def _versions() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        own = version("keras-gru")
    except PackageNotFoundError:
        own = "(not installed)"
    return f"TensorFlow ModelServer: keras-gru {own}\nTensorFlow Library: {version('tensorflow')}"


class Server:
    """Repository, transports and their life in one process.

    Args:
        flags: Checked flags.
    """

    def __init__(self, flags: Flags) -> None:
        self._flags = flags
        self._draining = False
        self._stop = asyncio.Event()
        self._metrics = Metrics()
        self._health: Any = None
        self._metrics_path = ""

    async def run(self) -> int:
        """Load, serve, drain.

        Returns:
            The exit status, 0.

        Raises:
            ServingError: The server could not start.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        models = _models(self._flags)
        self._metrics_path = _metrics_path(self._flags)
        with contextlib.ExitStack() as stack:
            rest_socket = stack.enter_context(self._claim_ports())
            repository = self._repository(models)
            loading = asyncio.ensure_future(asyncio.to_thread(repository.start))
            stopping = asyncio.ensure_future(self._stop.wait())
            both: set[asyncio.Future[Any]] = {loading, stopping}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not loading.done():
                log.info("Stopping before the models are loaded ...")
                await asyncio.to_thread(repository.close)
                with contextlib.suppress(ServingError):
                    await loading
                return 0
            loading.result()
            polling = asyncio.ensure_future(self._poll_config(repository))
            try:
                await self._serve(repository, rest_socket)
            finally:
                polling.cancel()
                await asyncio.to_thread(repository.close)
        log.info("Stopped.")
        return 0

    async def _poll_config(self, repository: Repository) -> None:
        """Read and apply the model config file again and again; what fails is logged."""
        seconds = self._flags.model_config_file_poll_wait_seconds
        while self._flags.model_config_file and seconds > 0:
            await asyncio.sleep(seconds)
            try:
                models = await asyncio.to_thread(_models, self._flags)
                await asyncio.to_thread(repository.reconfigure, models)
            except ServingError as error:
                log.error("PollFilesystemAndReloadConfig failed to ReloadConfig: %s", error.status)

    def _repository(self, models: list[ServedModel]) -> Repository:
        from serving.repository import Repository, RepositoryOptions
        from serving.session import SessionOptions
        from serving.warmup import load_warm

        flags = self._flags
        both = flags.tensorflow_session_parallelism
        options = SessionOptions(
            intra_op_threads=flags.tensorflow_intra_op_parallelism or both,
            inter_op_threads=flags.tensorflow_inter_op_parallelism or both,
        )
        tags = tuple(flags.saved_model_tags.split(","))
        warmups = max(1, flags.num_request_iterations_for_warmup)

        def load(directory: Path) -> Predictor:
            with self._metrics.loading(str(directory)):
                return load_warm(
                    directory, tags, options, warmups if flags.enable_model_warmup else 0
                )

        return Repository(
            models,
            load,
            RepositoryOptions(
                poll_seconds=flags.file_system_poll_wait_seconds,
                max_load_retries=flags.max_num_load_retries,
                retry_seconds=flags.load_retry_interval_micros / 1e6,
                initial_threads=4 * (os.cpu_count() or 1),
                allow_labels_for_unavailable=flags.allow_version_labels_for_unavailable_models,
            ),
        )

    @contextlib.contextmanager
    def _claim_ports(self) -> Iterator[socket.socket | None]:
        """Hold the REST port, and see that the gRPC port is free, before models are loaded.

        Yields:
            The bound REST socket, not yet listening; None without REST.
        """
        flags = self._flags
        rest_socket = None
        if flags.rest_api_port and flags.rest_api_port == flags.port:
            log.error(
                "--rest_api_port cannot be same as --port. Please use a different port for "
                "HTTP/REST API. Skipped exporting HTTP/REST API."
            )
        elif flags.rest_api_port:
            rest_socket = _bind(flags.bind_address, flags.rest_api_port, "rest_api_port")
        try:
            if flags.port:
                _bind(flags.bind_address, flags.port, "port").close()
            yield rest_socket
        finally:
            if rest_socket is not None:
                rest_socket.close()

    async def _serve(self, repository: Repository, rest_socket: socket.socket | None) -> None:
        flags = self._flags
        with (
            ThreadPoolExecutor(max(1, flags.grpc_max_threads), "grpc") as grpc_threads,
            ThreadPoolExecutor(max(1, flags.rest_api_num_threads), "rest") as rest_threads,
        ):
            grpc_server = await self._start_grpc(repository, grpc_threads)
            try:
                if rest_socket is None:
                    await self._stop.wait()
                    self._draining = True
                else:
                    await self._serve_rest(repository, rest_threads, rest_socket)
            finally:
                log.info(
                    "Stopping: no new requests, up to %d s for those under way ...", DRAIN_SECONDS
                )
                if self._health is not None:
                    await self._health.enter_graceful_shutdown()
                await grpc_server.stop(DRAIN_SECONDS)

    async def _start_grpc(self, repository: Repository, threads: ThreadPoolExecutor) -> Any:
        import grpc

        from serving.grpc_service import ModelService, PredictionService
        from serving.protos import pool
        from serving.protos.services import MODEL_SERVICE, PREDICTION_SERVICE, generic_handler

        flags = self._flags
        server = grpc.aio.server(options=_channel_options(flags.grpc_channel_arguments))
        prediction = PredictionService(
            repository, threads, self._metrics, flags.enable_serialization_as_tensor_content
        )
        server.add_generic_rpc_handlers(
            (
                generic_handler(PREDICTION_SERVICE, prediction),
                generic_handler(MODEL_SERVICE, ModelService(repository, threads)),
            )
        )
        with contextlib.suppress(ImportError):
            from grpc_reflection.v1alpha import reflection

            names = [service.full_name for service in (PREDICTION_SERVICE, MODEL_SERVICE)]
            reflection.enable_server_reflection(
                [*names, reflection.SERVICE_NAME], server, pool=pool.POOL
            )
        if flags.enable_grpc_healthcheck_service:
            await self._add_health(server)
        credentials = _credentials(flags.ssl_config_file)
        addresses = [_host_port(flags.bind_address, flags.port)] if flags.port else []
        if flags.grpc_socket_path:
            addresses.append(f"unix:{flags.grpc_socket_path}")
        for address in addresses:
            try:
                if credentials is None:
                    server.add_insecure_port(address)
                else:
                    server.add_secure_port(address, credentials)
            except RuntimeError as error:
                raise Unavailable(f"cannot listen on {address} for gRPC: {error}") from None
        await server.start()
        for address in addresses:
            log.info("Running gRPC ModelServer at %s ...", address)
        return server

    async def _add_health(self, server: Any) -> None:
        from grpc_health.v1 import health, health_pb2, health_pb2_grpc

        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        for name in ("", "ModelService", "PredictionService"):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    async def _serve_rest(
        self, repository: Repository, threads: ThreadPoolExecutor, rest_socket: socket.socket
    ) -> None:
        import uvicorn

        from serving.rest_app import create_app

        flags = self._flags
        try:
            rest_socket.listen(2048)
        except OSError as error:
            host, port = flags.bind_address, flags.rest_api_port
            raise _port_error(host, port, "rest_api_port", error) from None
        app = create_app(
            repository,
            threads,
            flags.rest_api_timeout_in_ms,
            flags.rest_api_enable_cors_support,
            lambda: self._draining,
            self._metrics,
            self._metrics_path,
        )

        class RestServer(uvicorn.Server):
            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield  # signals belong to the whole process, not to one of its transports

        rest = RestServer(
            uvicorn.Config(
                app,
                log_config=None,
                log_level="warning",
                access_log=False,
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=int(DRAIN_SECONDS),
            )
        )
        serving = asyncio.ensure_future(rest.serve(sockets=[rest_socket]))
        stopping = asyncio.ensure_future(self._stop.wait())
        host = "localhost" if flags.bind_address == "127.0.0.1" else flags.bind_address
        log.info("Exporting HTTP/REST API at:%s ...", _host_port(host, flags.rest_api_port))
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        self._draining = True
        rest.should_exit = True
        await serving


def _models(flags: Flags) -> list[ServedModel]:
    from serving.config_files import read_model_config, single_model

    if flags.model_config_file:
        return read_model_config(flags.model_config_file)
    return [single_model(flags.model_name, flags.model_base_path)]


def _metrics_path(flags: Flags) -> str:
    """Where REST serves Prometheus' metrics; empty for nowhere."""
    if not flags.monitoring_config_file:
        return ""
    from serving.config_files import read_monitoring_config

    config = read_monitoring_config(flags.monitoring_config_file).prometheus_config
    return (config.path or DEFAULT_PATH) if config.enable else ""


def _bind(host: str, port: int, flag: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's algorithm off, which costs 40 ms per answer, only where TCP is explicit.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise _port_error(host, port, flag, error) from None
    return bound


def _port_error(host: str, port: int, flag: str, error: OSError) -> Unavailable:
    return Unavailable(
        f"cannot listen on {_host_port(host, port)}: {error.strerror}. "
        f"Choose another port with --{flag}, or stop what uses this one."
    )


def _host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _channel_options(text: str) -> list[tuple[str, int | str]]:
    options: list[tuple[str, int | str]] = [
        ("grpc.max_send_message_length", (1 << 31) - 1),
        ("grpc.max_receive_message_length", (1 << 31) - 1),
        # Else a second server on the same port would start and take half of the requests.
        ("grpc.so_reuseport", 0),
    ]
    for pair in filter(None, text.split(",")):
        key, _, value = pair.partition("=")
        try:
            options.append((key, int(value)))
        except ValueError:
            options.append((key, value))
    return options


def _credentials(ssl_config_file: str) -> Any:
    if not ssl_config_file:
        return None
    import grpc

    from serving.config_files import read_ssl_config

    config = read_ssl_config(ssl_config_file)
    return grpc.ssl_server_credentials(
        [(config.server_key.encode(), config.server_cert.encode())],
        root_certificates=config.custom_ca.encode() or None,
        require_client_auth=config.client_verify,
    )
