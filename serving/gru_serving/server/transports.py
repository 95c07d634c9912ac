"""The two listeners of a server: ports, TLS, start and drain."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gru_serving.config.flags import Flags
from gru_serving.errors import Unavailable
from gru_serving.server.ports import bind, host_port, port_error
from gru_serving.server.tls import grpc_credentials, rest_context

if TYPE_CHECKING:
    from gru_serving.engine.worker_threads import WorkerThreads
    from gru_serving.inference.turns import Turns
    from gru_serving.repository.repository import Repository
    from gru_serving.server.additions import Additions
    from gru_serving.server.byte_budget import ByteBudget
    from gru_serving.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

_BACKLOG = 2048
_UNBOUNDED = (1 << 31) - 1
_MAX_STREAMS = 1000
"""Calls in progress at once on one gRPC connection; further ones wait in the client."""
_HEALTH_NAMES = ("", "ModelService", "PredictionService")


def prefer_classic_polling() -> None:
    """Have gRPC poll sockets in the thread that waits for events; call before grpc is imported.

    Its newer EventEngine polls in threads of its own, one switch of threads more per event: a
    quarter more CPU time and latency per request. A setting of the user's is kept.
    """
    os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_listener,-event_engine_client")


class GrpcTransport:
    """The gRPC listener; holds its port from the start, for gRPC to take when told to.

    Args:
        flags: Ports, TLS, channel arguments.

    Raises:
        ServingError: The port is taken, or the TLS file is wrong.
    """

    def __init__(self, flags: Flags) -> None:
        self._flags = flags
        self._credentials = (
            grpc_credentials(flags.ssl_config_file) if flags.ssl_config_file else None
        )
        self._server: Any = None
        self._health: Any = None
        self._gate: Any = None
        self._held = bind(flags.bind_address, flags.port, "port") if flags.port else None

    async def start(
        self,
        repository: Repository,
        threads: WorkerThreads,
        turns: Turns,
        metrics: Metrics,
        additions: Additions,
        budget: ByteBudget,
    ) -> None:
        """Open the port.

        Raises:
            Unavailable: Somebody else took it meanwhile.
        """
        import grpc

        from gru_serving.inference.service import Inference
        from gru_serving.protos.services import (
            MODEL_SERVICE,
            PREDICTION_SERVICE,
            PROFILER_SERVICE,
            generic_handler,
        )
        from gru_serving.server.grpc.drain import DrainGate
        from gru_serving.server.grpc.model import ModelService
        from gru_serving.server.grpc.prediction import LIMITS, PredictionService
        from gru_serving.server.grpc.profiler import ProfilerService

        flags = self._flags
        self._server = grpc.aio.server(
            interceptors=additions.interceptors(),
            options=_channel_options(flags.grpc_channel_arguments, budget.one),
        )
        content = flags.enable_serialization_as_tensor_content
        may_log = bool(flags.prediction_log_directory)
        inference = Inference(repository, threads, LIMITS, turns, metrics)
        services: dict[Any, Any] = {
            PREDICTION_SERVICE: PredictionService(inference, metrics, content, budget),
            MODEL_SERVICE: ModelService(inference, metrics, may_log, budget),
        }
        if flags.enable_profiler:
            services[PROFILER_SERVICE] = ProfilerService(threads)
        self._gate = DrainGate(additions.refusals)
        handlers = [generic_handler(service, handler) for service, handler in services.items()]
        self._server.add_generic_rpc_handlers((self._gate, *handlers))
        self._add_reflection([service.full_name for service in services])
        if flags.enable_grpc_healthcheck_service:
            await self._add_health()
        addresses = [host_port(flags.bind_address, flags.port)] if flags.port else []
        if flags.grpc_socket_path:
            addresses.append(f"unix:{flags.grpc_socket_path}")
        self.close()  # gRPC binds sockets of its own
        for address in addresses:
            try:
                if self._credentials is None:
                    self._server.add_insecure_port(address)
                else:
                    self._server.add_secure_port(address, self._credentials)
            except RuntimeError as error:
                raise Unavailable(f"cannot listen on {address} for gRPC: {error}") from None
        await self._server.start()
        for address in addresses:
            log.info("Running gRPC ModelServer at %s ...", address)

    async def stop(self, seconds: float) -> None:
        """Accept no new calls and give those in progress time to finish."""
        if self._health is not None:
            await self._health.enter_graceful_shutdown()
        if self._server is not None:
            await self._gate.close()
            await self._server.stop(seconds)

    def close(self) -> None:
        """Let the port go, if it is still held."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def _add_reflection(self, names: list[str]) -> None:
        from grpc_reflection.v1alpha import reflection

        from gru_serving.protos import pool

        reflection.enable_server_reflection(
            [*names, reflection.SERVICE_NAME], self._server, pool=pool.POOL
        )

    async def _add_health(self) -> None:
        from grpc_health.v1 import health, health_pb2, health_pb2_grpc

        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        for name in _HEALTH_NAMES:
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)


class RestTransport:
    """The REST listener; holds its port from the start, but listens only when told to.

    Args:
        flags: Port, TLS, timeout, CORS.

    Raises:
        ServingError: The port is taken, or the TLS file is wrong.
    """

    def __init__(self, flags: Flags) -> None:
        self._flags = flags
        self._tls = rest_context(flags.rest_ssl_config_file) if flags.rest_ssl_config_file else None
        self._socket = bind(flags.bind_address, flags.rest_api_port, "rest_api_port")
        self._draining = False
        self._rest: Any = None
        self._gate: Any = None
        self._serving: asyncio.Future[None] | None = None

    async def start(
        self,
        repository: Repository,
        threads: WorkerThreads,
        turns: Turns,
        metrics: Metrics,
        metrics_path: str,
        additions: Additions,
        budget: ByteBudget,
    ) -> None:
        """Open the port.

        Raises:
            Unavailable: Somebody else listens on it.
        """
        import uvicorn

        from gru_serving.inference.service import Inference
        from gru_serving.server.playground.routes import playground_routes
        from gru_serving.server.rest.app import LIMITS, create_app
        from gru_serving.server.rest.cors import cors_headers
        from gru_serving.server.rest.drain import DrainGate
        from gru_serving.server.rest.protocol import PatientProtocol

        class RestServer(uvicorn.Server):
            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield  # signals belong to the whole process, not to one of its transports

        flags = self._flags
        try:
            # Connections inherit it, so that those left over do not keep the next server away.
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.listen(_BACKLOG)
        except OSError as error:
            host, port = flags.bind_address, flags.rest_api_port
            raise port_error(host, port, "rest_api_port", error) from None
        app = create_app(
            Inference(repository, threads, LIMITS, turns, metrics),
            flags.rest_api_timeout_in_ms,
            cors_headers(flags),
            draining=lambda: self._draining,
            metrics=metrics,
            metrics_path=metrics_path,
            budget=budget,
            further=playground_routes(flags, metrics_path, repository),
        )
        self._gate = DrainGate(app, additions.refusals)
        config = uvicorn.Config(
            additions.wrap(self._gate),
            http=PatientProtocol,
            log_config=None,
            ws="none",
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            # Anybody can send X-Forwarded-For; the address in the logs is that of the connection.
            proxy_headers=False,
            timeout_keep_alive=flags.rest_keep_alive_seconds,
            backlog=_BACKLOG,
        )
        config.load()
        config.ssl = self._tls
        self._rest = RestServer(config)
        self._serving = asyncio.ensure_future(self._rest.serve(sockets=[self._socket]))
        host = "localhost" if flags.bind_address == "127.0.0.1" else flags.bind_address
        log.info("Exporting HTTP/REST API at:%s ...", host_port(host, flags.rest_api_port))

    async def stop(self, seconds: float) -> None:
        """Accept no new requests and give those in progress time to finish."""
        self._draining = True
        if self._serving is not None:
            await self._gate.close()
            self._rest.config.timeout_graceful_shutdown = int(seconds)
            self._rest.should_exit = True
            await self._serving

    def close(self) -> None:
        """Let the port go."""
        self._socket.close()


def _channel_options(text: str, most: int) -> list[tuple[str, int | str]]:
    # A dictionary: of an option given twice, gRPC would take the first, not the user's.
    options: dict[str, int | str] = {
        "grpc.max_send_message_length": _UNBOUNDED,
        # Packed messages are measured unpacked.
        "grpc.max_receive_message_length": min(most, _UNBOUNDED),
        # Otherwise a second server could start on the same port and take half of the requests.
        "grpc.so_reuseport": 0,
        # Beyond a thousand calls that wait to be read gRPC would cancel some, and all beyond three
        # thousand: clients do not retry these, and no log or metric has them. What a connection
        # brings is bounded by its streams, with the excess waiting in the client, and the calls in
        # progress by the budget, which refuses with a status of its own.
        "grpc.server.max_pending_requests": _UNBOUNDED,
        "grpc.server.max_pending_requests_hard_limit": _UNBOUNDED,
        "grpc.max_concurrent_streams": _MAX_STREAMS,
        # It refuses the streams of clients that keep to the limit: those it has answered count
        # until it has freed them.
        "grpc.http.overload_protection": 0,
    }
    for pair in filter(None, text.split(",")):
        key, _, value = pair.partition("=")
        try:
            options[key] = int(value)
        except ValueError:
            options[key] = value
    return list(options.items())
