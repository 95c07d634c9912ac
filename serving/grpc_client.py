"""The gRPC client: NumPy, grpcio and protobuf, no TensorFlow.

The messages are this project's own (`serving.protos`), in a descriptor pool of their own, so that
a process may also import TensorFlow or tensorflow-serving-api, before or after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import grpc
import grpc.aio

from serving.async_client import AsyncClient
from serving.batch_parts import Arrays
from serving.client import Client
from serving.client_errors import (
    closed_connection,
    no_server,
    refused_certificate,
    refused_token,
    too_slow,
    unexpected_answer,
)
from serving.client_options import ClientOptions
from serving.conversation import Call, Metadata, Target, VersionState
from serving.errors import Code, InvalidArgument, ServingError, Unavailable, Unknown, from_code
from serving.grpc_codec import decode_tensor, encode_tensor
from serving.json_example import parse_examples
from serving.protos.classification_pb2 import ClassificationRequest
from serving.protos.error_codes_pb2 import Code as ProtoCode
from serving.protos.get_model_metadata_pb2 import GetModelMetadataRequest, SignatureDefMap
from serving.protos.get_model_status_pb2 import GetModelStatusRequest, ModelVersionStatus
from serving.protos.input_pb2 import Input
from serving.protos.model_management_pb2 import ReloadConfigRequest
from serving.protos.model_pb2 import ModelSpec
from serving.protos.predict_pb2 import PredictRequest
from serving.protos.regression_pb2 import RegressionRequest
from serving.protos.services import MODEL_SERVICE, PREDICTION_SERVICE, Stub
from serving.rest_codec import encode_examples
from serving.signature import Signature

_CODES = {status: Code[status.name] for status in grpc.StatusCode}
CHANNEL_OPTIONS = (
    ("grpc.max_send_message_length", (1 << 31) - 1),
    ("grpc.max_receive_message_length", (1 << 31) - 1),
    # As over REST: a proxy that the environment names is for the way out, not to a model server.
    ("grpc.enable_http_proxy", 0),
)
_ROUND_ROBIN = ("grpc.service_config", '{"loadBalancingConfig": [{"round_robin": {}}]}')
_PREDICTION, _MODELS = "prediction", "models"


class GrpcClient(Client):
    """A client of the gRPC API.

    Args:
        address: `host:port` or `unix:/path`.
        tls: Whether to use TLS.
        options: As of `connect`.
    """

    def __init__(
        self, address: str, tls: bool = False, options: ClientOptions | None = None
    ) -> None:
        settings, url = options or ClientOptions(), _url(address, tls)
        connection = GrpcConnection(address, tls, settings)
        super().__init__(GrpcWire(), connection, url, settings)


class AsyncGrpcClient(AsyncClient):
    """As `GrpcClient`, for an event loop."""

    def __init__(
        self, address: str, tls: bool = False, options: ClientOptions | None = None
    ) -> None:
        settings, url = options or ClientOptions(), _url(address, tls)
        connection = AsyncGrpcConnection(address, tls, settings)
        super().__init__(GrpcWire(), connection, url, settings)


class GrpcMessage(NamedTuple):
    """A request: which method of which service, and its protobuf message."""

    service: str
    method: str
    request: Any


class GrpcWire:
    """Requests as protobuf messages."""

    def predict(
        self,
        target: Target,
        signature_name: str,
        signature: Signature,
        inputs: Arrays,
        output_filter: Sequence[str],
    ) -> Call[Arrays]:
        """A Predict request."""
        del signature  # the arrays have its types already
        request = PredictRequest(model_spec=_spec(target), output_filter=output_filter)
        request.model_spec.signature_name = signature_name
        for name, array in inputs.items():
            request.inputs[name].CopyFrom(encode_tensor(array, content=True))

        def read(response: Any) -> Arrays:
            try:
                return {name: decode_tensor(proto) for name, proto in response.outputs.items()}
            except InvalidArgument as error:
                raise Unknown(f"the server's answer: {error.message}") from None

        return GrpcMessage(_PREDICTION, "Predict", request), read

    def classify(
        self, target: Target, signature_name: str, examples: Sequence[Any]
    ) -> Call[list[list[tuple[str, float]]]]:
        """A Classify request."""
        request = ClassificationRequest(model_spec=_spec(target), input=_input(examples))
        request.model_spec.signature_name = signature_name

        def read(response: Any) -> list[list[tuple[str, float]]]:
            return [
                [(entry.label, entry.score) for entry in row.classes]
                for row in response.result.classifications
            ]

        return GrpcMessage(_PREDICTION, "Classify", request), read

    def regress(
        self, target: Target, signature_name: str, examples: Sequence[Any]
    ) -> Call[list[float]]:
        """A Regress request."""
        request = RegressionRequest(model_spec=_spec(target), input=_input(examples))
        request.model_spec.signature_name = signature_name

        def read(response: Any) -> list[float]:
            return [entry.value for entry in response.result.regressions]

        return GrpcMessage(_PREDICTION, "Regress", request), read

    def metadata(self, target: Target) -> Call[Metadata]:
        """A metadata request."""
        request = GetModelMetadataRequest(
            model_spec=_spec(target), metadata_field=["signature_def"]
        )

        def read(response: Any) -> Metadata:
            signatures = SignatureDefMap()
            response.metadata["signature_def"].Unpack(signatures)
            return Metadata(
                response.model_spec.name,
                response.model_spec.version.value,
                {
                    name: Signature.from_proto(proto)
                    for name, proto in sorted(signatures.signature_def.items())
                },
            )

        return GrpcMessage(_PREDICTION, "GetModelMetadata", request), read

    def status(self, target: Target) -> Call[list[VersionState]]:
        """A status request."""

        def read(response: Any) -> list[VersionState]:
            return [
                VersionState(
                    entry.version,
                    ModelVersionStatus.State.Name(entry.state),
                    ProtoCode.Name(entry.status.error_code),
                    entry.status.error_message,
                )
                for entry in response.model_version_status
            ]

        request = GetModelStatusRequest(model_spec=_spec(target))
        return GrpcMessage(_MODELS, "GetModelStatus", request), read

    def reload(self, config: Any) -> Call[None]:
        """A request to serve another configuration."""

        def read(response: Any) -> None:
            if response.status.error_code:
                raise from_code(response.status.error_code, response.status.error_message)

        request = ReloadConfigRequest(config=config)
        return GrpcMessage(_MODELS, "HandleReloadConfigRequest", request), read


class _Channel:
    """What the two kinds of connection share."""

    def __init__(self, grpc_module: Any, address: str, tls: bool, options: ClientOptions) -> None:
        self._address, self._url = address, _url(address, tls)
        self._has_cert = options.cert_file is not None
        self._metadata: tuple[tuple[str, str], ...] = ()
        if options.token is not None:
            self._metadata = (("authorization", f"Bearer {options.token}"),)
        self._module = grpc_module
        self._arguments = (*CHANNEL_OPTIONS, *((_ROUND_ROBIN,) if options.balance else ()))
        self._credentials: Any = None
        if tls:
            self._credentials = grpc.ssl_channel_credentials(
                options.pem("ca_file"), options.pem("key_file"), options.pem("cert_file")
            )
        self._channel: Any = None
        self._stubs: dict[str, Stub] = {}

    def _open(self) -> None:
        if self._credentials is None:
            self._channel = self._module.insecure_channel(self._address, self._arguments)
        else:
            self._channel = self._module.secure_channel(
                self._address, self._credentials, self._arguments
            )
        self._stubs = {
            _PREDICTION: Stub(self._channel, PREDICTION_SERVICE),
            _MODELS: Stub(self._channel, MODEL_SERVICE),
        }

    def _call(self, message: GrpcMessage, timeout: float) -> Any:
        method = getattr(self._stubs[message.service], message.method)
        return method(message.request, timeout=timeout, metadata=self._metadata)

    @contextmanager
    def _errors(self, timeout: float) -> Iterator[None]:
        try:
            yield
        except grpc.RpcError as error:
            raise self._translate(error, timeout) from None

    def _translate(self, error: Any, timeout: float) -> ServingError:
        code, details = _CODES[error.code()], error.details() or ""
        said = details.lower()
        if code is Code.UNAVAILABLE and ("ssl" in said or "handshak" in said or "certif" in said):
            return refused_certificate(self._url, details)
        if "http1.x server" in said or "http/1" in said or "missing :te header" in said:
            return unexpected_answer(self._url, f"HTTP/1, not gRPC ({details})")
        if code is Code.UNAVAILABLE and not self._has_cert and "closed" in said:
            return closed_connection(self._url, details)
        if code is Code.UNAVAILABLE and "failed to connect" in said:
            port = self._address.rpartition(":")[2]
            flag = f"port={port}" if port.isdecimal() else f"grpc_socket_path={port}"
            return no_server(
                self._url, "connection refused" if "refused" in said else details, flag
            )
        if code is Code.CANCELLED and said in ("", "cancelled"):
            # gRPC's own word for calls that were waiting to be read when a server stopped.
            return Unavailable(f"{self._url} stopped before it read the request")
        if code is Code.UNIMPLEMENTED and "method" in said:
            return unexpected_answer(self._url, f"a gRPC server without this service ({details})")
        if code is Code.DEADLINE_EXCEEDED and not details.startswith("Timed out"):
            return too_slow(self._url, timeout)
        if code in (Code.UNAUTHENTICATED, Code.PERMISSION_DENIED):
            return refused_token(self._url, code, details, bool(self._metadata))
        return from_code(code, details)


class GrpcConnection(_Channel):
    """Sends gRPC messages."""

    def __init__(self, address: str, tls: bool, options: ClientOptions) -> None:
        super().__init__(grpc, address, tls, options)
        self._open()

    def send(self, message: GrpcMessage, timeout: float) -> Any:
        """The response."""
        with self._errors(timeout):
            return self._call(message, timeout)

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()


class AsyncGrpcConnection(_Channel):
    """Sends gRPC messages from an event loop."""

    def __init__(self, address: str, tls: bool, options: ClientOptions) -> None:
        super().__init__(grpc.aio, address, tls, options)

    async def send(self, message: GrpcMessage, timeout: float) -> Any:
        """The response."""
        if self._channel is None:
            self._open()  # only now, as a channel belongs to the loop that runs when it is made
        with self._errors(timeout):
            return await self._call(message, timeout)

    async def close(self) -> None:
        """Close the channel."""
        if self._channel is not None:
            await self._channel.close()


def _url(address: str, tls: bool) -> str:
    return address if address.startswith("unix:") else f"grpc{'s' * tls}://{address}"


def _input(examples: Sequence[Any]) -> Input:
    proto, _ = parse_examples(encode_examples(examples))
    return proto


def _spec(target: Target) -> ModelSpec:
    spec = ModelSpec(name=target.model, version_label=target.label or None)
    if target.version is not None:
        spec.version.value = target.version
    return spec
