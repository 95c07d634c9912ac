"""The gRPC client: NumPy, grpcio and protobuf, no TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from serving.client import Client, Metadata, Target, VersionState
from serving.errors import Code, DeadlineExceeded, ServingError, from_code
from serving.grpc_codec import decode_tensor, encode_tensor
from serving.protos.error_codes_pb2 import Code as ProtoCode
from serving.protos.get_model_metadata_pb2 import GetModelMetadataRequest, SignatureDefMap
from serving.protos.get_model_status_pb2 import GetModelStatusRequest, ModelVersionStatus
from serving.protos.model_pb2 import ModelSpec
from serving.protos.predict_pb2 import PredictRequest
from serving.protos.services import MODEL_SERVICE, PREDICTION_SERVICE, Stub
from serving.signature import Signature

_CODES = {status: Code[status.name] for status in grpc.StatusCode}
_OPTIONS = (
    ("grpc.max_send_message_length", (1 << 31) - 1),
    ("grpc.max_receive_message_length", (1 << 31) - 1),
)


class GrpcClient(Client):
    """A client of the gRPC API.

    Args:
        address: `host:port` or `unix:/path`.
        timeout: Seconds allowed for a call where the call does not say.
        retries: Further tries while the server is unavailable.
        ca_file: Certificates (PEM) to trust, with TLS.
        tls: Whether to use TLS.
    """

    def __init__(
        self,
        address: str,
        timeout: float = 30.0,
        retries: int = 3,
        ca_file: str | None = None,
        tls: bool = False,
    ) -> None:
        scheme = "" if address.startswith("unix:") else "grpcs://" if tls else "grpc://"
        super().__init__(f"{scheme}{address}", timeout, retries)
        if tls:
            roots = Path(ca_file).read_bytes() if ca_file is not None else None
            credentials = grpc.ssl_channel_credentials(roots)
            self._channel = grpc.secure_channel(address, credentials, _OPTIONS)
        else:
            self._channel = grpc.insecure_channel(address, _OPTIONS)
        self._address = address
        self._prediction = Stub(self._channel, PREDICTION_SERVICE)
        self._models = Stub(self._channel, MODEL_SERVICE)

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()

    def _predict(
        self,
        target: Target,
        signature_name: str,
        signature: Signature,
        inputs: Mapping[str, np.ndarray],
        output_filter: list[str],
        timeout: float,
    ) -> dict[str, np.ndarray]:
        del signature  # the arrays have its types already
        request = PredictRequest(model_spec=_spec(target), output_filter=output_filter)
        request.model_spec.signature_name = signature_name
        for name, array in inputs.items():
            request.inputs[name].CopyFrom(encode_tensor(array, content=True))
        response = self._call(self._prediction.Predict, request, timeout)
        return {name: decode_tensor(proto) for name, proto in response.outputs.items()}

    def _metadata(self, target: Target, timeout: float) -> Metadata:
        request = GetModelMetadataRequest(
            model_spec=_spec(target), metadata_field=["signature_def"]
        )
        response = self._call(self._prediction.GetModelMetadata, request, timeout)
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

    def _status(self, target: Target, timeout: float) -> list[VersionState]:
        request = GetModelStatusRequest(model_spec=_spec(target))
        response = self._call(self._models.GetModelStatus, request, timeout)
        return [
            VersionState(
                entry.version,
                ModelVersionStatus.State.Name(entry.state),
                ProtoCode.Name(entry.status.error_code),
                entry.status.error_message,
            )
            for entry in response.model_version_status
        ]

    def _call(self, method: Callable[..., Any], request: Any, timeout: float) -> Any:
        try:
            return method(request, timeout=timeout)
        except grpc.RpcError as error:
            raise self._translate(error, timeout) from None

    def _translate(self, error: Any, timeout: float) -> ServingError:
        code, details = _CODES[error.code()], error.details() or ""
        if code is Code.UNAVAILABLE and "failed to connect" in details.lower():
            port = self._address.rpartition(":")[2]
            flag = f"port={port}" if port.isdecimal() else f"grpc_socket_path={port}"
            reason = "connection refused" if "refused" in details else details
            return self._unreachable(reason, flag)
        if code is Code.DEADLINE_EXCEEDED and not details.startswith("Timed out"):
            return DeadlineExceeded(f"{self.url} did not answer within {timeout:.1f} s")
        return from_code(code, details)


def _spec(target: Target) -> ModelSpec:
    spec = ModelSpec(name=target.model, version_label=target.label or None)
    if target.version is not None:
        spec.version.value = target.version
    return spec
