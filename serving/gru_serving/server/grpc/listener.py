"""The gRPC listener: its port and services, the layers in front of these, and its drain."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

import grpc
from grpc_reflection.v1alpha import reflection

from gru_serving.config.files import read_text_proto
from gru_serving.config.flags import Flags
from gru_serving.errors import Code, ServingError, Unavailable
from gru_serving.inference.service import Inference
from gru_serving.protos import pool
from gru_serving.protos.services import (
    MODEL_SERVICE,
    PREDICTION_SERVICE,
    PROFILER_SERVICE,
    generic_handler,
)
from gru_serving.protos.ssl_config_pb2 import SSLConfig
from gru_serving.server.additions import Additions
from gru_serving.server.byte_budget import ByteBudget
from gru_serving.server.grpc.services import ModelService, PredictionService, refuse
from gru_serving.server.listening import (
    STOPPING,
    QuietPeriod,
    bind,
    host_port,
    refuse_taken_socket,
    tls_context,
)
from gru_serving.server.tokens import REFUSAL, Tokens
from gru_serving.telemetry.metrics import Gauge, Metrics
from gru_serving.telemetry.refusals import Reason, Refusals
from gru_serving.telemetry.request_record import RequestRecord
from gru_serving.telemetry.tracing import REQUEST_ID, TRACEPARENT, Identities

log = logging.getLogger(__name__)

_UNBOUNDED = (1 << 31) - 1
_MAX_STREAMS = 1000
"""Calls in progress at once on one gRPC connection; further calls wait in the client."""
_HEALTH_NAMES = ("", "ModelService", "PredictionService")
_TENSORFLOW_SERVING = "/tensorflow.serving."
_HEALTH_SERVICE = "/grpc.health.v1.Health/"
_PROXY_HEADERS = {"via", "x-forwarded-for"}
_TO_PROXIES = (("refused", "unread"), ("refused-padding", "-" * 6000))
"""Size between the 4 KiB of an answer's headers that nginx reads and the 8 KiB limit of gRPC."""


class GrpcListener:
    """The gRPC listener, which holds its port from the start until gRPC takes it.

    Args:
        flags: Ports, TLS, channel arguments.

    Raises:
        ServingError: The port is taken, or the TLS file is wrong.
    """

    def __init__(self, flags: Flags) -> None:
        self._flags = flags
        self._credentials = _credentials(flags.ssl_config_file) if flags.ssl_config_file else None
        self._server: Any = None
        self._health: Any = None
        self._gate: DrainGate | None = None
        if flags.grpc_socket_path:
            refuse_taken_socket(flags.grpc_socket_path)
        self._held = (
            bind(flags.bind_address, flags.port, "port", flags.workers > 1) if flags.port else None
        )

    async def start(
        self, inference: Inference, metrics: Metrics, budget: ByteBudget, additions: Additions
    ) -> None:
        """Open the port.

        Raises:
            Unavailable: Another process took the port meanwhile.
        """
        flags = self._flags
        layers: list[Any] = []
        if additions.observers:
            layers.append(
                Observed(additions.observers, additions.identities, additions.in_progress)
            )
        if additions.tokens is not None:
            layers.append(TokenGuard(additions.tokens, additions.refusals))
        self._server = grpc.aio.server(
            interceptors=layers, options=_channel_options(flags, budget.one)
        )
        content = flags.enable_serialization_as_tensor_content
        may_log = bool(flags.prediction_log_directory)
        services: dict[Any, Any] = {
            PREDICTION_SERVICE: PredictionService(inference, metrics, content, budget),
            MODEL_SERVICE: ModelService(inference, metrics, may_log, budget),
        }
        if flags.enable_profiler:
            from gru_serving.server.grpc.profiler import ProfilerService

            services[PROFILER_SERVICE] = ProfilerService(inference.threads)
        self._gate = DrainGate(additions.refusals)
        handlers = [generic_handler(service, handler) for service, handler in services.items()]
        self._server.add_generic_rpc_handlers((self._gate, *handlers))
        names = [service.full_name for service in services]
        reflection.enable_server_reflection(
            [*names, reflection.SERVICE_NAME], self._server, pool=pool.POOL
        )
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
        if self._server is not None and self._gate is not None:
            await self._gate.close()
            await self._server.stop(seconds)

    def close(self) -> None:
        """Release the port if it is still held."""
        if self._held is not None:
            self._held.close()
            self._held = None

    async def _add_health(self) -> None:
        from grpc_health.v1 import health, health_pb2, health_pb2_grpc

        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        for name in _HEALTH_NAMES:
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)


class TokenGuard(grpc.aio.ServerInterceptor):
    """Refuses calls without a token; health checks pass.

    Args:
        tokens: Tokens that are accepted.
        refusals: Counter of the calls that are refused.
    """

    def __init__(self, tokens: Tokens, refusals: Refusals | None = None) -> None:
        self._tokens = tokens
        self._refusals = refusals or Refusals()

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        """Return the handler of a call, or one that refuses it, also for unknown methods."""
        handler = await continuation(details)
        if details.method.startswith(_HEALTH_SERVICE):
            return handler
        metadata = details.invocation_metadata or ()
        given = [value for key, value in metadata if key == "authorization"]
        if len(given) == 1 and self._tokens.allow(given[0]):
            return handler
        self._refusals.note(Reason.NO_TOKEN, REFUSAL)
        if handler is not None and handler.request_streaming:
            return grpc.stream_stream_rpc_method_handler(_refuse_token)
        return grpc.unary_unary_rpc_method_handler(_refuse_token)


async def _refuse_token(_: Any, context: Any, __: RequestRecord | None = None) -> bytes:
    return refuse(context, ServingError(REFUSAL, Code.UNAUTHENTICATED))


class Observed(grpc.aio.ServerInterceptor):
    """Keeps a record of every call of TF Serving's services.

    Args:
        observers: Functions that get the record when a call is over.
        identities: Ids and traces that calls get; None for neither.
        in_progress: Gauge of the calls in progress; None where nobody reads it.
    """

    def __init__(
        self,
        observers: Sequence[Callable[[RequestRecord], None]],
        identities: Identities | None = None,
        in_progress: Gauge | None = None,
    ) -> None:
        self._observers = observers
        self._identities = identities
        self._in_progress = in_progress

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        """Return the handler of a call wrapped to record it."""
        handler = await continuation(details)
        if (
            handler is None
            or handler.unary_unary is None
            or not details.method.startswith(_TENSORFLOW_SERVING)
        ):
            return handler
        inner = handler.unary_unary

        async def observed(request: bytes, context: Any) -> Any:
            record = RequestRecord("GRPC", details.method, peer=context.peer())
            record.request_bytes = len(request)
            if self._identities is not None:
                names = self._identities.names
                # The context's own list would be made anew from C.
                metadata = details.invocation_metadata or ()
                given = {key: value for key, value in reversed(metadata) if key in names}
                self._identities.note(record, given)
                answered = [(REQUEST_ID, record.request_id)]
                if record.traceparent:
                    answered.append((TRACEPARENT, record.traceparent))
                # Initial metadata would be a message of its own.
                context.set_trailing_metadata(answered)
            if self._in_progress is not None:
                self._in_progress.add("GRPC")
            try:
                answer: bytes = await inner(request, context, record)
                if context.code():  # 0 where none was set
                    record.status = _status(context)
                record.response_bytes = len(answer)
                return answer
            except asyncio.CancelledError:
                record.status = Code.CANCELLED.name
                raise
            except BaseException:
                record.status = _status(context)
                raise
            finally:
                if self._in_progress is not None:
                    self._in_progress.add("GRPC", by=-1)
                record.end(self._observers)

        return grpc.unary_unary_rpc_method_handler(observed)


def _status(context: Any) -> str:
    code = context.code()
    return code.name if isinstance(code, grpc.StatusCode) else Code.UNKNOWN.name


class DrainGate(grpc.GenericRpcHandler):
    """A gate before the services that refuses their calls with UNAVAILABLE once it is closed.

    A stopping gRPC server answers CANCELLED to the calls that wait to be read, which under load are
    most of those in progress. Clients retry UNAVAILABLE but not CANCELLED.

    nginx forwards both, and continues to send calls to a replica that answers so. If headers exceed
    its buffer (`grpc_buffer_size`), it treats the answer as a failure: it avoids the replica for a
    while, and its configuration can send the call to another one (`docker/gateway`). So the refusal
    of a call that came through a proxy (RFC 9110, section 7.6.3) has such headers.

    Args:
        refusals: Counter of the calls that are refused.
    """

    def __init__(self, refusals: Refusals | None = None) -> None:
        self._quiet = QuietPeriod()
        self._refusals = refusals or Refusals()

    def service(self, details: Any) -> Any:
        """Return a handler that refuses, or None to leave the call to its service."""
        if not self._quiet.begun or not details.method.startswith(_TENSORFLOW_SERVING):
            return None
        self._quiet.note()
        self._refusals.note(Reason.STOPPING, STOPPING)
        proxied = any(key in _PROXY_HEADERS for key, _ in details.invocation_metadata)
        return grpc.unary_unary_rpc_method_handler(_refuse_to_proxy if proxied else _refuse)

    async def close(self) -> None:
        """Refuse new calls; returns when no more arrive, or after two seconds."""
        await self._quiet.pass_by()


async def _refuse(_: Any, context: Any, __: RequestRecord | None = None) -> bytes:
    return refuse(context, Unavailable(STOPPING))


async def _refuse_to_proxy(request: Any, context: Any, _: RequestRecord | None = None) -> bytes:
    await context.send_initial_metadata(_TO_PROXIES)
    return await _refuse(request, context)


def _credentials(path: str) -> Any:
    """Return the TLS settings of gRPC from the file of `--ssl_config_file`.

    Raises:
        ServingError: The file is invalid, see `tls_context`; gRPC would accept anything, and only
            say that it cannot listen.
    """
    tls_context(path, "ssl_config_file")
    config = read_text_proto(path, SSLConfig())
    return grpc.ssl_server_credentials(
        [(config.server_key.encode(), config.server_cert.encode())],
        root_certificates=config.custom_ca.encode() or None,
        require_client_auth=config.client_verify,
    )


def _channel_options(flags: Flags, most: int) -> list[tuple[str, int | str]]:
    # This is a dictionary because of an option given twice, gRPC would take the first, not the
    # user's.
    options: dict[str, int | str] = {
        "grpc.max_send_message_length": _UNBOUNDED,
        # Compressed messages are measured after decompression.
        "grpc.max_receive_message_length": min(most, _UNBOUNDED),
        # Otherwise a second server could start on the same port and take half of the requests.
        "grpc.so_reuseport": int(flags.workers > 1),
        # If more than a thousand calls wait to be read, gRPC would cancel some, and all beyond
        # three thousand: clients do not retry these, and no log or metric has them. A connection is
        # limited by its streams, with the excess waiting in the client, and the calls in progress
        # by the budget, which refuses with a status of its own.
        "grpc.server.max_pending_requests": _UNBOUNDED,
        "grpc.server.max_pending_requests_hard_limit": _UNBOUNDED,
        "grpc.max_concurrent_streams": _MAX_STREAMS,
        # It refuses the streams of clients that respect the limit: answered ones count until they
        # are freed.
        "grpc.http.overload_protection": 0,
    }
    for pair in filter(None, flags.grpc_channel_arguments.split(",")):
        key, _, value = pair.partition("=")
        try:
            options[key] = int(value)
        except ValueError:
            options[key] = value
    return list(options.items())
