"""Files of TensorFlow Lite, and what loads them."""

import shutil

import pytest
import tensorflow as tf

from gru_serving.conformance.models import Affine
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.runtime import MODEL_FILE
from gru_serving.engine.tflite.session import TfliteSession
from tests.serving.engine.tflite.tflite_files import convert


@pytest.fixture
def load(tmp_path):
    """Loads the bytes of a file."""

    def predictor(model):
        (tmp_path / MODEL_FILE).write_bytes(model)
        return Predictor(TfliteSession(tmp_path / MODEL_FILE))

    return predictor


@pytest.fixture(scope="session")
def two_heads():
    """x (B, 2) and w (1,) give x + 10 and 2 w, in tensors `x`, `w`, `Identity`, `Identity_1`."""
    return convert(
        lambda x, w: (x + 10.0, 2.0 * w),
        tf.TensorSpec([None, 2], tf.float32, "x"),
        tf.TensorSpec([1], tf.float32, "w"),
    )


@pytest.fixture(scope="session")
def good_or_bad():
    """Texts `inputs` (B,) give scores (B, 2) and a value (B,), as `Identity` and `Identity_1`."""

    def judge(texts):
        good = tf.cast(tf.equal(texts, b"good"), tf.float32)
        return tf.stack([good, 1.0 - good], -1), 3.0 * good

    return convert(judge, tf.TensorSpec([None], tf.string, "inputs"))


@pytest.fixture(scope="session")
def version(models, tmp_path_factory):
    """The affine graph, and beside it a TFLite file that answers a thousand times as much."""
    directory = shutil.copytree(models / "affine" / "1", tmp_path_factory.mktemp("tflite") / "1")
    module = Affine(1000.0)
    saved = tmp_path_factory.mktemp("saved")
    tf.saved_model.save(module, str(saved), signatures=module.serve)
    converter = tf.lite.TFLiteConverter.from_saved_model(str(saved))
    (directory / MODEL_FILE).write_bytes(converter.convert())
    return directory


@pytest.fixture(scope="session")
def lite(version):
    predictor = Predictor(TfliteSession(version / MODEL_FILE, 2))
    yield predictor
    predictor.close()
