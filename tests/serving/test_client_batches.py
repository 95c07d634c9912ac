"""Splitting of large inputs, and Classify and Regress, over both transports."""

import asyncio

import numpy as np
import pytest

from serving.async_client import connect_async
from serving.client import ClientOptions, connect
from serving.conversation import Conversation, Exchange, Metadata, Target
from serving.errors import InvalidArgument, ServingError
from serving.signature import Signature, TensorInfo

WORDS = ["good", "bad", "great film", "awful", "neither", "good bad good"]


@pytest.fixture(params=["rest", "grpc"])
def url(request, server):
    return getattr(server, request.param)


def test_parts_are_put_together(url):
    x = np.random.default_rng(0).normal(size=(11, 3)).astype(np.float32)
    inputs = {"x": x, "b": np.arange(11.0)[:, None]}
    with connect(url) as whole, connect(url, max_batch_size=4) as split:
        expected, got = (one.predict(inputs, "affine", label="stable") for one in (whole, split))
        for name in expected:
            np.testing.assert_allclose(got[name], expected[name], rtol=1e-6)
        assert split.predict(WORDS, "text")["label"].tolist() == [
            *(b"positive", b"negative", b"positive", b"negative", b"negative", b"positive")
        ]
        with pytest.raises(ServingError, match="cannot be put together from parts"):
            split.predict(x, "affine", signature="total")


def test_async_parts(url):
    async def ask():
        async with connect_async(url, max_batch_size=1) as client:
            return await client.predict(WORDS, "text", output_filter=["label"])

    assert asyncio.run(ask())["label"].tolist()[:2] == [b"positive", b"negative"]


def test_classify_and_regress(url):
    examples = [{"text": word} for word in WORDS]
    with connect(url) as client:
        scores = client.predict(WORDS, "text")["scores"]
        rows = client.classify(examples, "text", signature="classify")
        assert [label for label, _ in rows[0]] == ["negative", "positive"]
        np.testing.assert_allclose([[s for _, s in row] for row in rows], scores, rtol=1e-6)
        np.testing.assert_allclose(
            client.regress(examples, "text", signature="regress"), scores[:, 1], rtol=1e-6
        )
        with pytest.raises(ServingError):
            client.classify([{"nix": 1.0}], "text", signature="classify")


def test_reload_is_for_grpc(server):
    with connect(server.rest) as client, pytest.raises(ServingError, match="give a gRPC address"):
        client.reload(None)


class Picky:
    """The wire of a server that takes two rows at most and pads to the longest in a batch."""

    def __init__(self):
        self.sizes = []

    def metadata(self, target):
        signature = Signature({"x": TensorInfo("x:0", 1, (-1,))}, {"y": TensorInfo("y:0", 1, None)})
        return "metadata", lambda _: Metadata(target.model, 7, {"serving_default": signature})

    def predict(self, target, signature_name, signature, inputs, output_filter):
        rows = len(inputs["x"])

        def read(_):
            self.sizes.append((rows, target.version))
            if rows > 2:
                raise InvalidArgument(f"Task size {rows} is larger than maximum input batch size 2")
            lengths = inputs["x"].astype(int)
            return {
                "y": np.where(np.arange(lengths.max()) < lengths[:, None], lengths[:, None], 0.0)
            }

        return "predict", read


def test_limit_of_the_server_is_learnt_and_shorter_parts_are_padded():
    wire = Picky()
    conversation = Conversation(wire, ClientOptions())

    def run(steps):
        try:
            action = next(steps)
            while True:
                assert isinstance(action, Exchange)
                action = steps.send(None)
        except StopIteration as stop:
            return stop.value

    for _ in range(2):
        got = run(conversation.predict([1, 2, 3, 1, 4], Target("m"), "", (), None))["y"]
        assert [[value for value in row if value] for row in got.tolist()] == [
            *([1], [2, 2], [3, 3, 3], [1], [4, 4, 4, 4])
        ]
        assert got.shape == (5, 4)
    parts = [(2, 7), (2, 7), (1, 7)]
    assert wire.sizes == [(5, None), *parts, *parts]
