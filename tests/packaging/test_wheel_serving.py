"""What the extras for serving promise: each serves the models that it says, and refuses others."""

import shutil

import numpy as np
import pytest
import tensorflow as tf

from gru_serving.client import connect
from gru_serving.conformance.models import Affine
from tests.ports import free_ports
from tests.serving.text_op_model import save_with_text_op

pytestmark = [pytest.mark.wheel, pytest.mark.slow]
ONCE = ("--max_num_load_retries=0", "--trial_load=never")


@pytest.fixture(scope="session")
def lite(tmp_path_factory):
    """Base path of a TensorFlow Lite model beside a SavedModel with another factor."""
    version = tmp_path_factory.mktemp("lite") / "1"
    module = Affine(10.0)
    tf.saved_model.save(module, str(version), signatures=module.serve)
    converter = tf.lite.TFLiteConverter.from_saved_model(str(version))
    (version / "model.tflite").write_bytes(converter.convert())
    return version.parent


def refused(environment, model, *flags):
    """What a server says that ends because it cannot load its model."""
    (port,) = free_ports(1)
    done = environment.run("gru-serve", "serve", f"--port={port}", *ONCE, *flags,
                           "--model_name=m", f"--model_base_path={model}")  # fmt: skip
    assert done.returncode == 255, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout + done.stderr


def predicted(environment, url):
    """What a server of the text classifier is told to answer on the command line."""
    said = environment.succeeds("gru-serve", "predict", "--url", url, "--model", "small", "fine")
    assert "positive" in said or "negative" in said


def test_serve(environment, exported):
    """Serves what another environment trained, and cannot train."""
    serve = environment("serve")
    assert {"pandas", "scikit-learn", "tyro"}.isdisjoint(serve.packages())
    with serve.serving(exported, "small") as server:
        for url in (server.rest, f"grpc://{server.grpc}"):
            predicted(serve, url)
        serve.succeeds(
            "gru-serve", "verify", str(exported / "1"), "--url", server.rest, "--timeout=300"
        )
    serve.succeeds("gru-serve", "verify", str(exported))
    serve.asks_for("train", "gru-serve", "export", "runs/small", "--to", "models/small")


def test_serve_light(environment, exported, affine):
    """Without TensorFlow: exports, and no other SavedModel."""
    light = environment("serve-light")
    assert {"tensorflow", "keras", "pandas"}.isdisjoint(light.packages())
    version = exported / "1"
    with light.serving(exported, "small") as server:
        predicted(light, f"grpc://{server.grpc}")
        light.succeeds("gru-serve", "verify", str(version), "--url", server.rest)
    light.succeeds("gru-serve", "verify", str(version), "--runtime=onnx")
    assert "pip install 'keras-gru[serve]'" in refused(light, affine)


def test_tables(environment, exported):
    """A file is scored by a server."""
    tables = environment("tables")
    assert {"tensorflow", "pandas", "starlette"}.isdisjoint(tables.packages())
    (tables.work / "in.csv").write_text("text\ngood film\nbad film\n")
    with environment("serve-light").serving(exported, "small") as server:
        tables.succeeds("gru-serve", "predict", "--url", server.rest, "--model", "small",
                        "--data", "in.csv", "--output", "out.parquet")  # fmt: skip
    table = tables.python(
        "import pyarrow.parquet as pq; print(pq.read_table('out.parquet').to_pylist())"
    )
    assert table.count("probability") == 2


def test_text(environment, tmp_path):
    save_with_text_op(tmp_path / "text" / "1", "TFText>Utf8Binarize")
    serve = environment("serve")
    assert "pip install 'keras-gru[text]'" in refused(serve, tmp_path / "text")
    serve.add("text")
    with serve.serving(tmp_path / "text", "text") as server, connect(server.rest) as client:
        bits = client.predict({"text": ["an"]}, "text")["bits"]
    assert bits.tolist() == [[1, 0, 0, 0, 0, 1, 1, 1]]


def test_tflite(environment, lite, tmp_path):
    """LiteRT needs no TensorFlow."""
    light = environment("serve-light")
    only = tmp_path / "only"
    (only / "1").mkdir(parents=True)
    shutil.copy(lite / "1" / "model.tflite", only / "1")
    assert "pip install 'keras-gru[tflite]'" in refused(light, only, "--prefer_tflite_model")
    light.add("tflite")
    with (
        light.serving(only, "lite", "--prefer_tflite_model") as server,
        connect(server.rest) as client,
    ):
        y = client.predict({"x": np.ones((2, 3)), "b": np.zeros((2, 1))}, "lite")["y"]
    np.testing.assert_array_equal(y, [[90, 120]] * 2)
