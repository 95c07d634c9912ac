"""gRPC requests for the test models, built from tensorflow-serving-api's messages."""

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import (
    classification_pb2,
    inference_pb2,
    predict_pb2,
    regression_pb2,
)

HALF = "half/plus:two"
BOTH = (("classify_x_to_y", "classify"), ("regress_x_to_y", "regress"))


def predict(model=HALF, signature="", *, version=None, label=None, **inputs):
    message = predict_pb2.PredictRequest()
    spec = message.model_spec
    spec.name, spec.signature_name = model, signature
    if version is not None:
        spec.version.value = version
    if label is not None:
        spec.version_label = label
    for name, value in inputs.items():
        message.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return message


def add_example(message, value):
    """A text or a number in the feature from which the test models read it."""
    feature = message.input.example_list.examples.add().features.feature
    if isinstance(value, bytes):
        feature["text"].bytes_list.value.append(value)
    else:
        feature["x"].float_list.value.append(value)


def examples(model, signature, *values):
    """A ClassificationRequest."""
    message = classification_pb2.ClassificationRequest()
    message.model_spec.name = model
    message.model_spec.signature_name = signature
    for value in values:
        add_example(message, value)
    return message


def regression(model, signature, *values):
    """Field by field the same as a ClassificationRequest."""
    message = examples(model, signature, *values)
    return regression_pb2.RegressionRequest.FromString(message.SerializeToString())


def multi_inference(*tasks, model=HALF, values=(3.0,)):
    """Tasks as in `BOTH`: signature and method."""
    message = inference_pb2.MultiInferenceRequest()
    for signature, method in tasks:
        task = message.tasks.add(method_name=f"tensorflow/serving/{method}")
        task.model_spec.name = model
        task.model_spec.signature_name = signature
    for value in values:
        add_example(message, value)
    return message


def refused(call, message):
    """Code and text of an answer that must be an error."""
    with pytest.raises(grpc.RpcError) as caught:
        call(message, timeout=20)
    return caught.value.code().name, caught.value.details()
