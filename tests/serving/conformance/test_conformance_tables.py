"""What TF Serving's own tests check, as tables that both transports of a live server must meet."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
)

from tests.serving.messages import BOTH, HALF, examples, metadata, multi_inference, predict, status
from tests.serving.raw_http import HALF_URL, raw, rest


@pytest.mark.parametrize(
    ("method", "path", "wanted"),
    [
        ("POST", "foo:predict", "Latest(foo)"),
        ("POST", "foo:classify", "Latest(foo)"),
        ("POST", "foo:regress", "Latest(foo)"),
        ("POST", "foo/versions/123:predict", "Specific(foo, 123)"),
        ("POST", "foo/versions/0123:predict", "Specific(foo, 123)"),
        ("POST", "foo/versions/0:regress", "Specific(foo, 0)"),
        ("POST", "foo/versions/9223372036854775807:classify",
         "Specific(foo, 9223372036854775807)"),
        ("POST", "foo%2Fbar:predict", "Latest(foo/bar)"),
        ("POST", "foo%3Abar/versions/7:predict", "Specific(foo:bar, 7)"),
        ("POST", "foo%20bar:predict", "Latest(foo bar)"),
        ("POST", "foo-bar_1.2@x+y:predict", "Latest(foo-bar_1.2@x+y)"),
        ("POST", "%E2%98%83:predict", "Latest(\u2603)"),
        ("GET", "foo/metadata", "Latest(foo)"),
        ("GET", "foo/versions/12/metadata", "Specific(foo, 12)"),
    ],
)  # fmt: skip
def test_paths_name_the_servable(server, method, path, wanted):
    body = b'{"examples":[{}]}' if method == "POST" else None
    assert rest(server, method, f"/v1/models/{path}", body) == (
        404, {"error": f"Servable not found for request: {wanted}"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("POST", path) for path in (
            "/v1/models/foo", "/v1/models/foo:hello", "/v1/models/foo:PREDICT",
            "/v1/models/foo/metadata", "/v1/models/:predict", "/v1/blah/models/foo:predict",
            "/v1/models/foo/version/50:regress", "/v1/models/foo/versions/HELLO:regress",
            "/v1/models/foo/versions/-1:predict", "/v1/models/foo/versions/1.5:predict",
            "/v1/models/foo/versions/:predict", "/v1/models/foo/versions:predict",
            "/v1/models/foo/versions/1/labels/l:predict",
            "/v1/models/foo/labels/l/versions/1:predict", "/v1/models/foo/labels/:predict",
            "/v1/models/foo/labels/a/b:predict", "/v1/models/foo:predict/",
            "/v1/models/foo:predict:predict", "/v1/models/foo/labels/l:hello", "/v1/",
            "/v1/models/affine:predict?x=1", "/v1/models/text", "/v1/models/text:PREDICT",
        )),
        *(("GET", path) for path in (
            "/v1/models/foo:predict", "/v1/models/foo/versions/HELLO", "/v1/models/",
            "/v1/models/foo/", "/v1/models/foo/metadata/", "/v1/models/foo/versions/1/labels/l",
            "/v1/models/foo/bar", "/v1/models/foo/versions/", "/v1/models//metadata", "/v1/",
            "/v1/models/affine/metadata?x=1", "/v1/nonsense", "/v1/models/text:predict",
        )),
        *((method, "/v1/models/affine") for method in ("PUT", "DELETE", "PATCH")),
    ],
)  # fmt: skip
def test_malformed_requests(server, method, path):
    body = b"{}" if method != "GET" else None
    assert rest(server, method, path, body) == (
        400, {"error": f"Malformed request: {method} {path}"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/v1/models/foo/labels/l:predict", "Unrecognized servable version label: l"),
        ("/v1/models/affine/labels/a%2Fb:predict", "Unrecognized servable version label: a/b"),
        ("/v1/models/affine/labels/STABLE:predict", "Unrecognized servable version label: STABLE"),
    ],
)
def test_unknown_labels(server, path, error):
    assert rest(server, "POST", path, b"{}") == (400, {"error": error})
    metadata = path.replace(":predict", "/metadata")
    assert rest(server, "GET", metadata) == (400, {"error": error})


@pytest.mark.parametrize(
    "path", ["/v1/models", "/v1/models/versions/1", "/v1/models/metadata/metadata"]
)
def test_names_that_look_like_keywords(server, path):
    status, answer = rest(server, "GET", path)
    if path.endswith("metadata/metadata"):
        assert (status, answer["error"]) == (
            404,
            "Servable not found for request: Latest(metadata)",
        )
    else:
        assert (status, answer["error"]) == (400, "Missing model name in request.")


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ('{"instances": [2.0, 3.0, 4.0]}', {"predictions": [3.0, 3.5, 4.0]}),
        ('{"instances": [[2.0], [3]]}', {"predictions": [[3.0], [3.5]]}),
        ('{"instances": [{"x": 2.0}, {"x": 3.0}]}', {"predictions": [3.0, 3.5]}),
        ('{"inputs": [2.0, 3.0, 4.0]}', {"outputs": [3.0, 3.5, 4.0]}),
        ('{"inputs": {"x": [[2.0], [3.0]]}}', {"outputs": [[3.0], [3.5]]}),
        ('{"inputs": 2.0}', {"outputs": 3.0}),
        ('{"signature_name": "serving_default", "instances": [2]}', {"predictions": [3.0]}),
        ('{"signature_name": "", "instances": [2]}', {"predictions": [3.0]}),
        ('{"instances": [2.0], "other": {"deep": [1, null]}}', {"predictions": [3.0]}),
        ('{"instances": [2.0], "instances": ["ignored"]}', {"predictions": [3.0]}),
        ('{"instances": [2.0]} trailing', {"predictions": [3.0]}),
    ],
)
def test_predict_over_rest(server, body, answer):
    assert rest(server, "POST", f"{HALF_URL}:predict", body) == (200, answer)


@pytest.mark.parametrize("method", ["predict", "classify", "regress"])
@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("", "JSON Parse error: The document is empty"),
        ("   ", "JSON Parse error: The document is empty. at offset: 3"),
        ("hello", "JSON Parse error: Invalid value. at offset: 0"),
        ("[]", "JSON Value: [] Is not object"),
        ('{"signature_name": ["s"], "instances": [1], "examples": [{}]}', None),
    ],
)
def test_bodies_that_are_no_requests(server, method, body, error):
    status, answer = rest(server, "POST", f"{HALF_URL}:{method}", body)
    assert status == 400
    if error is None:
        assert answer["error"].endswith("'signature_name' key must be a string value.")
    else:
        assert answer["error"] == error


@pytest.mark.parametrize(
    ("verb", "signature", "answer"),
    [
        ("classify", "classify_x_to_y", [[["", 3.0]], [["", 2.5]]]),
        ("classify", "only_classes", [[["3.0", 0.0]], [["2.5", 0.0]]]),
        ("regress", "regress_x_to_y", [3.0, 2.5]),
    ],
)
def test_classify_and_regress_over_rest(server, verb, signature, answer):
    body = json.dumps({"signature_name": signature, "examples": [{"x": 2.0}, {"x": [1.0]}]})
    assert rest(server, "POST", f"{HALF_URL}:{verb}", body) == (200, {"results": answer})


@pytest.mark.parametrize(
    ("example", "error"),
    [
        ({"x": 2}, "Data types don't match"),
        ({"z": 1.0}, "Feature: x"),
        ({"x": [1.0, 2.0]}, "Key: x"),
    ],
)
def test_examples_that_the_graph_refuses(server, example, error):
    body = json.dumps({"signature_name": "regress_x_to_y", "examples": [example]})
    status, answer = rest(server, "POST", f"{HALF_URL}:regress", body)
    assert status == 400
    assert error in answer["error"]


def test_status_names_state_and_error(server):
    status, answer = rest(server, "GET", "/v1/models/affine/versions/1")
    assert (status, answer) == (200, {
        "model_version_status": [
            {"version": "1", "state": "AVAILABLE",
             "status": {"error_code": "OK", "error_message": ""}}
        ]
    })  # fmt: skip


def test_head_has_no_body(server):
    status, body, headers = raw(server, "HEAD", "/v1/models/affine")
    assert (status, body) == (400, b"")
    assert headers["content-type"] == "application/json"


def test_tensors_of_all_forms_are_read(stub):
    content = predict(x=np.float32([2.0, 3.0]))
    assert content.inputs["x"].tensor_content
    typed = predict(x=np.float32([0]))
    typed.inputs["x"].CopyFrom(tf.compat.v1.make_tensor_proto([2.0, 3.0]))
    typed.inputs["x"].tensor_content = b""
    typed.inputs["x"].float_val[:] = [2.0, 3.0]
    short = predict(x=np.float32([0]))
    short.inputs["x"].tensor_content = b""
    short.inputs["x"].float_val[:] = [2.0]
    short.inputs["x"].tensor_shape.dim[0].size = 3
    for message, expected in ((content, [3, 3.5]), (typed, [3, 3.5]), (short, [3, 3, 3])):
        outputs = stub.Predict(message, timeout=20).outputs
        np.testing.assert_array_equal(tf.make_ndarray(outputs["y"]), expected)
        assert list(outputs["y"].float_val) == expected


@pytest.mark.parametrize(
    ("version", "signature", "echoed"),
    [(None, "", (1, "serving_default")), (1, "serving_default", (1, "serving_default"))],
)
def test_predict_echoes_what_answered(stub, version, signature, echoed):
    spec = stub.Predict(
        predict(HALF, signature, version=version, x=np.float32([2])), timeout=20
    ).model_spec
    assert (spec.version.value, spec.signature_name) == echoed


@pytest.mark.parametrize(
    ("field", "value"),
    [("predict_streamed_options", None), ("client_id", b"me")],
)
def test_options_without_a_meaning_here_are_ignored(stub, field, value):
    message = predict(x=np.float32([2]))
    if not hasattr(message, field):
        pytest.skip(f"these stubs have no {field}")
    if value is None:
        getattr(message, field).SetInParent()
    else:
        setattr(message, field, value)
    assert tf.make_ndarray(stub.Predict(message, timeout=20).outputs["y"]) == 3


@pytest.mark.parametrize("signature", ["classify_x_to_y", "regress_x_to_y"])
def test_predict_may_use_signatures_of_other_methods(stub, signature):
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.append(2.0)
    message = predict(HALF, signature, inputs=[example.SerializeToString()])
    (output,) = stub.Predict(message, timeout=20).outputs.values()
    assert tf.make_ndarray(output) == 3


def test_scores_without_classes_have_empty_labels(stub):
    response = stub.Classify(examples(HALF, "classify_x_to_y", 2.0), timeout=20)
    (row,) = response.result.classifications
    assert [(one.label, one.score) for one in row.classes] == [("", 3.0)]
    response = stub.Classify(examples(HALF, "only_classes", 2.0), timeout=20)
    (row,) = response.result.classifications
    assert [(one.label, one.score) for one in row.classes] == [("3.0", 0.0)]


def test_context_of_an_example_list(stub):
    message = examples(HALF, "classify_x_to_y")
    listed = message.input.example_list_with_context
    listed.context.features.feature["x"].float_list.value.append(4.0)
    listed.examples.add()
    listed.examples.add()
    rows = stub.Classify(message, timeout=20).result.classifications
    assert [row.classes[0].score for row in rows] == [4.0, 4.0]


def test_metadata_lists_every_signature(stub):
    message = metadata(model_spec={"name": HALF}, metadata_field=["signature_def"])
    response = stub.GetModelMetadata(message, timeout=20)
    found = get_model_metadata_pb2.SignatureDefMap()
    response.metadata["signature_def"].Unpack(found)
    one = found.signature_def["classify_x_to_y"]
    assert one.method_name == "tensorflow/serving/classify"
    assert one.inputs["inputs"].name == "tf_example:0"
    assert {"serving_default", "regress_x_to_y"} <= found.signature_def.keys()
    assert response.metadata["signature_def"].type_url == (
        "type.googleapis.com/tensorflow.serving.SignatureDefMap"
    )


def test_status_of_one_version_and_of_a_label(models_stub):
    one = status(model_spec={"name": "affine", "version": {"value": 1}})
    found = models_stub.GetModelStatus(one, timeout=20).model_version_status
    assert [s.version for s in found] == [1]
    # A label has no meaning here, whether it exists or not.
    label = status(model_spec={"name": "affine", "version_label": "nix"})
    found = models_stub.GetModelStatus(label, timeout=20).model_version_status
    assert [s.version for s in found] == [3, 1]


def test_multi_inference_of_two_tasks(stub):
    message = multi_inference(*reversed(BOTH), values=(2.0,))
    first, second = stub.MultiInference(message, timeout=20).results
    assert [one.value for one in first.regression_result.regressions] == [3.0]
    (row,) = second.classification_result.classifications
    assert [(one.label, one.score) for one in row.classes] == [("", 3.0)]
    assert first.model_spec.signature_name == "regress_x_to_y"
    assert first.model_spec.version.value == 1
