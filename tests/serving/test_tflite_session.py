"""TensorFlow Lite files beside and instead of a graph."""

import shutil
import threading

import numpy as np
import pytest
import tensorflow as tf

from serving.errors import FailedPrecondition, InvalidArgument, ServingError
from serving.predictor import Predictor
from serving.tflite_session import MODEL_FILE, TfliteSession
from serving.version_loader import LoadOptions, VersionLoader

from .saved_models import Affine


@pytest.fixture(scope="module")
def version(models, tmp_path_factory):
    """The affine graph, and as TFLite one that answers a thousand times as much."""
    directory = shutil.copytree(models / "affine" / "1", tmp_path_factory.mktemp("tflite") / "1")
    module = Affine(1000.0)
    saved = tmp_path_factory.mktemp("saved")
    tf.saved_model.save(module, str(saved), signatures=module.serve)
    converter = tf.lite.TFLiteConverter.from_saved_model(str(saved))
    (directory / MODEL_FILE).write_bytes(converter.convert())
    return directory


@pytest.fixture(scope="module")
def lite(version):
    predictor = Predictor(TfliteSession(version / MODEL_FILE, 2))
    yield predictor
    predictor.close()


def inputs(rows, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "x": rng.normal(size=(rows, 3)).astype("f4"),
        "b": rng.normal(size=(rows, 1)).astype("f4"),
    }


KERNEL = 1000 * np.float32([[1, 2], [3, 4], [5, 6]])


def test_signatures_of_the_file(lite):
    assert list(lite.signatures) == ["serving_default"]
    signature = lite.signatures["serving_default"]
    assert {alias: (info.dtype, info.shape) for alias, info in signature.inputs.items()} == {
        "b": (1, (-1, 1)),
        "x": (1, (-1, 3)),
    }
    assert sorted(signature.outputs) == ["doubled", "y"]
    assert signature.method_name == "tensorflow/serving/predict"


@pytest.mark.parametrize("rows", [1, 5, 2])
def test_answers_for_any_number_of_rows(lite, rows):
    asked = inputs(rows, rows)
    answer = lite.predict(asked)
    np.testing.assert_allclose(answer["y"], asked["x"] @ KERNEL + asked["b"], rtol=1e-5)
    np.testing.assert_array_equal(answer["doubled"], 2 * asked["x"])
    assert list(lite.predict(asked, output_filter=["y"])) == ["y"]


def test_errors(lite):
    with pytest.raises(FailedPrecondition, match='"nix" not found'):
        lite.predict({}, "nix")
    with pytest.raises(InvalidArgument, match=r"Expects arg\[\d\] to be float but double"):
        lite.predict({name: array.astype("f8") for name, array in inputs(1).items()})
    with pytest.raises(ServingError):
        lite.predict({"x": np.ones((1, 4), "f4"), "b": np.ones((1, 1), "f4")})
    assert lite.predict(inputs(1))["y"].shape == (1, 2)


def test_threads_share_the_interpreters(lite):
    wrong = []

    def work(seed):
        for rows in (1, 3, 2):
            asked = inputs(rows, seed)
            answer = lite.predict(asked)
            if not np.allclose(answer["y"], asked["x"] @ KERNEL + asked["b"], rtol=1e-4):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_file_that_is_no_model(tmp_path):
    (tmp_path / MODEL_FILE).write_bytes(b"nonsense" * 10)
    with pytest.raises(InvalidArgument, match="Cannot build Interpreter"):
        TfliteSession(tmp_path / MODEL_FILE)


def test_a_file_without_signatures(tmp_path):
    function = tf.function(
        lambda x: x + 1.0, input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")]
    )
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    path = tmp_path / MODEL_FILE
    path.write_bytes(converter.convert())
    predictor = Predictor(TfliteSession(path))
    signature = predictor.signatures["serving_default"]
    (name,), (output,) = signature.inputs, signature.outputs
    for rows in (3, 1):
        x = np.ones((rows, 2), "f4")
        np.testing.assert_array_equal(predictor.predict({name: x})[output], x + 1)


def test_preference(version, models):
    ones = {"x": np.ones((1, 3), "f4"), "b": np.zeros((1, 1), "f4")}
    for prefer, directory, expected in (
        (True, version, 9000),
        (False, version, 9),
        (True, models / "affine" / "1", 9),
    ):
        predictor = VersionLoader(LoadOptions(prefer_tflite=prefer))(directory)
        assert predictor.predict(ones)["y"][0, 0] == expected
        predictor.close()
