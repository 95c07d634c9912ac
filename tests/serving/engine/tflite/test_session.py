"""TensorFlow Lite files beside or instead of a graph: what they answer."""

import contextlib
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf

from gru_serving.codecs.signature import CLASSIFY_METHOD, REGRESS_METHOD
from gru_serving.engine.examples import Task, classify, infer, regress
from gru_serving.engine.load_options import LoadOptions
from gru_serving.engine.runtime import MODEL_FILE
from gru_serving.engine.tflite.session import TfliteSession
from gru_serving.engine.version_loader import VersionLoader
from gru_serving.errors import FailedPrecondition, InvalidArgument, ServingError
from tests.serving.engine.tflite.affine_rows import KERNEL, inputs
from tests.serving.engine.tflite.tflite_files import convert, signature_def, with_signatures


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


@pytest.mark.parametrize("shape", [(), (4,), (2, 1), (2, 3), (1, 2, 3, 1), (1,) * 6])
def test_rows_of_another_rank_are_resized_to(load, shape):
    """As TF Serving does, whose own tests feed one dimension to an input of two."""
    lite = load(convert(lambda x: x * 0.5 + 2.0, tf.TensorSpec([None, 1], tf.float32, "x")))
    x = np.arange(np.prod(shape, dtype=int), dtype="f4").reshape(shape)
    np.testing.assert_array_equal(next(iter(lite.predict({"x": x}).values())), x / 2 + 2)


@pytest.mark.parametrize("rank", [0, 1, 3, 6])
def test_a_rank_that_a_kernel_does_not_take_is_an_error(lite, rank):
    with contextlib.suppress(ServingError):
        lite.predict({**inputs(1), "x": np.ones([1] * rank, "f4")})
    assert lite.predict(inputs(1))["y"].shape == (1, 2)


@pytest.mark.parametrize("rank", [7, 9, 64])
def test_ranks_that_end_the_process_are_refused(lite, rank):
    asked = {**inputs(2), "x": np.ones([1] * rank, "f4")}
    with pytest.raises(InvalidArgument, match=f"to have at most 6 dimensions but {rank} are prov"):
        lite.predict(asked)
    assert lite.predict(inputs(1))["y"].shape == (1, 2)


@pytest.mark.parametrize("rank", [1, 3, 5, 64])
def test_pictures_keep_their_rank(load, rank):
    """A convolution that is fed another one may end the process."""
    kernel = np.ones((2, 2, 1, 1), "f4")
    convolve = lambda x: tf.nn.conv2d(x, kernel, 1, "VALID")  # noqa: E731
    lite = load(convert(convolve, tf.TensorSpec([None, 4, 4, 1], tf.float32, "x")))
    with pytest.raises(InvalidArgument, match=f"to have 4 dimensions but {rank} are provided"):
        lite.predict({"x": np.ones([1] * rank, "f4")})


def test_dimensions_beyond_32_bits_are_refused(lite):
    """Errors of a tensor without elements; they used not to be ServingErrors."""
    asked = {**inputs(2), "x": np.ones([0, 2**31], "f4")}
    with pytest.raises(InvalidArgument, match=r"at most 2147483647 but its shape is \[0, 2147483"):
        lite.predict(asked)
    assert lite.predict(inputs(1))["y"].shape == (1, 2)


def test_threads_share_the_interpreters(lite):
    def work(seed):
        for rows in (1, 3, 2):
            asked = inputs(rows, seed)
            answer = lite.predict(asked)
            np.testing.assert_allclose(answer["y"], asked["x"] @ KERNEL + asked["b"], rtol=1e-4)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))


def test_a_file_that_is_no_model(tmp_path):
    (tmp_path / MODEL_FILE).write_bytes(b"nonsense" * 10)
    with pytest.raises(InvalidArgument, match="Cannot build Interpreter"):
        TfliteSession(tmp_path / MODEL_FILE)


def test_without_an_interpreter_the_extra_is_named(tmp_path, monkeypatch):
    """The server said: ModuleNotFoundError("No module named 'tensorflow'")."""
    for module in ("ai_edge_litert", "tensorflow"):
        monkeypatch.setitem(sys.modules, module, None)
        for name in [one for one in sys.modules if one.startswith(f"{module}.")]:
            monkeypatch.delitem(sys.modules, name)
    (tmp_path / MODEL_FILE).touch()
    with pytest.raises(FailedPrecondition, match=r"pip install 'keras-gru\[tflite\]'$"):
        TfliteSession(tmp_path / MODEL_FILE)


def test_names_of_tensors_may_have_a_number(load, two_heads):
    predictor = load(two_heads)
    answer = predictor.prepare_graph({"x:0": np.float32([[1, 2]])}, ["Identity:0"]).run()
    np.testing.assert_array_equal(answer["Identity:0"], [[11, 12]])
    with pytest.raises(ServingError, match="nix"):
        predictor.prepare_graph({"nix": np.float32([1])}, ["Identity"]).run()
    with pytest.raises(InvalidArgument, match=r"Missing TFLite tensor: Identity$"):
        predictor.prepare_graph({"Identity": np.float32([1])}, ["x"]).run()


def test_inputs_that_a_signature_leaves_out_are_zero(load, two_heads):
    whole = signature_def({"x": "x", "w": "w"}, {"z": "Identity_1"})
    part = signature_def({"x": "x"}, {"y": "Identity", "z": "Identity_1"})
    predictor = load(with_signatures(two_heads, whole=whole, part=part))
    x = np.ones((3, 2), "f4")
    assert predictor.predict({"x": x, "w": np.float32([4])}, "whole")["z"] == 8
    answer = predictor.predict({"x": x}, "part")
    np.testing.assert_array_equal(answer["y"], x + 10)
    assert answer["z"] == 0


def test_classify_regress_and_predict(load, good_or_bad):
    texts = {"inputs": "inputs:0"}
    model = with_signatures(
        good_or_bad,
        classify=signature_def(texts, {"scores": "Identity"}, CLASSIFY_METHOD),
        regress=signature_def(texts, {"outputs": "Identity_1"}, REGRESS_METHOD),
        predict=signature_def(texts, {"scores": "Identity", "value": "Identity_1"}),
    )
    predictor = load(model)
    asked = [b"good", b"b\0d", b"good\0"]
    scores, values = [[1, 0], [0, 1], [0, 1]], [3, 0, 0]
    np.testing.assert_array_equal(classify(predictor, "classify", asked).run().scores, scores)
    np.testing.assert_array_equal(regress(predictor, "regress", asked).run(), values)
    tasks = [Task("m", "classify", CLASSIFY_METHOD), Task("m", "regress", REGRESS_METHOD)]
    classified, regressed = infer(predictor, tasks, asked).run()
    np.testing.assert_array_equal(classified.scores, scores)
    np.testing.assert_array_equal(regressed, values)
    for name, alias, expected in (
        ("predict", "value", values),
        ("classify", "scores", scores),
        ("regress", "outputs", values),
    ):
        answer = predictor.predict({"inputs": np.array(asked, object)}, name)
        np.testing.assert_array_equal(answer[alias], expected)
    predictor.check_method_names = True
    assert predictor.predict({"inputs": np.array(asked, object)}, "classify")
    with pytest.raises(ServingError, match="method_name"):
        regress(predictor, "classify", asked)


def test_strings_in_a_shape_that_comes_with_them(load):
    model = convert(
        tf.reshape,
        tf.TensorSpec([None], tf.string, "list"),
        tf.TensorSpec([None], tf.int32, "shape"),
    )
    stored = signature_def({"texts": "list:0", "shape": "shape:0"}, {"table": "Identity:0"})
    predictor = load(with_signatures(model, serving_default=stored))
    texts = np.array([b"a", b"", b"c\0", b"\xff"], object)
    answer = predictor.predict({"texts": texts, "shape": np.int32([2, 2])})
    assert answer["table"].tolist() == [[b"a", b""], [b"c\0", b"\xff"]]


def test_custom_operations_are_refused(load):
    features = {"x": tf.io.FixedLenFeature([1], tf.float32)}
    model = convert(
        lambda examples: tf.io.parse_example(examples, features)["x"],
        tf.TensorSpec([None], tf.string, "examples"),
        custom_ops=True,
    )
    with pytest.raises(InvalidArgument, match=r"Cannot build Interpreter.*ParseExample"):
        load(model)


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
