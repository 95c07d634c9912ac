"""A client that outlives a version whose successor has other inputs and outputs."""

import asyncio

import numpy as np
import pytest
import tensorflow as tf

from gru_serving.client import connect, connect_async
from gru_serving.errors import InvalidArgument
from tests.serving.servers import running, wait_until


class First(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
    def serve(self, x):
        return {"y": 2 * x, "total": tf.reduce_sum(x, 1)}


class Second(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
    def serve(self, x):
        return {"mean": tf.reduce_mean(x, 1), "count": tf.ones_like(x, tf.int64)}


class Third(tf.Module):
    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 2], tf.float32, name="left"),
            tf.TensorSpec([None, 2], tf.float32, name="right"),
        ]
    )
    def serve(self, left, right):
        return {"product": left * right}


X = [[1.0, 5.0], [2.0, 4.0]]


def save(module, directory, signature="serving_default"):
    aside = directory.parent.parent / f"aside-{directory.name}"
    tf.saved_model.save(module, aside, signatures={signature: module.serve})
    directory.parent.mkdir(exist_ok=True)
    aside.rename(directory)


@pytest.fixture
def server(tmp_path):
    save(First(), tmp_path / "m" / "1")
    flags = ("--model_name=m", f"--model_base_path={tmp_path / 'm'}")
    poll = "--file_system_poll_wait_seconds=1"
    with running(tmp_path / "log", *flags, poll) as server:
        yield server


def only(server, version):
    with connect(server.grpc) as client:
        states = {one.version for one in client.status("m") if one.state != "END"}
        return states == {version}


@pytest.fixture
def asks(server):
    """The `predict` of one client of each kind."""
    loop = asyncio.new_event_loop()
    asynchronous = connect_async(server.rest)

    def ask_asynchronously(*args, **options):
        return loop.run_until_complete(asynchronous.predict(*args, **options))

    with connect(server.rest) as rest, connect(server.grpc) as grpc:
        yield rest.predict, grpc.predict, ask_asynchronously
    loop.run_until_complete(asynchronous.close())
    loop.close()


def test_the_first_request_after_a_swap_is_answered(server, asks, tmp_path):
    """Outputs, then inputs, then a signature get other names."""

    def swap(module, version, *signature):
        save(module, tmp_path / "m" / str(version), *signature)
        wait_until(lambda: only(server, version), server)

    def all_answer(inputs, expected, **options):
        for ask in asks:
            outputs = ask(inputs, "m", **options)
            assert outputs.keys() == expected.keys()
            for name, value in expected.items():
                np.testing.assert_allclose(outputs[name], value)
                assert outputs[name].dtype == value.dtype

    x = np.float32(X)
    all_answer({"x": X}, {"y": 2 * x, "total": np.float32([6, 6])})
    swap(Second(), 2)
    all_answer({"x": X}, {"mean": np.float32([3, 3]), "count": np.ones((2, 2), np.int64)})
    swap(First(), 3)
    all_answer({"x": X}, {"y": 2 * x}, output_filter=["y"])
    swap(Third(), 4)
    all_answer({"left": X, "right": X}, {"product": x * x})
    for ask in asks:
        for _ in range(2):
            with pytest.raises(InvalidArgument, match=r"expected the keys \['left', 'right'\]"):
                ask({"x": X}, "m")
    swap(First(), 5, "other")
    for ask in asks:
        with pytest.raises(InvalidArgument, match="has no signature 'serving_default'"):
            ask({"left": X, "right": X}, "m")
        assert ask({"x": X}, "m", signature="other").keys() == {"y", "total"}
