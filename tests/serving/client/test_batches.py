"""Splitting large inputs, and Classify and Regress, over both transports."""

import asyncio

import numpy as np
import pytest

from gru_serving.client import ClientOptions, Metadata, Target, connect, connect_async
from gru_serving.client.conversation import Conversation, Exchange
from gru_serving.codecs.signature import Signature, TensorInfo
from gru_serving.errors import InvalidArgument, ServingError, Unavailable

WORDS = ["good", "bad", "great film", "awful", "neither", "good bad good"]


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
        with pytest.raises(ServingError, match="cannot be combined from parts"):
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
    """The transport of a server that takes at most two rows and pads to the longest in a batch."""

    def __init__(self):
        self.sizes = []
        self.limit = 2

    def metadata(self, target):
        signature = Signature({"x": TensorInfo("x:0", 1, (-1,))}, {"y": TensorInfo("y:0", 1, None)})
        return "metadata", lambda _: Metadata(target.model, 7, {"serving_default": signature})

    def predict(self, target, signature_name, signature, inputs, output_filter):
        rows = len(inputs["x"])

        def read(_):
            self.sizes.append((rows, target.version))
            if rows > self.limit:
                raise InvalidArgument(
                    f"Task size {rows} is larger than maximum input batch size {self.limit}"
                )
            x = inputs["x"][:, None]
            return {"y": np.where(np.arange(x.max()) < x, x, np.float32(0))}

        return "predict", read


def run(steps):
    try:
        action = next(steps)
        while True:
            assert isinstance(action, Exchange)
            action = steps.send("answer")
    except StopIteration as stop:
        return stop.value


def test_limit_of_the_server_is_learnt_and_shorter_parts_are_padded():
    wire = Picky()
    conversation = Conversation(wire, ClientOptions())

    for _ in range(2):
        got = run(conversation.predict([1, 2, 3, 1, 4], Target("m"), "", (), None))["y"]
        assert [[value for value in row if value] for row in got.tolist()] == [
            *([1], [2, 2], [3, 3, 3], [1], [4, 4, 4, 4])
        ]
        assert got.shape == (5, 4)
    parts = [(2, 7), (2, 7), (1, 7)]
    assert wire.sizes == [(5, None), *parts, *parts]


def test_limit_is_learnt_below_the_callers_own_and_again_when_it_falls():
    wire = Picky()
    conversation = Conversation(wire, ClientOptions(max_batch_size=4))

    def sizes(model):
        wire.sizes.clear()
        assert run(conversation.predict([1] * 5, Target(model), "", (), None))["y"].shape == (5, 1)
        return [size for size, _ in wire.sizes]

    assert sizes("m") == [4, 2, 2, 1]
    wire.limit = 1  # as after a restart with another configuration
    assert sizes("m") == [2, 1, 1, 1, 1, 1]
    wire.limit = 9
    assert sizes("m") == [1, 1, 1, 1, 1]
    assert sizes("other") == [4, 1]  # each model has its own limit


@pytest.mark.parametrize("limit", [0, 5, 9])
def test_limit_that_is_none_is_the_servers_error(limit):
    class Odd(Picky):
        def predict(self, target, signature_name, signature, inputs, output_filter):
            def read(_):
                self.sizes.append(len(inputs["x"]))
                assert len(self.sizes) < 5
                raise InvalidArgument(
                    f"Task size 5 is larger than maximum input batch size {limit}"
                )

            return "predict", read

    wire = Odd()
    with pytest.raises(InvalidArgument, match="Task size 5"):
        run(Conversation(wire, ClientOptions()).predict([1] * 5, Target("m"), "", (), None))
    assert wire.sizes == [5]


def test_waits_grow_between_tries():
    steps = Conversation(Picky(), ClientOptions(retries=7)).metadata(Target("m"), 1000)
    waits = []
    for _ in range(7):
        exchange = next(steps)
        assert isinstance(exchange, Exchange)
        assert 900 < exchange.timeout <= 1000
        waits.append(steps.throw(Unavailable("away")).seconds)
    next(steps)
    with pytest.raises(Unavailable):
        steps.throw(Unavailable("away"))
    for wait, expected in zip(waits, (0.1, 0.2, 0.4, 0.8, 1.6, 2, 2), strict=True):
        assert expected / 2 <= wait <= 1.5 * expected


class Renaming(Picky):
    """The transport of a server whose new versions rename an output and a signature."""

    name = "old"

    def metadata(self, target):
        signature = Signature(
            {"x": TensorInfo("x:0", 1, (-1,))}, {self.name: TensorInfo("y:0", 1, None)}
        )
        signatures = {"serving_default": signature, self.name: signature}
        return "metadata", lambda _: Metadata(target.model, 7, signatures)

    def predict(self, *request):
        message, read = super().predict(*request)
        return message, lambda answer: {self.name: read(answer)["y"]}


@pytest.mark.parametrize(
    ("signature", "output_filter"), [("", ["new"]), ("new", []), ("new", ["new"])]
)
def test_new_outputs_and_signatures_are_learnt(signature, output_filter):
    wire = Renaming()
    conversation = Conversation(wire, ClientOptions())

    def ask():
        run(conversation.predict([1], Target("m"), signature, output_filter, None))

    run(conversation.predict([1], Target("m"), "", (), None))
    for _ in range(2):
        with pytest.raises(InvalidArgument, match="new"):
            ask()
    wire.name = "new"
    ask()


def test_no_rows_of_text(url):
    with connect(url) as client:
        outputs = client.predict([], "text")
    assert {name: len(array) for name, array in outputs.items()} == {
        "label": 0,
        "probability": 0,
        "scores": 0,
    }
