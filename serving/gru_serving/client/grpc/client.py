"""The gRPC client: NumPy, grpcio and protobuf, no TensorFlow.

The messages are this project's own (`gru_serving.protos`) in a separate descriptor pool, so a
process may also import TensorFlow or tensorflow-serving-api, before or after.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import grpc
import grpc.aio

from gru_serving.client.conversation import Call
from gru_serving.client.errors import (
    closed_connection,
    lost_replica,
    no_server,
    refused_certificate,
    refused_token,
    too_large_answer,
    too_slow,
    unexpected_answer,
)
from gru_serving.client.metadata import ListedModel, Metadata, Target, VersionState
from gru_serving.client.options import ClientOptions
from gru_serving.codecs.batch_parts import Arrays
from gru_serving.codecs.example import Values, encode_input
from gru_serving.codecs.signature import Signature
from gru_serving.codecs.tensor_proto import decode_tensor, encode_tensor
from gru_serving.errors import (
    Code,
    InvalidArgument,
    ServingError,
    Unavailable,
    Unimplemented,
    Unknown,
    from_code,
)
from gru_serving.protos.classification_pb2 import ClassificationRequest
from gru_serving.protos.error_codes_pb2 import Code as ProtoCode
from gru_serving.protos.get_model_metadata_pb2 import GetModelMetadataRequest, SignatureDefMap
from gru_serving.protos.get_model_status_pb2 import GetModelStatusRequest, ModelVersionStatus
from gru_serving.protos.model_management_pb2 import ReloadConfigRequest
from gru_serving.protos.model_pb2 import ModelSpec
from gru_serving.protos.predict_pb2 import PredictRequest
from gru_serving.protos.regression_pb2 import RegressionRequest
from gru_serving.protos.services import MODEL_SERVICE, PREDICTION_SERVICE, Stub

_CODES = {status: Code[status.name] for status in grpc.StatusCode}
_ROUND_ROBIN = ("grpc.service_config", '{"loadBalancingConfig": [{"round_robin": {}}]}')
_TLS_FAILURES = ("ssl", "handshak", "certif", "verification")
# gRPC's text for an answer above the client's size limit; a server's own text begins with SERVER.
_TOO_LARGE = re.compile(r"(CLIENT: Received|Decompressed) message larger than max")
PREDICTION, MODELS = "prediction", "models"


def channel_options(options: ClientOptions) -> list[tuple[str, Any]]:
    """List the arguments of a gRPC channel."""
    arguments: list[tuple[str, Any]] = [
        ("grpc.max_send_message_length", (1 << 31) - 1),
        ("grpc.max_receive_message_length", options.max_answer_bytes),
        # As over REST, a proxy from the environment is meant for outgoing traffic, not for a model
        # server.
        ("grpc.enable_http_proxy", 0),
    ]
    return [*arguments, _ROUND_ROBIN] if options.balance else arguments


class GrpcMessage(NamedTuple):
    """A request: service, method and protobuf message."""

    service: str
    method: str
    request: Any


class _Channel:
    """Common base of the blocking and the asynchronous gRPC connection."""

    def __init__(self, grpc_module: Any, address: str, tls: bool, options: ClientOptions) -> None:
        self._address, self._url = address, grpc_url(address, tls)
        self._has_cert = tls and options.cert_file is not None
        self._metadata: tuple[tuple[str, str], ...] = ()
        if options.token is not None:
            self._metadata = (("authorization", f"Bearer {options.token}"),)
        self._module = grpc_module
        self._most = options.max_answer_bytes
        self._arguments = channel_options(options)
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
            PREDICTION: Stub(self._channel, PREDICTION_SERVICE),
            MODELS: Stub(self._channel, MODEL_SERVICE),
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
        if code is Code.UNAVAILABLE and any(word in said for word in _TLS_FAILURES):
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
            # gRPC ends calls with this text if they were queued when a server stopped, or exceeded
            # the number that may be queued.
            return Unavailable(
                f"{self._url} did not read the request: it stops, or too many others wait"
            )
        if code is Code.INTERNAL and (lost := lost_replica(self._url, details)):
            return lost
        if code is Code.UNIMPLEMENTED and "method" in said:
            return unexpected_answer(self._url, f"a gRPC server without this service ({details})")
        if code is Code.DEADLINE_EXCEEDED and not details.startswith("Timed out"):
            return too_slow(self._url, timeout)
        if code is Code.RESOURCE_EXHAUSTED and _TOO_LARGE.search(details):
            return too_large_answer(self._url, self._most)
        if code in (Code.UNAUTHENTICATED, Code.PERMISSION_DENIED):
            return refused_token(self._url, code, details, bool(self._metadata))
        return from_code(code, details)


class GrpcConnection(_Channel):
    """Sends gRPC messages."""

    def __init__(self, address: str, tls: bool, options: ClientOptions) -> None:
        super().__init__(grpc, address, tls, options)
        self._open()

    def send(self, message: GrpcMessage, timeout: float) -> Any:
        """Send a message and return the response."""
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
        """Send a message and return the response."""
        if self._channel is None:
            self._open()  # only now, as a channel belongs to the loop that runs when it is made
        with self._errors(timeout):
            return await self._call(message, timeout)

    async def close(self) -> None:
        """Close the channel."""
        if self._channel is not None:
            await self._channel.close()


def grpc_url(address: str, tls: bool) -> str:
    """Write the address as the URL shown in messages."""
    return address if address.startswith("unix:") else f"grpc{'s' * tls}://{address}"


class GrpcWire:
    """The encoding of requests as protobuf messages."""

    def predict(
        self,
        target: Target,
        signature_name: str,
        signature: Signature,
        inputs: Arrays,
        output_filter: Sequence[str],
    ) -> Call[Arrays]:
        """Encode a Predict request."""
        request = PredictRequest(model_spec=_spec(target), output_filter=output_filter)
        request.model_spec.signature_name = signature_name
        for name, array in inputs.items():
            request.inputs[name].CopyFrom(encode_tensor(array, content=True))

        def read(response: Any) -> Arrays:
            missing = set(output_filter or signature.outputs) - set(response.outputs)
            if missing:
                raise Unknown(f"the server's answer: no output {min(missing)!r} in it")
            try:
                return {name: decode_tensor(proto) for name, proto in response.outputs.items()}
            except InvalidArgument as error:
                raise Unknown(f"the server's answer: {error.message}") from None

        return GrpcMessage(PREDICTION, "Predict", request), read

    def classify(
        self, target: Target, signature_name: str, examples: Sequence[Values]
    ) -> Call[list[list[tuple[str, float]]]]:
        """Encode a Classify request."""
        request = ClassificationRequest(model_spec=_spec(target), input=encode_input(examples))
        request.model_spec.signature_name = signature_name

        def read(response: Any) -> list[list[tuple[str, float]]]:
            return [
                [(entry.label, entry.score) for entry in row.classes]
                for row in response.result.classifications
            ]

        return GrpcMessage(PREDICTION, "Classify", request), read

    def regress(
        self, target: Target, signature_name: str, examples: Sequence[Values]
    ) -> Call[list[float]]:
        """Encode a Regress request."""
        request = RegressionRequest(model_spec=_spec(target), input=encode_input(examples))
        request.model_spec.signature_name = signature_name

        def read(response: Any) -> list[float]:
            return [entry.value for entry in response.result.regressions]

        return GrpcMessage(PREDICTION, "Regress", request), read

    def metadata(self, target: Target) -> Call[Metadata]:
        """Encode a metadata request."""
        request = GetModelMetadataRequest(
            model_spec=_spec(target), metadata_field=["signature_def"]
        )

        def read(response: Any) -> Metadata:
            signatures = SignatureDefMap()
            response.metadata["signature_def"].Unpack(signatures)
            try:
                parsed = {
                    name: Signature.from_proto(proto)
                    for name, proto in sorted(signatures.signature_def.items())
                }
            except InvalidArgument as error:
                raise Unknown(f"the server's metadata: {error.message}") from None
            return Metadata(response.model_spec.name, response.model_spec.version.value, parsed)

        return GrpcMessage(PREDICTION, "GetModelMetadata", request), read

    def status(self, target: Target) -> Call[list[VersionState]]:
        """Encode a status request."""

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
        return GrpcMessage(MODELS, "GetModelStatus", request), read

    def models(self) -> Call[list[ListedModel]]:
        """Refuse: gRPC has no request for the list of models."""
        raise Unimplemented("gRPC cannot list the models of a server; give a REST address")

    def reload(self, config: Any) -> Call[None]:
        """Encode a request to serve another configuration."""

        def read(response: Any) -> None:
            if response.status.error_code:
                raise from_code(response.status.error_code, response.status.error_message)

        request = ReloadConfigRequest(config=config)
        return GrpcMessage(MODELS, "HandleReloadConfigRequest", request), read


def _spec(target: Target) -> ModelSpec:
    spec = ModelSpec(name=target.model, version_label=target.label or None)
    if target.version is not None:
        spec.version.value = target.version
    return spec
