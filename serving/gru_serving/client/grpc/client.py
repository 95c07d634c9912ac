"""The gRPC client: NumPy, grpcio and protobuf, no TensorFlow.

The messages are this project's own (`gru_serving.protos`), in a descriptor pool of their own, so
that a process may also import TensorFlow or tensorflow-serving-api, before or after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gru_serving.client.async_interface import AsyncClient
from gru_serving.client.conversation import Call
from gru_serving.client.grpc.connection import (
    MODELS,
    PREDICTION,
    AsyncGrpcConnection,
    GrpcConnection,
    GrpcMessage,
    grpc_url,
)
from gru_serving.client.interface import Client
from gru_serving.client.metadata import ListedModel, Metadata, VersionState
from gru_serving.client.options import ClientOptions
from gru_serving.client.target import Target
from gru_serving.codecs.batch_parts import Arrays
from gru_serving.codecs.example import Values, encode_input
from gru_serving.codecs.signature import Signature
from gru_serving.codecs.tensor_proto import decode_tensor, encode_tensor
from gru_serving.errors import InvalidArgument, Unimplemented, Unknown, from_code
from gru_serving.protos.classification_pb2 import ClassificationRequest
from gru_serving.protos.error_codes_pb2 import Code as ProtoCode
from gru_serving.protos.get_model_metadata_pb2 import GetModelMetadataRequest, SignatureDefMap
from gru_serving.protos.get_model_status_pb2 import GetModelStatusRequest, ModelVersionStatus
from gru_serving.protos.model_management_pb2 import ReloadConfigRequest
from gru_serving.protos.model_pb2 import ModelSpec
from gru_serving.protos.predict_pb2 import PredictRequest
from gru_serving.protos.regression_pb2 import RegressionRequest


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
        settings, url = options or ClientOptions(), grpc_url(address, tls)
        connection = GrpcConnection(address, tls, settings)
        super().__init__(GrpcWire(), connection, url, settings)


class AsyncGrpcClient(AsyncClient):
    """As `GrpcClient`, for an event loop."""

    def __init__(
        self, address: str, tls: bool = False, options: ClientOptions | None = None
    ) -> None:
        settings, url = options or ClientOptions(), grpc_url(address, tls)
        connection = AsyncGrpcConnection(address, tls, settings)
        super().__init__(GrpcWire(), connection, url, settings)


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
        """A Classify request."""
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
        """A Regress request."""
        request = RegressionRequest(model_spec=_spec(target), input=encode_input(examples))
        request.model_spec.signature_name = signature_name

        def read(response: Any) -> list[float]:
            return [entry.value for entry in response.result.regressions]

        return GrpcMessage(PREDICTION, "Regress", request), read

    def metadata(self, target: Target) -> Call[Metadata]:
        """A metadata request."""
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
        return GrpcMessage(MODELS, "GetModelStatus", request), read

    def models(self) -> Call[list[ListedModel]]:
        """GRPC has no such request."""
        raise Unimplemented("gRPC cannot list the models of a server; give a REST address")

    def reload(self, config: Any) -> Call[None]:
        """A request to serve another configuration."""

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
