"""Requests that a server refuses, in every form in which they can be made, with code and text."""

import json
from dataclasses import dataclass

import numpy as np

from tests.serving.messages import (
    BOTH,
    HALF,
    examples,
    metadata,
    multi_inference,
    predict,
    regression,
    status,
)
from tests.serving.raw_http import HALF_URL

X, B = np.float32([[1, 0, 0]]), np.float32([[0.5]])


@dataclass(frozen=True)
class Refusal:
    """A request in the forms in which it can be made, and the one answer to all of them.

    A text that ends in `...` goes on, with the same words over every transport.
    """

    code: str
    text: str
    grpc: tuple = ()
    rest: tuple = ()
    client: object = None


def affine(**changes):
    return predict("affine", **{"x": X, "b": B, **changes})


def without_spec():
    message = affine()
    message.ClearField("model_spec")
    return message


def with_filter(*names):
    message = affine()
    message.output_filter.extend(names)
    return message


def cut_tensor():
    message = affine()
    message.inputs["x"].tensor_content = b"123"
    return message


def of_models(first, second):
    message = multi_inference(*BOTH, model=first)
    message.tasks[1].model_spec.name = second
    return message


def metadata_of(name, *fields, **spec):
    return metadata(model_spec={"name": name, **spec}, metadata_field=fields)


def given(body, **more):
    return json.dumps({**body, **more})


EXAMPLE = {"examples": [{"x": 2.0}]}
VERSION_17 = {"version": {"value": 17}}
INVALID, UNKNOWN = "INVALID_ARGUMENT", "NOT_FOUND"

MODELS_AND_VERSIONS = {
    "unknown model": Refusal(
        UNKNOWN, "Servable not found for request: Latest(nix)",
        ("Predict", predict("nix")),
        ("POST", "/v1/models/nix:predict", "{}"),
        lambda client: client.predict([1.0], "nix"),
    ),
    "unknown version": Refusal(
        UNKNOWN, "Servable not found for request: Specific(affine, 2)",
        ("Predict", affine(version=2)),
        ("POST", "/v1/models/affine/versions/2:predict", "{}"),
        lambda client: client.predict([1.0], "affine", version=2),
    ),
    "unknown label": Refusal(
        INVALID, "Unrecognized servable version label: beta",
        ("Predict", affine(label="beta")),
        ("POST", "/v1/models/affine/labels/beta:predict", "{}"),
        lambda client: client.predict([1.0], "affine", label="beta"),
    ),
    "metadata of an unknown model": Refusal(
        UNKNOWN, "Servable not found for request: Latest(nix)",
        ("GetModelMetadata", metadata_of("nix", "signature_def")),
        ("GET", "/v1/models/nix/metadata", None),
        lambda client: client.metadata("nix"),
    ),
    "metadata of an unknown version": Refusal(
        UNKNOWN, f"Servable not found for request: Specific({HALF}, 9)",
        ("GetModelMetadata", metadata_of(HALF, "signature_def", version={"value": 9})),
        ("GET", f"{HALF_URL}/versions/9/metadata", None),
    ),
    "status of an unknown model": Refusal(
        UNKNOWN, "Could not find any versions of model nix",
        ("GetModelStatus", status(model_spec={"name": "nix"})),
        ("GET", "/v1/models/nix", None),
        lambda client: client.status("nix"),
    ),
    "status of an unknown version": Refusal(
        UNKNOWN, "Could not find version 17 of model affine",
        ("GetModelStatus", status(model_spec={"name": "affine", **VERSION_17})),
        ("GET", "/v1/models/affine/versions/17", None),
        lambda client: client.status("affine", version=17),
    ),
    "predict without spec": Refusal(INVALID, "Missing ModelSpec", ("Predict", without_spec())),
    "predict without name": Refusal(
        INVALID, "ModelSpec has no name specified.", ("Predict", predict("", x=X, b=B))
    ),
    "metadata without spec": Refusal(
        INVALID, "Missing ModelSpec", ("GetModelMetadata", metadata())
    ),
    "metadata without name": Refusal(
        INVALID, "ModelSpec has no name specified.",
        ("GetModelMetadata", metadata_of("", "signature_def")),
    ),
    "status without spec": Refusal(INVALID, "Missing ModelSpec", ("GetModelStatus", status())),
    "status without name": Refusal(
        UNKNOWN, "Could not find any versions of model ",
        ("GetModelStatus", status(model_spec={"name": ""})),
    ),
    "status of a version without name": Refusal(
        UNKNOWN, "Could not find version 17 of model ",
        ("GetModelStatus", status(model_spec={"name": "", **VERSION_17})),
    ),
    "metadata without field": Refusal(
        INVALID, "GetModelMetadataRequest must specify at least one metadata_field",
        ("GetModelMetadata", metadata_of("text")),
    ),
    "metadata of an unknown field": Refusal(
        INVALID, "Metadata field some_stuff is not supported",
        ("GetModelMetadata", metadata_of(HALF, "some_stuff")),
    ),
    "metadata of a known field behind an unknown one": Refusal(
        INVALID, "Metadata field some_stuff is not supported",
        ("GetModelMetadata", metadata_of(HALF, "some_stuff", "signature_def")),
    ),
}  # fmt: skip

PREDICT = {
    # Each transport says this in its own words.
    "unknown signature": Refusal(
        "FAILED_PRECONDITION", 'Serving signature key "nix" not found.',
        ("Predict", predict("affine", "nix", x=X, b=B)),
    ),
    "unknown signature over REST": Refusal(
        INVALID, 'Serving signature name: "s" not found in signature def',
        rest=("POST", "/v1/models/text:predict", '{"signature_name": "s"}'),
    ),
    "an input is missing": Refusal(
        INVALID,
        "input size does not match signature: 1!=2 len({x}) != len({b,x}). Sent extra: {}. "
        "Missing but required: {b}.",
        ("Predict", predict("affine", x=X)),
    ),
    "an input too many": Refusal(
        INVALID,
        "input size does not match signature: 3!=2 len({b,c,x}) != len({b,x}). Sent extra: {c}. "
        "Missing but required: {}.",
        ("Predict", affine(c=B)),
    ),
    "an input of another name": Refusal(
        INVALID,
        "Signature input alias: b(feed name: serving_default_b:0) not found in request and no "
        "default value provided. Inputs expected to be in the request {x,y}, or default input "
        "alias set: ",
        ("Predict", predict("affine", x=X, y=B)),
    ),
    "a tensor that is cut": Refusal(
        INVALID, "tensor parsing error: x", ("Predict", cut_tensor())
    ),
    "a filter for an unknown output": Refusal(
        INVALID,
        "output tensor alias not found in signature: z Outputs expected to be in the set "
        "{doubled,y}.",
        ("Predict", with_filter("y", "z")),
    ),
    "a filter that repeats itself": Refusal(
        INVALID, "duplicate output tensor alias: y", ("Predict", with_filter("y", "y"))
    ),
}  # fmt: skip


def both(verb, signature, text, model=HALF, url=HALF_URL):
    """Requests for a signature that does not fit the method, over both transports."""
    make = examples if verb == "classify" else regression
    message = make(model, signature, 2.0)
    body = given(EXAMPLE, signature_name=signature)
    return Refusal(INVALID, text, (verb.capitalize(), message), ("POST", f"{url}:{verb}", body))


CLASSIFY_AND_REGRESS = {
    "no examples": Refusal(INVALID, "Input is empty.", ("Classify", examples("text", "classify"))),
    "an input that is no examples": both(
        "classify", "", "Expected one input Tensor.", "affine", "/v1/models/affine"
    ),
    "three outputs": both(
        "classify", "", "Expected one or two output Tensors, found 3", "text", "/v1/models/text"
    ),
    "unknown signature to classify": both(
        "classify", "nix", "No signature was found with the name: nix"
    ),
    "unknown signature to regress": both(
        "regress", "nix", "No signature was found with the name: nix"
    ),
    "scores in one dimension": both(
        "classify", "flat_scores",
        "Expected Tensor shape: [batch_size num_classes] but got [1]",
    ),
    "neither classes nor scores": both(
        "classify", "regress_x_to_y",
        'Expected classification signature outputs to contain at least one of "classes" or '
        '"scores". Signature was: ...',
    ),
    "no input named inputs": both(
        "classify", "other_input_name", "No classification inputs found in SignatureDef: ..."
    ),
    "a signature for predict": both(
        "classify", "serving_default", "No classification inputs found in SignatureDef: ..."
    ),
    "two values for an example": both(
        "regress", "wide_outputs",
        "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got [1,2]",
    ),
    "values that are strings": both(
        "regress", "text_outputs", "Expected output Tensor of DT_FLOAT.  Got: DT_STRING"
    ),
    "no output named outputs": both(
        "regress", "no_outputs_named_so", "No regression outputs found in SignatureDef: ..."
    ),
    "two outputs to regress": both("regress", "other_input_name", "Expected one output Tensor."),
}  # fmt: skip

MULTI_INFERENCE = {
    "no tasks": Refusal(INVALID, "ModelSpec has no name specified.",
                        ("MultiInference", multi_inference())),
    "a task without model": Refusal(
        INVALID, "ModelSpec has no name specified.",
        ("MultiInference", multi_inference(("classify", "classify"), model="")),
    ),
    "a second task without model": Refusal(
        INVALID, "Found ModelSpec with an empty model name.",
        ("MultiInference", of_models(HALF, "")),
    ),
    "tasks of two models": Refusal(
        INVALID, "All ModelSpecs in a MultiInferenceRequest must access the same model name.",
        ("MultiInference", of_models(HALF, "affine")),
    ),
    # The model of the first task is looked up before the other tasks are.
    "tasks of an unknown model": Refusal(
        UNKNOWN, "Servable not found for request: Latest(nix)",
        ("MultiInference", multi_inference(*BOTH, model="nix")),
    ),
    "tasks without examples": Refusal(
        INVALID, "Input is empty.",
        ("MultiInference", multi_inference(("regress_x_to_y", "regress"), values=())),
    ),
    "a task of an unknown signature": Refusal(
        INVALID, "Requested signature not found in model graph: nix",
        ("MultiInference", multi_inference(("nix", "classify"))),
    ),
    "a regression of an unknown signature": Refusal(
        INVALID, "Requested signature not found in model graph: nix",
        ("MultiInference", multi_inference(("nix", "regress"))),
    ),
    "two tasks of an unknown signature": Refusal(
        INVALID, "Requested signature not found in model graph: nix",
        ("MultiInference", multi_inference(("nix", "classify"), ("nix", "classify"))),
    ),
    "the same task twice": Refusal(
        INVALID, "Duplicate evaluation of signature: classify_x_to_y",
        ("MultiInference", multi_inference(BOTH[0], BOTH[0])),
    ),
    "a task to predict": Refusal(
        "UNIMPLEMENTED", "Unsupported signature method_name: tensorflow/serving/predict",
        ("MultiInference", multi_inference(("classify_x_to_y", "predict"))),
    ),
    "a task of an unknown method": Refusal(
        "UNIMPLEMENTED", "Unsupported signature method_name: tensorflow/serving/nix",
        ("MultiInference", multi_inference(("regress_x_to_y", "nix"))),
    ),
}  # fmt: skip

REFUSALS = {**MODELS_AND_VERSIONS, **PREDICT, **CLASSIFY_AND_REGRESS, **MULTI_INFERENCE}
