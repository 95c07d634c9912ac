"""Signatures of a TensorFlow Lite file: native, from its metadata, or of its tensors."""

import numpy as np
import pytest
import tensorflow as tf
from flatbuffers import flexbuffers

from gru_serving.engine.runtime import MODEL_FILE
from gru_serving.engine.tflite.session import TfliteSession, read_metadata
from gru_serving.errors import Code, Internal, InvalidArgument, ServingError
from tests.serving.engine.tflite.affine_rows import KERNEL, inputs
from tests.serving.engine.tflite.tflite_files import (
    convert,
    edit,
    flexbuffer_map,
    signature_def,
    with_signatures,
)


@pytest.mark.slow
def test_signatures_of_the_file(lite):
    assert list(lite.signatures) == ["serving_default"]
    signature = lite.signatures["serving_default"]
    assert {alias: (info.dtype, info.shape) for alias, info in signature.inputs.items()} == {
        "b": (1, (-1, 1)),
        "x": (1, (-1, 3)),
    }
    assert sorted(signature.outputs) == ["doubled", "y"]
    assert signature.method_name == "tensorflow/serving/predict"


def test_a_file_without_signatures(load):
    model = convert(lambda x: x + 1.0, tf.TensorSpec([None, 2], tf.float32, "x"))
    predictor = load(edit(model, rename={"x": "x:0", "Identity": "y:7"}))
    signature = predictor.signatures["serving_default"]
    assert {alias: info.name for alias, info in signature.inputs.items()} == {"x": "x:0"}
    assert {alias: info.name for alias, info in signature.outputs.items()} == {"y": "y:7"}
    for rows in (3, 1):
        x = np.ones((rows, 2), "f4")
        np.testing.assert_array_equal(predictor.predict({"x": x})["y"], x + 1)


def test_aliases_that_would_be_the_same_keep_their_numbers(load, two_heads):
    predictor = load(edit(two_heads, rename={"x": "in:0", "w": "in:1", "Identity": "y:0"}))
    signature = predictor.signatures["serving_default"]
    assert sorted(signature.inputs) == ["in:0", "in:1"]
    assert sorted(signature.outputs) == ["Identity_1", "y"]
    answer = predictor.predict({"in:0": np.float32([[1, 2]]), "in:1": np.float32([3])})
    np.testing.assert_array_equal(answer["y"], [[11, 12]])
    np.testing.assert_array_equal(answer["Identity_1"], [6])


def test_two_tensors_of_one_name(load, two_heads):
    with pytest.raises(ServingError, match=r"^Input tensor name: x has multiple indices$") as error:
        load(edit(two_heads, rename={"w": "x"}))
    assert error.value.code is Code.ALREADY_EXISTS


def test_signatures_of_the_metadata(load, two_heads):
    """Kept as stored, except for the `:0` behind names that early converters did not write."""
    both = signature_def({"a": "x:0", "b": "w"}, {"sum": "Identity:0", "product": "Identity_1"})
    both.inputs["a"].dtype = 1
    both.inputs["a"].tensor_shape.dim.add(size=-1)
    both.outputs["sum"].tensor_shape.unknown_rank = True
    odd = signature_def({"a": "x"}, {"sum": "Identity"}, "some/method")
    predictor = load(with_signatures(two_heads, serving_default=both, odd=odd))
    both.inputs["a"].name, both.outputs["sum"].name = "x", "Identity"
    assert dict(predictor.signature_defs.signature_def) == {"serving_default": both, "odd": odd}
    for rows in (3, 1):
        x, w = np.full((rows, 2), rows, "f4"), np.float32([rows])
        answer = predictor.predict({"a": x, "b": w})
        np.testing.assert_array_equal(answer["sum"], x + 10)
        np.testing.assert_array_equal(answer["product"], 2 * w)


def test_metadata_goes_before_native_signatures(load, version):
    file = (version / MODEL_FILE).read_bytes()
    (native,) = TfliteSession(version / MODEL_FILE).signatures.signature_def.values()
    tensors = {alias: native.inputs[alias].name for alias in native.inputs}
    stored = signature_def(tensors, {"answer": native.outputs["y"].name})
    predictor = load(with_signatures(file, stored=stored))
    assert list(predictor.signatures) == ["stored"]
    with pytest.raises(Internal, match=r"^Failed to run interpreter\."):
        predictor.predict({**inputs(1), "x": np.ones((1, 4), "f4")}, "stored")
    asked = inputs(2)
    answer = predictor.predict(asked, "stored")["answer"]
    np.testing.assert_allclose(answer, asked["x"] @ KERNEL + asked["b"], rtol=1e-5)


def test_metadata_without_signatures_counts_as_none(load, two_heads):
    assert sorted(load(with_signatures(two_heads)).signatures["serving_default"].inputs) == [
        "w",
        "x",
    ]


def test_tensors_that_differ_after_the_colon(load, two_heads):
    model = edit(two_heads, rename={"x": "in:0", "w": "in:1"})
    stored = signature_def({"x": "in:0", "w": "in:1"}, {"y": "Identity", "z": "Identity_1"})
    predictor = load(with_signatures(model, serving_default=stored))
    answer = predictor.predict({"x": np.float32([[1, 2]]), "w": np.float32([3])})
    np.testing.assert_array_equal(answer["y"], [[11, 12]])
    np.testing.assert_array_equal(answer["z"], [6])


GOOD_ENTRY = flexbuffer_map({"a": b"", "b": signature_def({"x": "x"}, {}).SerializeToString()})
INVALID = "^Invalid SignatureDefs found in TfLite model: "


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (b"", "Error reading signature def map: buffer \\d+ is empty"),
        (b"\0", "Error reading signature def map: buffer is too small"),
        (b"nonsense", "Error reading signature def map: "),
        (bytes(flexbuffers.Dumps([1, 2])), "Error reading signature def map: it is not a map"),
        (bytes(flexbuffers.Dumps({"a": 1})), "Error reading signature def map: a is not a string"),
        (GOOD_ENTRY[1:], ""),
        (flexbuffer_map({"a": b"\xff"}), "Cannot parse signature def found in flatbuffer.$"),
    ],
    ids=["empty", "short", "nonsense", "list", "number", "cut", "no_signature_def"],
)
def test_broken_metadata(load, two_heads, entry, message):
    with pytest.raises(InvalidArgument, match=INVALID + message):
        load(edit(two_heads, entry))


def test_metadata_in_a_buffer_that_is_missing(load, two_heads):
    with pytest.raises(InvalidArgument, match=f"{INVALID}Error reading.* no buffer 999"):
        load(edit(two_heads, GOOD_ENTRY, buffer=999))


def test_damaged_metadata_ends_in_no_other_error(tmp_path, two_heads):
    rng = np.random.default_rng(0)
    file = edit(two_heads, GOOD_ENTRY)
    start = file.index(GOOD_ENTRY)
    refused = 0
    for _ in range(500):
        damaged = bytearray(file)
        for at in rng.integers(len(GOOD_ENTRY), size=rng.integers(1, 4)):
            damaged[start + at] = rng.integers(256)
        (tmp_path / MODEL_FILE).write_bytes(damaged)
        try:
            read_metadata(tmp_path / MODEL_FILE)
        except InvalidArgument:
            refused += 1
    assert 0 < refused < 500


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        (
            signature_def({"a": "nix:0"}, {}),
            "Unknown tensor 'nix:0'.\n\tSignature input a references an unknown tensor",
        ),
        (
            signature_def({"a": "x"}, {"b": "x"}),  # an input tensor is not an output
            "Unknown tensor 'x'.\n\tSignature output b references an unknown tensor",
        ),
    ],
)
def test_metadata_that_names_no_tensor_of_the_file(load, two_heads, signature, message):
    with pytest.raises(ServingError) as error:
        load(with_signatures(two_heads, serving_default=signature))
    assert (error.value.code, error.value.message) == (Code.INTERNAL, message)
