"""Errors of a model's own checks reach clients without the names of its graph's nodes."""

import shutil

import numpy as np
import pytest
import tensorflow as tf

from gru_serving.client import connect
from gru_serving.errors import InvalidArgument
from tests.serving.servers import running, wait_until


class Checked(tf.Module):
    """Refuses all but four columns, in a function of its graph."""

    def __init__(self):
        super().__init__()
        self.scale = tf.Variable(1.0)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32, name="x")])
    def serve(self, x):
        columns = tf.shape(x)[1]
        said = tf.strings.format("x: expected 4 columns, got {}", columns)
        with tf.control_dependencies([tf.debugging.assert_equal(columns, 4, message=said)]):
            return {"y": self.scale * x}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checked")
    module = Checked()
    tf.saved_model.save(module, str(folder / "m" / "1"), signatures=module.serve)
    flags = ("--model_name=m", f"--model_base_path={folder / 'm'}", "--trial_load=never")
    more = ("--file_system_poll_wait_seconds=1", "--max_num_load_retries=0")
    with running(folder / "log", *flags, *more) as server:
        yield server


def check(text):
    assert "assertion failed: [x: expected 4 columns, got 2]" in text
    for trace in ("{{", "[[", "__inference", "node", "/Assert", ":0)"):
        assert trace not in text


@pytest.mark.parametrize("transport", ["rest", "grpc"])
def test_through_the_client(server, transport):
    with connect(getattr(server, transport)) as client, pytest.raises(InvalidArgument) as caught:
        client.predict({"x": np.ones((1, 2), np.float32)}, "m")
    check(caught.value.message)


def test_a_version_that_cannot_be_loaded(server, tmp_path):
    base = server.log.parent / "m"
    shutil.copytree(base / "1", tmp_path / "2")
    (tmp_path / "2" / "variables" / "variables.index").write_bytes(b"no table of variables " * 9)
    (tmp_path / "2").rename(base / "2")

    def broken(url):
        with connect(url) as client:
            return [state.error_message for state in client.status("m") if state.error_message]

    wait_until(lambda: broken(server.rest), server)
    for url in (server.rest, server.grpc):
        (said,) = broken(url)
        assert "not an sstable" in said
        assert "{{" not in said
        assert "restore" not in said.lower()
