"""The list of models, and class names beside scores."""

import asyncio

import pytest

from gru_serving.client import connect, connect_async
from gru_serving.client.metadata import ListedVersion
from gru_serving.client.results import Sentiment
from gru_serving.errors import InvalidArgument, ServingError, Unimplemented
from tests.serving.strange_servers import web


def test_all_models_with_versions_and_labels(server):
    async def asynchronous():
        async with connect_async(server.rest) as client:
            return await client.models()

    with connect(server.rest) as client:
        found = {model.name: model.versions for model in client.models()}
    assert {model.name: model.versions for model in asyncio.run(asynchronous())} == found
    assert {"text", "affine", "echo", "half/plus:two"} <= set(found)
    assert found["affine"][0] == ListedVersion(3, "AVAILABLE", ("canary",), "tensorflow")
    assert ListedVersion(1, "AVAILABLE", ("stable",), "tensorflow") in found["affine"]


def test_grpc_has_no_list(server):
    with connect(server.grpc) as client, pytest.raises(Unimplemented, match="a REST address"):
        client.models()


@pytest.mark.parametrize("body", [b"no JSON", b"[]", b'{"models": 3}', b'{"models": [{}]}'])
def test_a_list_of_another_form_is_refused(body):
    said = pytest.raises(ServingError, match="does not answer as TensorFlow Serving")
    with web(200, body, "application/json") as (_, url), connect(url) as client, said:
        client.models()


def test_scores_have_names_where_they_are_given(server):
    texts = ["great film", "awful"]
    with connect(server.rest) as client:
        outputs = client.predict(texts, "text")
        rows = client.classify([{"text": text} for text in texts], "text", signature="classify")
    classes = [name for name, _ in rows[0]]
    for result, row in zip(Sentiment.from_outputs(outputs, classes), rows, strict=True):
        assert result.by_class == pytest.approx(dict(row))
        assert max(result.by_class, key=result.by_class.get) == result.label
    assert Sentiment.from_outputs(outputs)[0].by_class == {}
    with pytest.raises(InvalidArgument, match=r"classes: expected 2 names.*got 3"):
        Sentiment.from_outputs(outputs, ["a", "b", "c"])


def test_bytes_of_labels_that_are_no_text_are_replaced_as_over_grpc():
    body = b'{"results": [[["a\xff", 0.5]]]}'
    with web(200, body, "application/json") as (_, url), connect(url) as client:
        assert client.classify([{"x": 1.0}]) == [[("a\ufffd", 0.5)]]
