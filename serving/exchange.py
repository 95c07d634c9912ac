"""REST requests and their answers as the messages that gRPC would have carried, for logs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from serving.examples import Classification
from serving.grpc_codec import encode_tensor
from serving.grpc_service import fill_classes
from serving.protos.classification_pb2 import ClassificationRequest, ClassificationResponse
from serving.protos.input_pb2 import Input
from serving.protos.model_pb2 import ModelSpec
from serving.protos.predict_pb2 import PredictRequest, PredictResponse
from serving.protos.regression_pb2 import RegressionRequest, RegressionResponse


def predict_messages(
    spec: ModelSpec, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]
) -> tuple[bytes, bytes]:
    """PredictRequest and PredictResponse."""
    request, response = PredictRequest(model_spec=spec), PredictResponse(model_spec=spec)
    for message, arrays in ((request.inputs, inputs), (response.outputs, outputs)):
        for alias, array in arrays.items():
            message[alias].CopyFrom(encode_tensor(array))
    return request.SerializeToString(), response.SerializeToString()


def classify_messages(
    spec: ModelSpec, examples: Input, found: Classification
) -> tuple[bytes, bytes]:
    """ClassificationRequest and ClassificationResponse."""
    request = ClassificationRequest(model_spec=spec, input=examples)
    response = ClassificationResponse(model_spec=spec)
    fill_classes(response.result, found)
    return request.SerializeToString(), response.SerializeToString()


def regress_messages(spec: ModelSpec, examples: Input, values: np.ndarray) -> tuple[bytes, bytes]:
    """RegressionRequest and RegressionResponse."""
    request = RegressionRequest(model_spec=spec, input=examples)
    response = RegressionResponse(model_spec=spec)
    for value in values.tolist():
        response.result.regressions.add(value=value)
    return request.SerializeToString(), response.SerializeToString()
