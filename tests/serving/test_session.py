"""The adapter to TensorFlow's private session call: that it is there, and does what it is for."""

import inspect
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf

from serving import session
from serving.errors import DeadlineExceeded, InvalidArgument, NotFound, ServingError
from serving.session import GraphSession, SessionOptions


@pytest.fixture(scope="module")
def affine(models):
    opened = GraphSession(models / "affine" / "1", options=SessionOptions(1, 1))
    yield opened
    opened.close()


def handles(opened, signature="serving_default"):
    proto = opened.signatures.signature_def[signature]
    inputs = {alias: opened.tensor(info.name) for alias, info in proto.inputs.items()}
    return inputs, {alias: opened.tensor(info.name) for alias, info in proto.outputs.items()}


def test_private_names_exist():
    assert list(inspect.signature(tf.compat.v1.Session._call_tf_sessionrun).parameters) == [
        "self",
        "options",
        "feed_dict",
        "fetch_list",
        "target_list",
        "run_metadata",
    ]
    assert not inspect.signature(tf.compat.v1.Session._extend_graph).parameters.keys() - {"self"}
    with tf.Graph().as_default():
        assert callable(tf.compat.v1.placeholder(tf.float32)._as_tf_output)
    assert callable(session.pywrap_tf_session.TF_NewBufferFromString)
    assert callable(session.pywrap_tf_session.TF_DeleteBuffer)


def test_same_numbers_as_the_loaded_function(affine, models):
    loaded = tf.saved_model.load(str(models / "affine" / "1"))
    rng = np.random.default_rng(0)
    x, b = rng.normal(size=(7, 3)).astype("f4"), rng.normal(size=(7, 1)).astype("f4")
    expected = loaded.signatures["serving_default"](x=tf.constant(x), b=tf.constant(b))
    inputs, outputs = handles(affine)
    (y,) = affine.run({inputs["x"]: x, inputs["b"]: b}, [outputs["y"]])
    np.testing.assert_array_equal(y, expected["y"].numpy())


def test_dtype_is_not_cast(affine):
    inputs, outputs = handles(affine)
    feeds = {inputs["x"]: np.ones((1, 3), np.float64), inputs["b"]: np.ones((1, 1), np.float32)}
    with pytest.raises(InvalidArgument, match=r"^Expects arg\[\d\] to be float but double is"):
        affine.run(feeds, [outputs["y"]])


def test_timeout(affine):
    inputs, outputs = handles(affine, "spin")
    with pytest.raises(DeadlineExceeded, match=r"^Timed out waiting for notification"):
        affine.run({inputs["steps"]: np.int64(10**10)}, [outputs["x"]], timeout_ms=100)
    (x,) = affine.run({inputs["steps"]: np.int64(3)}, [outputs["x"]], timeout_ms=10_000)
    assert x.shape == ()


def test_error_text_with_bytes_that_are_no_text(models):
    opened = GraphSession(models / "half_plus_two" / "1")
    inputs, outputs = handles(opened, "regress_x_to_y")
    with pytest.raises(InvalidArgument):
        opened.run({inputs["inputs"]: np.array([b"\xff\xfe\xfd"], object)}, [outputs["outputs"]])
    opened.close()


def test_unknown_tensor(affine):
    with pytest.raises(NotFound, match="Tensor nix:0"):
        affine.tensor("nix")


def test_threads(affine):
    inputs, outputs = handles(affine)
    wrong = []

    def work(i):
        x = np.full((2, 3), i, np.float32)
        for _ in range(50):
            (y,) = affine.run(
                {inputs["x"]: x, inputs["b"]: np.zeros((2, 1), np.float32)}, [outputs["doubled"]]
            )
            if not (y == 2 * i).all():
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_what_is_no_saved_model(tmp_path, models):
    with pytest.raises(NotFound, match="Could not find SavedModel"):
        GraphSession(tmp_path)
    with pytest.raises(InvalidArgument, match="'gpu'"):
        GraphSession(models / "affine" / "1", tags=["gpu"])
    (tmp_path / "saved_model.pb").write_bytes(b"\x00garbage")
    with pytest.raises(ServingError):
        GraphSession(tmp_path)


def test_closed_session_refuses(models):
    opened = GraphSession(models / "affine" / "1")
    inputs, outputs = handles(opened)
    opened.close()
    feeds = {inputs["x"]: np.ones((1, 3), "f4"), inputs["b"]: np.ones((1, 1), "f4")}
    with pytest.raises(ServingError, match="closed"):
        opened.run(feeds, [outputs["y"]])


@pytest.mark.parametrize("frugal", [False, True])
@pytest.mark.parametrize("rows", [1, 40])
def test_many_at_once_in_pools_of_their_own(models, frugal, rows):
    """More at once than there are pools: the answers stay each caller's own."""
    session = GraphSession(models / "affine" / "1", options=SessionOptions(frugal=frugal))
    signature = session.signatures.signature_def["serving_default"]
    x, b = (session.tensor(signature.inputs[name].name) for name in ("x", "b"))
    y = session.tensor(signature.outputs["y"].name)

    def call(n):
        feeds = {x: np.full((rows, 3), n, np.float32), b: np.zeros((rows, 1), np.float32)}
        return session.run(feeds, [y], timeout_ms=20_000 * (n % 2))[0]

    with ThreadPoolExecutor(40) as threads:
        answers = list(threads.map(call, range(200)))
    for n, answer in enumerate(answers):
        np.testing.assert_array_equal(answer, np.full((rows, 2), [9 * n, 12 * n], np.float32))
    session.close()


@pytest.mark.parametrize("frugal", [False, True])
def test_deadlines_hold_in_every_pool(models, frugal):
    session = GraphSession(models / "affine" / "1", options=SessionOptions(frugal=frugal))
    signature = session.signatures.signature_def["spin"]
    steps = session.tensor(signature.inputs["steps"].name)
    x = session.tensor(signature.outputs["x"].name)
    for _ in range(3):
        started = time.monotonic()
        with pytest.raises(DeadlineExceeded, match="Timed out waiting for notification"):
            session.run({steps: np.int64(10**12)}, [x], timeout_ms=200)
        assert time.monotonic() - started < 60
    session.close()
