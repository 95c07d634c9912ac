"""The REST API as a third-party client sees it: raw requests over a socket."""

import base64
import gzip
import json

import httpx
import pytest

from tests.serving.raw_http import raw

MODELS = "/v1/models"


@pytest.fixture(scope="module")
def http_client(server):
    with httpx.Client(base_url=server.rest, trust_env=False, timeout=20) as client:
        yield client


def test_status_body(http_client):
    response = http_client.get(f"{MODELS}/echo")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.json() == {
        "model_version_status": [
            {
                "version": "123",
                "state": "AVAILABLE",
                "status": {"error_code": "OK", "error_message": ""},
            }
        ]
    }


@pytest.mark.parametrize("suffix", ["/versions/3", "/labels/canary", "/labels/nonsense", ""])
def test_status_paths(http_client, suffix):
    states = http_client.get(f"{MODELS}/affine{suffix}").json()["model_version_status"]
    # Status requests ignore a label.
    assert [s["version"] for s in states] == (["3"] if "versions" in suffix else ["3", "1"])


def test_metadata_body(http_client):
    body = http_client.get(f"{MODELS}/affine/versions/1/metadata").json()
    assert body["model_spec"] == {"name": "affine", "signature_name": "", "version": "1"}
    signatures = body["metadata"]["signature_def"]["signature_def"]
    assert "__saved_model_init_op" in signatures
    assert signatures["serving_default"]["inputs"]["x"] == {
        "dtype": "DT_FLOAT",
        "tensor_shape": {
            "dim": [{"size": "-1", "name": ""}, {"size": "3", "name": ""}],
            "unknown_rank": False,
        },
        "name": "serving_default_x:0",
    }
    assert signatures["serving_default"]["method_name"] == "tensorflow/serving/predict"
    assert signatures["serving_default"]["defaults"] == {}


def test_row_answer_of_one_output_is_a_plain_list(http_client):
    response = http_client.post(
        f"{MODELS}/half%2Fplus%3Atwo:predict", content='{"instances": [[1.0], [2.0], [5.0]]}'
    )
    assert response.status_code == 200
    assert response.json() == {"predictions": [[2.5], [3.0], [4.5]]}


def test_row_answer_of_several_outputs_is_a_list_of_objects(http_client):
    body = {"instances": [{"x": [1, 0, 0], "b": [0]}, {"x": [0, 1, 0], "b": [1]}]}
    response = http_client.post(f"{MODELS}/affine/labels/stable:predict", json=body)
    assert response.json() == {
        "predictions": [
            {"y": [1.0, 2.0], "doubled": [2.0, 0.0, 0.0]},
            {"y": [4.0, 5.0], "doubled": [0.0, 2.0, 0.0]},
        ]
    }


def test_text_answer(http_client):
    response = http_client.post(f"{MODELS}/text:predict", json={"instances": ["great", "awful"]})
    labels = [row["label"] for row in response.json()["predictions"]]
    assert labels == ["positive", "negative"]


def test_classify_and_regress(http_client):
    body = {"signature_name": "classify", "examples": [{"text": "good"}, {"text": ["bad"]}]}
    results = http_client.post(f"{MODELS}/text:classify", json=body).json()["results"]
    assert [[label for label, _ in row] for row in results] == [["negative", "positive"]] * 2
    assert results[0][1][1] == pytest.approx(0.7310586, abs=1e-6)
    body = {"signature_name": "regress", "examples": [{"text": "good"}]}
    results = http_client.post(f"{MODELS}/text:regress", json=body).json()["results"]
    assert results == [pytest.approx(0.7310586, abs=1e-6)]
    body = {"signature_name": "regress_x_to_y", "examples": [{"x": 1.5}, {"x": [4.0]}]}
    url = f"{MODELS}/half%2Fplus%3Atwo:regress"
    assert http_client.post(url, json=body).json() == {"results": [2.75, 4.0]}


def test_context_is_merged_into_the_examples(http_client):
    body = {"signature_name": "regress_x_to_y", "context": {"x": 2.5}, "examples": [{}, {}]}
    url = f"{MODELS}/half%2Fplus%3Atwo:regress"
    assert http_client.post(url, json=body).json() == {"results": [3.25, 3.25]}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "JSON Value: {} When method is classify, key 'examples' is expected and was not "
         "found"),
        ({"examples": 1}, 'JSON Value: {\n    "examples": 1\n} Expecting \'examples\' value to be '
         "an list/array"),
        ({"examples": []}, 'JSON Value: {\n    "examples": []\n} \'examples\' value is an empty '
         "array"),
        ({"examples": [3]}, "Example must be JSON object but got JSON Number"),
        ({"examples": [{"x": None}]}, "Feature: x has element with unexpected JSON type: Null"),
        ({"examples": [{"x": {}}]}, "Feature: x has element with unexpected JSON type: Object"),
        ({"examples": [{"x": [[1]]}]}, "Feature: x has element with unexpected JSON type: Array"),
        ({"examples": [{"x": [10, 10.0]}]},
         "Unexpected element type in feature: x expecting type: int64"),
        ({"examples": [{"x": ["a", 1]}]},
         "Unexpected element type in feature: x expecting type: bytes"),
        # The type is checked before the bytes are.
        ({"examples": [{"x": [1, {"b64": "!!"}]}]},
         "Unexpected element type in feature: x expecting type: int64"),
        ({"examples": [{"x": {"b64": "!!"}}]}, "Unable to base64 decode"),
        ({"examples": [{"x": 2**63}]},
         "Feature: x has uint64_t element. Only int64_t is supported."),
    ],
)  # fmt: skip
def test_classify_errors(http_client, body, message):
    response = http_client.post(f"{MODELS}/text:classify", json=body)
    assert response.status_code == 400
    assert response.json() == {"error": message}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        # The pattern allows anything but / and : in a name, including a query.
        ("GET", "/v1/models/affine?x=1", None, 404,
         "Could not find any versions of model affine?x=1"),
        ("POST", "/v1/models/nix:predict", b"", 400, "JSON Parse error: The document is empty"),
        ("POST", "/v1/models/text:predict", b'{"instances": [3]}', 400,
         "Failed to process element: 0 of 'instances' list. Error: INVALID_ARGUMENT: JSON Value: 3 "
         "Type: Number is not of expected type: string"),
        ("POST", "/v1/models/text:predict", b"{", 400,
         "JSON Parse error: Missing a name for object member. at offset: 1"),
        ("POST", "/v1/models/affine:predict",
         b'{"signature_name": "total", "instances": [[1, 2, 3]]}', 400,
         "Tensor name: total has no shape information "),
        ("POST", "/v1/models/echo:predict",
         b'{"signature_name": "bfloat16", "inputs": [1]}', 501,
         "Conversion of JSON Value: 1 to type: bfloat16"),
    ],
)  # fmt: skip
def test_error_answers(server, method, path, body, status, message):
    got, answer, headers = raw(server, method, path, body)
    assert got == status
    assert headers["content-type"] == "application/json"
    assert json.loads(answer) == {"error": message}


def test_version_beyond_int64_has_an_empty_answer(server):
    assert raw(server, "GET", f"{MODELS}/affine/versions/{2**63}")[:2] == (400, b"")


def test_paths_ignore_case(server):
    assert raw(server, "GET", "/V1/MODELS/affine/VERSIONS/1")[0] == 200


@pytest.mark.parametrize("path", ["/", "/v2/health", "/v1"])
def test_other_paths(server, path):
    status, body, headers = raw(server, "GET", path)
    assert status == 404
    assert b"404 Not Found" in body
    assert headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "PROPFIND"])
def test_other_methods(server, method):
    status, body, headers = raw(server, method, f"{MODELS}/text")
    assert status == 501
    assert b"501 Not Implemented" in body
    assert headers["content-type"].startswith("text/html")


@pytest.mark.parametrize(
    "path",
    ["foo%2:predict", "foo%zz", "a[b]", "a%22b|c", "<a>", "{a}", "a^b", "a`b", "a\\b", "a?b=<"],
)
def test_paths_that_are_no_uri(server, path):
    status, body, headers = raw(server, "POST", f"{MODELS}/{path}", b"{}")
    assert status == 400
    assert b"400 Bad Request" in body
    assert headers["content-type"].startswith("text/html")


def test_options(server):
    good = raw(server, "OPTIONS", f"{MODELS}/text", headers={"Origin": "https://x"})
    assert good[:2] == (200, b"")
    assert good[2]["content-type"] == "text/html; charset=ISO-8859-1"
    assert raw(server, "OPTIONS", f"{MODELS}/text")[:2] == (400, b"")


def test_no_cors_headers_unless_asked_for(server):
    assert "access-control-allow-origin" not in raw(server, "GET", f"{MODELS}/text")[2]


@pytest.mark.parametrize("encoding", ["gzip", "my_gzip", "x-gzip", "gzip, identity"])
def test_gzip_requests(server, encoding):
    body = gzip.compress(b'{"instances": ["good"]}')
    headers = {"Content-Encoding": encoding}
    status, answer, _ = raw(server, "POST", f"{MODELS}/text:predict", body, headers)
    assert status == 200
    assert json.loads(answer)["predictions"][0]["label"] == "positive"
    # Nothing may follow either: a second member, or padding.
    for broken in (b"no gzip", body[:-9], body + body, body + bytes(8)):
        status, answer, _ = raw(server, "POST", f"{MODELS}/text:predict", broken, headers)
        assert status == 400
        assert json.loads(answer) == {"error": "JSON Parse error: The document is empty"}


def test_what_is_not_said_to_be_gzip_is_read_as_it_is(server):
    for encoding in ("Gzip", "identity"):
        headers = {"Content-Encoding": encoding}
        body = b'{"instances": ["good"]}'
        assert raw(server, "POST", f"{MODELS}/text:predict", body, headers)[0] == 200


def test_base64_in(http_client):
    text = base64.b64encode(b"great good").decode().rstrip("=")
    body = {"instances": [{"b64": text}]}
    answer = http_client.post(f"{MODELS}/text:predict", json=body).json()
    assert answer["predictions"][0]["label"] == "positive"


def test_run_timeout(http_client):
    body = {"signature_name": "spin", "inputs": 10**10}
    response = http_client.post(f"{MODELS}/affine:predict", json=body)
    assert response.status_code == 504
    assert response.json() == {"error": "Timed out waiting for notification"}


def test_health(http_client):
    assert http_client.get("/healthz").json() == {"status": "ok"}
    assert http_client.get("/readyz").json() == {"status": "ready"}
