"""Requests and answers as TF Serving's messages, which gRPC carries and prediction logs keep."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from google.protobuf.message import Message

from gru_serving.codecs.signature import DEFAULT_SIGNATURE
from gru_serving.codecs.tensor_proto import fill_tensor
from gru_serving.protos.classification_pb2 import (
    ClassificationResponse,
    ClassificationResult,
)
from gru_serving.protos.model_pb2 import ModelSpec
from gru_serving.protos.predict_pb2 import PredictRequest, PredictResponse
from gru_serving.protos.regression_pb2 import (
    RegressionResponse,
    RegressionResult,
)

Classes = Sequence[Sequence[tuple[bytes, float]]]
"""Label and score of each class, per example."""


class Answering(NamedTuple):
    """The version and signature that answer a request, as echoed in responses.

    Attributes:
        model: Name.
        version: Number.
        signature: Name of the signature; empty for `serving_default`.
    """

    model: str
    version: int
    signature: str = ""

    def spec(self) -> ModelSpec:
        """Return the ModelSpec message."""
        spec = ModelSpec(name=self.model, signature_name=self.signature or DEFAULT_SIGNATURE)
        spec.version.value = self.version
        return spec


def serialized(request: Message, response: Message) -> tuple[bytes, bytes]:
    """Serialize a request and its response."""
    return request.SerializeToString(), response.SerializeToString()


def predict_request(by: Answering, inputs: Mapping[str, np.ndarray]) -> PredictRequest:
    """Build a Predict request with these inputs."""
    request = PredictRequest(model_spec=by.spec())
    for alias, array in inputs.items():
        fill_tensor(request.inputs[alias], array)
    return request


def predict_response(
    by: Answering, outputs: Mapping[str, np.ndarray], content: bool = False
) -> PredictResponse:
    """Build a Predict response with these outputs, as raw bytes or one entry per element."""
    response = PredictResponse(model_spec=by.spec())
    for alias, array in outputs.items():
        fill_tensor(response.outputs[alias], array, content)
    return response


def classification_response(by: Answering, classes: Classes) -> ClassificationResponse:
    """Build a Classify response with the classes of every example."""
    response = ClassificationResponse(model_spec=by.spec())
    fill_classes(response.result, classes)
    return response


def regression_response(by: Answering, values: np.ndarray) -> RegressionResponse:
    """Build a Regress response with one value per example, of shape (B,)."""
    response = RegressionResponse(model_spec=by.spec())
    fill_values(response.result, values)
    return response


def fill_classes(proto: ClassificationResult, classes: Classes) -> None:
    """Put the classes of every example into an empty message."""
    for row in classes:
        entry = proto.classifications.add().classes
        for label, score in row:
            entry.add(label=label.decode("utf-8", "replace"), score=score)


def fill_values(proto: RegressionResult, values: np.ndarray) -> None:
    """Put one value per example, of shape (B,), into an empty message."""
    for value in values.tolist():
        proto.regressions.add(value=value)
